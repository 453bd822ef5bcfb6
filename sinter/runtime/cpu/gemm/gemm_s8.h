#pragma once
// int8 by int8 with sums in int32, exact modulo 2^32, for quantized weights.
#include <cstdint>
#include <memory>

#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::runtime {

// Strides count elements.
struct S8Operand {
  const int8_t* data;
  int64_t row_stride, col_stride;
};

// B[k, n] rearranged once; immutable, shared by copies. The same on every machine.
class PackedS8 {
 public:
  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  // Panels of kPanel columns, each ceil(k / 4) rows of kPanel groups of four elements along k, padded with zeros.
  const int8_t* panel(int64_t index) const;
  // 128 times the sum of each column.
  const int32_t* offsets() const { return offsets_.get(); }
  static constexpr int64_t kPanel = 32;

 private:
  friend PackedS8 pack_s8(int64_t, int64_t, const S8Operand&);
  int64_t k_ = 0, n_ = 0;
  std::shared_ptr<const int8_t> data_;
  std::shared_ptr<const int32_t> offsets_;
};

PackedS8 pack_s8(int64_t k, int64_t n, const S8Operand& b);

// C[m, n] = A.B; the columns of C are adjacent. Uses AVX512_VNNI where the machine has it and `isa` allows it.
void gemm_s8(int64_t m, const S8Operand& a, const PackedS8& b, int32_t* c, int64_t c_row_stride,
             CpuIsa isa = host_target().isa);
void gemm_s8(int64_t m, int64_t n, int64_t k, const S8Operand& a, const S8Operand& b, int32_t* c, int64_t c_row_stride,
             CpuIsa isa = host_target().isa);

namespace gemm_detail {

// `a`: rows of elements plus 128, `quads` groups of four each. C = A.B - offsets.
struct S8Args {
  int64_t quads;
  const uint8_t* a;
  int64_t a_row_stride;  // a multiple of four
  const int8_t* b;
  const int32_t* offsets;
  int32_t* c;
  int64_t c_row_stride;
  int64_t cols;  // 1 to PackedS8::kPanel
};
struct S8Core {
  static constexpr int kRows = 14;
  void (*kernel[kRows])(const S8Args&);
};
const S8Core* avx512_vnni_core();  // null where the build has no support for it

}  // namespace gemm_detail

}  // namespace sinter::runtime
