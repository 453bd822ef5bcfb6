// bf16 by bf16 on AVX512_BF16; without it the table is absent.
#include "sinter/runtime/cpu/gemm/core.h"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

// Lanes of A and B are Pairs, those of C floats.
struct Bf16Pairs {
  using Scalar = float;
  using Reg = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16, kRows = 14, kAccumulators = 28;

  static Mask mask(int count) { return Mask((1u << count) - 1); }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set(float v) { return _mm512_set1_ps(v); }
  static Reg multiply_pairs(Reg a, Reg b, Reg acc) { return _mm512_dpbf16_ps(acc, __m512bh(a), __m512bh(b)); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static float sum(Reg v) { return _mm512_reduce_add_ps(v); }
  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static Reg load(const Pair* p) { return _mm512_loadu_ps(p); }
  static Reg load(const Pair* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Reg v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, Reg v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
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
