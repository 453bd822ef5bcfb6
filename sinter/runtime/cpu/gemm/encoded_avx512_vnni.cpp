// Encoded weights by integers on AVX512_VNNI: rows of A as integers of 16 bits, whose halves are multiplied with the codes
// exactly. Without these instructions the table is absent.
#include "sinter/runtime/cpu/gemm/encoded_core.h"

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <utility>

#include "sinter/runtime/cpu/gemm/core.h"

namespace sinter::runtime::gemm_detail {
namespace {

constexpr int kAhead = 2048;  // bytes of codes

// Four elements of a row.
typedef int32_t Quad __attribute__((may_alias));

// In assembly because g++ 12 keeps the intrinsic's sums in memory where there are many.
inline void multiply_quads(__m512i& acc, __m512i codes, __m512i a) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(codes), "v"(a));
}

inline __m512 load_number(const void* from, int storage, int at) {
  if (storage == kNative) return _mm512_loadu_ps(static_cast<const float*>(from) + at);
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const uint16_t*>(from) + at));
  if (storage == kHalf) return _mm512_cvtph_ps(bits);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

template <int kRows, bool kNibbles>
void vnni_rows(const EncodedArgs& args) {
  const uint8_t* codes = args.codes;
  const int8_t* a = static_cast<const int8_t*>(args.a);
  const int64_t stride = args.a_row_stride, apart = args.low, eights = args.depth / 8;
  const __m512i mask = _mm512_set1_epi8(15);
  GroupNumbers numbers = args.numbers;
  __m512 total[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) total[i][0] = total[i][1] = _mm512_setzero_ps();
  for (int64_t group = 0; group < args.groups; ++group, numbers.next()) {
    __m512i high[kRows][2], low[kRows][2];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) high[i][0] = high[i][1] = low[i][0] = low[i][1] = _mm512_setzero_si512();
    const auto quad = [&](__m512i first, __m512i second, const int8_t* at) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const __m512i upper = _mm512_set1_epi32(*reinterpret_cast<const Quad*>(at + i * stride));
        const __m512i lower = _mm512_set1_epi32(*reinterpret_cast<const Quad*>(at + i * stride + apart));
        multiply_quads(high[i][0], first, upper);
        multiply_quads(high[i][1], second, upper);
        multiply_quads(low[i][0], first, lower);
        multiply_quads(low[i][1], second, lower);
      }
    };
    // Eight codes of each column at a time.
    for (int64_t eight = 0; eight < eights; ++eight, a += 8) {
      const __m512i first = _mm512_loadu_si512(codes), second = _mm512_loadu_si512(codes + 64);
      __builtin_prefetch(codes + kAhead);
      __builtin_prefetch(codes + kAhead + 64);
      if constexpr (kNibbles) {
        quad(_mm512_and_si512(first, mask), _mm512_and_si512(second, mask), a);
        quad(_mm512_and_si512(_mm512_srli_epi16(first, 4), mask), _mm512_and_si512(_mm512_srli_epi16(second, 4), mask),
             a + 4);
        codes += 128;
      } else {
        quad(first, second, a);
        __builtin_prefetch(codes + kAhead + 128);
        __builtin_prefetch(codes + kAhead + 192);
        quad(_mm512_loadu_si512(codes + 128), _mm512_loadu_si512(codes + 192), a + 4);
        codes += 256;
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) {
      const __m512 scale = load_number(numbers.scale, numbers.scale_storage, 16 * j);
      const __m512 zero =
          numbers.zero ? load_number(numbers.zero, numbers.zero_storage, 16 * j) : _mm512_set1_ps(numbers.same);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        __m512 sum;
        if constexpr (kNibbles) {
          // 32 bits hold both halves together.
          sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high[i][j], 8), low[i][j]));
        } else {
          sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high[i][j]), _mm512_set1_ps(256), _mm512_cvtepi32_ps(low[i][j]));
        }
        sum = _mm512_fnmadd_ps(_mm512_set1_ps(args.a_sum[i * args.a_sum_stride + group]), zero, sum);
        total[i][j] = _mm512_fmadd_ps(scale, sum, total[i][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const __m512 scale = _mm512_set1_ps(args.a_scale[i * args.a_scale_stride]);
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) {
      float* c = args.c + i * args.c_row_stride + 16 * j;
      _mm512_storeu_ps(c, args.accumulate ? _mm512_fmadd_ps(scale, total[i][j], _mm512_loadu_ps(c))
                                          : _mm512_mul_ps(scale, total[i][j]));
    }
  }
}

// Integers up to 127 * 256 + 127, whose lower halves are signed too.
void prepare(const float* from, int64_t groups, int64_t depth, int8_t* high, int8_t* low, float* scale, float* sum) {
  constexpr float kMost = 127 * 256 + 127;
  const auto mask_of = [](int64_t left) { return left >= 16 ? __mmask16(0xffff) : __mmask16((1u << left) - 1); };
  __m512 largest = _mm512_setzero_ps();
  __mmask16 unbounded = 0;  // infinities and what is no number
  for (int64_t p = 0; p < groups * depth; p += 16) {
    const __m512 size = _mm512_abs_ps(_mm512_maskz_loadu_ps(mask_of(groups * depth - p), from + p));
    unbounded |= _mm512_cmp_ps_mask(size, _mm512_set1_ps(__builtin_inff()), _CMP_NLT_UQ);
    largest = _mm512_max_ps(largest, size);
  }
  const float most = _mm512_reduce_max_ps(largest);
  const bool fits = !unbounded && most > 1e-30f;
  const float inverse = fits ? kMost / most : 0.0f;
  *scale = unbounded ? __builtin_nanf("") : fits ? most / kMost : 0.0f;
  for (int64_t group = 0; group < groups; ++group, from += depth, high += depth, low += depth) {
    __m512i total = _mm512_setzero_si512();
    for (int64_t p = 0; p < depth; p += 16) {
      const __mmask16 mask = mask_of(depth - p);
      const __m512 value = _mm512_maskz_loadu_ps(mask, from + p);
      const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(value, _mm512_set1_ps(inverse)));
      const __m512i upper = _mm512_srai_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(128)), 8);
      const __m512i lower = _mm512_sub_epi32(whole, _mm512_slli_epi32(upper, 8));
      _mm512_mask_cvtepi32_storeu_epi8(high + p, mask, upper);
      _mm512_mask_cvtepi32_storeu_epi8(low + p, mask, lower);
      total = _mm512_add_epi32(total, whole);
    }
    sum[group] = float(_mm512_reduce_add_epi32(total));
  }
}

template <int... kIndex>
constexpr EncodedCore make(std::integer_sequence<int, kIndex...>) {
  EncodedCore core{};
  core.max_rows = int(sizeof...(kIndex));
  core.integers = true;
  ((core.rows[0][kIndex] = vnni_rows<kIndex + 1, false>), ...);
  ((core.rows[1][kIndex] = vnni_rows<kIndex + 1, true>), ...);
  core.prepare = prepare;
  return core;
}
constexpr EncodedCore kCore = make(std::make_integer_sequence<int, kEncodedRows>());

}  // namespace

const EncodedCore* avx512_vnni_encoded_core() { return &kCore; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
const EncodedCore* avx512_vnni_encoded_core() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
