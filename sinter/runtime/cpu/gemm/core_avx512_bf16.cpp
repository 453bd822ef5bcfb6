// bf16 by bf16 on AVX512_BF16; without it the table is absent.
#include "sinter/runtime/cpu/gemm/core.h"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include "sinter/runtime/cpu/gemm/avx512_registers.h"
#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

// Lanes of A and B are Pairs, those of C floats.
struct Bf16Pairs : Avx512Registers {
  using Avx512Registers::load;
  static Reg multiply_pairs(Reg a, Reg b, Reg acc) { return _mm512_dpbf16_ps(acc, __m512bh(a), __m512bh(b)); }
  static Reg load(const Pair* p) { return _mm512_loadu_ps(p); }
  static Reg load(const Pair* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
};

constexpr Bf16Core make_bf16_core() {
  Bf16Core core{};
  core.max_rows = Bf16Pairs::kRows;
  fill_micro<Bf16Pairs, Pair, Bf16Pairs::kRows>(core.micro, std::make_integer_sequence<int, kMaxRows * kWidths>());
  fill_dot<Bf16Pairs, Pair>(core.dot, std::make_integer_sequence<int, kMaxDotRows>());
  return core;
}
constexpr Bf16Core kCore = make_bf16_core();

}  // namespace

const Bf16Core* avx512_bf16_core() { return &kCore; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
const Bf16Core* avx512_bf16_core() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
