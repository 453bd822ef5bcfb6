// Vectors of 512 bits. Compiled with AVX-512 F, BW, DQ, VL, FMA and F16C; without them the tables are absent.
#include "sinter/runtime/cpu/gemm/core.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#include "sinter/runtime/cpu/gemm/avx512_registers.h"
#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

struct Avx512Float : Avx512Registers {
  using Avx512Registers::load, Avx512Registers::store;
  template <class Bits>
  static Reg lookup(const float* table, Bits at) {
    return _mm512_permutexvar_ps(__m512i(at), _mm512_loadu_ps(table));
  }
  template <class Bits>
  static Reg gather(const float* table, Bits at) {
    return _mm512_i32gather_ps(__m512i(at), table, 4);
  }
  static Reg widen(BFloat16, __m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
  static Reg widen(Half, __m256i v) { return _mm512_cvtph_ps(v); }
  template <class S>
  static Reg load(const S* p) {
    return widen(S(), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  template <class S>
  static Reg load(const S* p, Mask m) {
    return widen(S(), _mm256_maskz_loadu_epi16(m, p));
  }
  static __m256i narrow(BFloat16, Reg v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
  }
  static __m256i narrow(Half, Reg v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  template <class S>
  static void store(S* p, Reg v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(S(), v));
  }
  template <class S>
  static void store(S* p, Reg v, Mask m) {
    _mm256_mask_storeu_epi16(p, m, narrow(S(), v));
  }
};

struct Avx512Double {
  using Scalar = double;
  using Reg = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8, kRows = 14, kAccumulators = 28;

  static Mask mask(int count) { return Mask((1u << count) - 1); }
  static Reg zero() { return _mm512_setzero_pd(); }
  static Reg set(double v) { return _mm512_set1_pd(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_pd(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_pd(a, b); }
  static double sum(Reg v) { return _mm512_reduce_add_pd(v); }
  static Reg load(const double* p) { return _mm512_loadu_pd(p); }
  static Reg load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static void store(double* p, Reg v) { _mm512_storeu_pd(p, v); }
  static void store(double* p, Reg v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
};

constexpr GemmCore<float> kFloatCore = make_core<Avx512Float>();
constexpr GemmCore<double> kDoubleCore = make_core<Avx512Double>();

}  // namespace

const GemmCore<float>* avx512_core_f32() { return &kFloatCore; }
const GemmCore<double>* avx512_core_f64() { return &kDoubleCore; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
const GemmCore<float>* avx512_core_f32() { return nullptr; }
const GemmCore<double>* avx512_core_f64() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
