#pragma once
// Products with weights that stay encoded: B's elements are small codes, each of a group along k with a scale and perhaps a zero
// of its own, and are decoded in registers.
//
// B[k, n] is given as W[n, k], a row of codes for each column, which is how linear layers store their weights. It is packed
// once, without loss, and the same on every machine: panels of kPanel columns, each its scales, its zeros and then its codes,
// group after group along k. Rows of A stream the codes; where that is slower for many of them, panels are decoded just in
// time for the usual cores.
#include <cstdint>

#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime {

// What a code c stands for, before it is multiplied by its scale.
enum class CodeKind : uint8_t {
  kInt8,    // signed, in a byte: c - zero
  kUInt4,   // two in a byte, the first along k in its low half: c - zero
  kTable4,  // so, too: one of the 16 numbers of a table
  kTable8   // in a byte: one of 256
};
// How zeros are stored: where there are none, those of codes of four bits are 8.
enum class ZeroType : uint8_t { none, u8, i8, f32, bf16, f16 };

struct EncodedFormat {
  CodeKind kind = CodeKind::kInt8;
  int64_t k = 0, n = 0;
  int64_t group = 0;  // elements along k that share a scale; 0: all. Else a multiple of kGroupStep
  GemmType scale = GemmType::f32;
  ZeroType zero = ZeroType::none;
  bool offset = false;  // what `zero` is the type of is added behind the scale: c * scale + offset

  static constexpr int64_t kPanel = 32, kGroupStep = 8;
  bool has_table() const { return kind == CodeKind::kTable4 || kind == CodeKind::kTable8; }
  int64_t codes_in_byte() const { return kind == CodeKind::kUInt4 || kind == CodeKind::kTable4 ? 2 : 1; }
};

// W as it lies. Strides count elements, of codes bytes.
struct EncodedOperand {
  const void* codes;
  int64_t row_stride, col_stride;
  const void* scale;
  int64_t scale_row_stride, scale_col_stride;
  const void* zero = nullptr;
  int64_t zero_row_stride = 0, zero_col_stride = 0;
  int64_t block_rows = 1;  // rows of W that share a row of scales
  const void* table = nullptr;
  int64_t table_stride = 1;
  GemmType table_type = GemmType::f32;
};

// Memory is aligned to 64 bytes.
int64_t packed_encoded_bytes(const EncodedFormat& format);
void pack_encoded(const EncodedFormat& format, const EncodedOperand& operand, void* to);

// What pack_encoded has written into memory of the caller's, who keeps it.
struct PackedEncoded {
  EncodedFormat format;
  const void* memory;
};

}  // namespace sinter::runtime
