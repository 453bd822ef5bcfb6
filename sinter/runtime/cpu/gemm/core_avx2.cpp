// Vectors of 256 bits. Compiled with AVX2, FMA and F16C; without them the tables are absent.
#include "sinter/runtime/cpu/gemm/core.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

alignas(64) constexpr int32_t kMaskSource[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

struct Avx2Float {
  using Scalar = float;
  using Reg = __m256;
  struct Mask {
    __m256i lanes;
    int count;
  };
  static constexpr int kLanes = 8, kRows = 6, kAccumulators = 12;

  static Mask mask(int count) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskSource + 8 - count)), count};
  }
  static Reg zero() { return _mm256_setzero_ps(); }
  static Reg set(float v) { return _mm256_set1_ps(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static float sum(Reg v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }

  template <class Bits>
  static Reg gather(const float* table, Bits at) {
    return _mm256_i32gather_ps(table, __m256i(at), 4);
  }

  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static Reg load(const float* p, const Mask& m) { return _mm256_maskload_ps(p, m.lanes); }
  static void store(float* p, Reg v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, Reg v, const Mask& m) { _mm256_maskstore_ps(p, m.lanes, v); }

  static Reg widen(BFloat16, __m128i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)); }
  static Reg widen(Half, __m128i v) { return _mm256_cvtph_ps(v); }
  template <class S>
  static Reg load(const S* p) {
    return widen(S(), _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  template <class S>
  static Reg load(const S* p, const Mask& m) {
    if (m.count == kLanes) return load(p);
    alignas(16) uint16_t whole[8] = {};
    for (int i = 0; i < m.count; ++i) whole[i] = p[i].bits;
    return widen(S(), _mm_load_si128(reinterpret_cast<const __m128i*>(whole)));
  }
  static __m128i narrow(BFloat16, Reg v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
  }
  static __m128i narrow(Half, Reg v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  template <class S>
  static void store(S* p, Reg v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(S(), v));
  }
  template <class S>
  static void store(S* p, Reg v, const Mask& m) {
    alignas(16) uint16_t whole[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(whole), narrow(S(), v));
    for (int i = 0; i < m.count; ++i) p[i].bits = whole[i];
  }
};

struct Avx2Double {
  using Scalar = double;
  using Reg = __m256d;
  using Mask = __m256i;
  static constexpr int kLanes = 4, kRows = 6, kAccumulators = 12;

  static Mask mask(int count) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskSource + 8 - 2 * count));
  }
  static Reg zero() { return _mm256_setzero_pd(); }
  static Reg set(double v) { return _mm256_set1_pd(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_pd(a, b, c); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_pd(a, b); }
  static double sum(Reg v) {
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
  static Reg load(const double* p) { return _mm256_loadu_pd(p); }
  static Reg load(const double* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static void store(double* p, Reg v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, Reg v, Mask m) { _mm256_maskstore_pd(p, m, v); }
};

constexpr GemmCore<float> kFloatCore = make_core<Avx2Float>();
constexpr GemmCore<double> kDoubleCore = make_core<Avx2Double>();

}  // namespace

const GemmCore<float>* avx2_core_f32() { return &kFloatCore; }
const GemmCore<double>* avx2_core_f64() { return &kDoubleCore; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
const GemmCore<float>* avx2_core_f32() { return nullptr; }
const GemmCore<double>* avx2_core_f64() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
