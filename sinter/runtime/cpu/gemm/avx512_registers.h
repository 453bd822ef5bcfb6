#pragma once
// Floats in registers of 512 bits, for the files that are compiled with AVX-512: each has its own. Nothing for others.
#ifdef __AVX512F__
// GCC 12's own headers read an undefined register by design and warn of it where they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace sinter::runtime::gemm_detail {
namespace {

struct Avx512Registers {
  using Scalar = float;
  using Reg = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16, kRows = 14, kAccumulators = 28;

  static Mask mask(int count) { return Mask((1u << count) - 1); }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set(float v) { return _mm512_set1_ps(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static float sum(Reg v) { return _mm512_reduce_add_ps(v); }
  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Reg v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, Reg v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
};

}  // namespace
}  // namespace sinter::runtime::gemm_detail

#endif
