#pragma once
// Where packed encoded weights have what, and how products with them run. Internal to gemm/.
#include "sinter/runtime/cpu/gemm/blocked.h"
#include "sinter/runtime/cpu/gemm/encoded.h"
#include "sinter/runtime/cpu/gemm/encoded_core.h"
#include "sinter/runtime/cpu/gemm/packing.h"

namespace sinter::runtime::gemm_detail {

struct EncodedLayout {
  explicit EncodedLayout(const EncodedFormat& format);

  int64_t codes_in_word, depth;  // a word is 4 bytes; codes along k, padded to whole words
  int64_t groups, group;         // of how many codes each; the last one may have fewer
  int64_t panels;
  int64_t table_entries = 0, table_bytes = 0;
  int64_t scale_size, zero_size = 0;            // of a number
  int64_t scale_bytes, zero_bytes = 0;          // of a group in a panel
  int64_t zeros_at = 0, codes_at, panel_bytes;  // in a panel
  int64_t bytes() const { return table_bytes + panels * panel_bytes; }
};

// One packed weight, as kernels read it.
class EncodedReader {
 public:
  explicit EncodedReader(const PackedEncoded& packed)
      : format_(packed.format), layout_(format_), memory_(static_cast<const char*>(packed.memory)) {}

  const EncodedFormat& format() const { return format_; }
  const EncodedLayout& layout() const { return layout_; }
  int kind() const { return int(format_.kind); }
  const float* table() const { return format_.has_table() ? reinterpret_cast<const float*>(memory_) : nullptr; }
  int64_t group_at(int64_t k) const { return k / layout_.group; }
  // Of column `col` on; k is where a word begins.
  const uint8_t* codes(int64_t col, int64_t k) const {
    return reinterpret_cast<const uint8_t*>(panel(col) + layout_.codes_at +
                                            k / layout_.codes_in_word * 4 * EncodedFormat::kPanel +
                                            col % EncodedFormat::kPanel * 4);
  }
  GroupNumbers numbers(int64_t col, int64_t group) const;

 private:
  const char* panel(int64_t col) const {
    return memory_ + layout_.table_bytes + col / EncodedFormat::kPanel * layout_.panel_bytes;
  }

  EncodedFormat format_;
  EncodedLayout layout_;
  const char* memory_;
};

// Decodes it for the usual cores: `core` says how wide a panel is, `pairs` whether it is one of pairs of bf16.
struct EncodedPanels {
  EncodedReader reader;
  const EncodedCore* core;
  bool pairs;
  int64_t panel;
  PanelMaker maker() const;
};

// Whether rows of A are multiplied with such codes by integers, as fast as bf16 with bf16 by instructions that take pairs.
bool streams_integers(CpuIsa isa, GemmType a, CodeKind kind);

// Products of few rows with parts that are all encoded.
void stream_encoded(int64_t m, int64_t k, const GemmOperand& a, std::span<const GemmPart> parts,
                    const JointOptions& options);

}  // namespace sinter::runtime::gemm_detail
