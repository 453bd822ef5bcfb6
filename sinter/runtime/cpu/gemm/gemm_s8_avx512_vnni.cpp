// int8 by int8 on AVX512_VNNI; without it the table is absent.
#include "sinter/runtime/cpu/gemm/gemm_s8.h"

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <utility>

namespace sinter::runtime::gemm_detail {
namespace {

// Four elements of a row.
typedef int32_t Quad __attribute__((may_alias));

// In assembly because g++ 12 keeps the intrinsic's sums in memory where there are many.
inline void multiply_quads(__m512i& acc, __m512i a, __m512i b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
}

template <int kRows>
void vnni_kernel(const S8Args& args) {
  __m512i acc[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) acc[i][0] = acc[i][1] = _mm512_setzero_si512();
  // Three rows hang on one pointer, so that fourteen need five registers.
  constexpr int kPointers = (kRows + 2) / 3;
  const int64_t stride = args.a_row_stride / 4;
  const Quad* a[kPointers];
#pragma GCC unroll 16
  for (int i = 0; i < kPointers; ++i) a[i] = reinterpret_cast<const Quad*>(args.a) + 3 * i * stride;
  const int8_t* b = args.b;
  for (int64_t q = 0; q < args.quads; ++q, b += 128) {
    const __m512i low = _mm512_loadu_si512(b), high = _mm512_loadu_si512(b + 64);
    __builtin_prefetch(b + 1024);
    __builtin_prefetch(b + 1088);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512i value = _mm512_set1_epi32(a[i / 3][(i % 3) * stride]);
      multiply_quads(acc[i][0], value, low);
      multiply_quads(acc[i][1], value, high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) ++a[i];
  }
  const auto mask = [](int64_t count) { return __mmask16(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1); };
  const __mmask16 first = mask(args.cols), second = mask(args.cols - 16);
  const __m512i low = _mm512_loadu_si512(args.offsets), high = _mm512_loadu_si512(args.offsets + 16);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    int32_t* c = args.c + i * args.c_row_stride;
    _mm512_mask_storeu_epi32(c, first, _mm512_sub_epi32(acc[i][0], low));
    _mm512_mask_storeu_epi32(c + 16, second, _mm512_sub_epi32(acc[i][1], high));
  }
}

template <int... kIndex>
constexpr S8Core make(std::integer_sequence<int, kIndex...>) {
  return {{vnni_kernel<kIndex + 1>...}};
}
constexpr S8Core kCore = make(std::make_integer_sequence<int, S8Core::kRows>());

}  // namespace

const S8Core* avx512_vnni_core() { return &kCore; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
const S8Core* avx512_vnni_core() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
