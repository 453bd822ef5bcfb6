#pragma once
// The kernels, written once over a vector trait V and instantiated by one source file per instruction set.
//
// V has: Scalar, Reg (a compiler vector of kLanes), Mask; kRows and kAccumulators (register budget of a micro kernel);
// zero, set, mask(count), load(p), load(p, mask), store(p, r), store(p, r, mask), fma, add, mul, sum.
// Everything here has internal linkage and nothing calls the standard library: code compiled for a wide instruction set
// must never be the copy that the linker keeps for a narrow one.
#include <cstdint>
#include <utility>

#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/encoded_kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

inline float bits_to_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t float_to_bits(float value) { return __builtin_bit_cast(uint32_t, value); }

inline float to_native(float v) { return v; }
inline double to_native(double v) { return v; }
inline float to_native(BFloat16 v) { return bits_to_float(uint32_t(v.bits) << 16); }
inline float to_native(Half v) {
  uint32_t sign = uint32_t(v.bits & 0x8000) << 16, exponent = (v.bits >> 10) & 31, fraction = v.bits & 0x3ff;
  if (exponent == 31) return bits_to_float(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
  float magnitude = float(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

inline void from_native(float v, float* out) { *out = v; }
inline void from_native(double v, double* out) { *out = v; }
inline void from_native(float v, BFloat16* out) {
  uint32_t bits = float_to_bits(v);
  if ((bits & 0x7fffffff) > 0x7f800000)
    out->bits = uint16_t(bits >> 16 | 0x40);
  else
    out->bits = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline void from_native(float v, Half* out) {
  uint32_t bits = float_to_bits(v), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    out->bits = uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  } else if (magnitude >= 0x477ff000) {
    out->bits = uint16_t(sign | 0x7c00);
  } else if (magnitude >= 0x38800000) {
    uint32_t rebased = magnitude - (112u << 23);
    out->bits = uint16_t(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
  } else {
    // Adding 0.5 leaves the subnormal's units in the low bits, rounded by the adder itself.
    out->bits = uint16_t(sign | (float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000));
  }
}

// acc + a * b, where a trait may multiply otherwise than element by element.
template <class V>
inline typename V::Reg step(typename V::Reg a, typename V::Reg b, typename V::Reg acc) {
  if constexpr (requires { V::multiply_pairs(a, b, acc); })
    return V::multiply_pairs(a, b, acc);
  else
    return V::fma(a, b, acc);
}

// c = alpha * acc (+ c), the last vector masked.
template <class V, int kRows, int kVectors, class Mask>
inline void write_tile(const MicroArgs<typename V::Scalar>& args, typename V::Reg (&acc)[kRows][kVectors],
                       const Mask& last) {
  using T = typename V::Scalar;
  constexpr int L = V::kLanes;
  const typename V::Reg alpha = V::set(args.alpha);
  T* c = args.c;
  if (args.accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += args.c_row_stride) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors - 1; ++j) V::store(c + j * L, V::fma(alpha, acc[i][j], V::load(c + j * L)));
      T* at = c + (kVectors - 1) * L;
      V::store(at, V::fma(alpha, acc[i][kVectors - 1], V::load(at, last)), last);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += args.c_row_stride) {
#pragma GCC unroll 16
      for (int j = 0; j < kVectors - 1; ++j) V::store(c + j * L, V::mul(alpha, acc[i][j]));
      V::store(c + (kVectors - 1) * L, V::mul(alpha, acc[i][kVectors - 1]), last);
    }
  }
}

template <class V, int kRows, int kVectors, class TB>
void micro_kernel(const MicroArgs<typename V::Scalar>& args) {
  using T = typename V::Scalar;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  // Three rows hang on one pointer (base, base + s, base + 2s), so that fourteen rows need five registers.
  constexpr int kPointers = (kRows + 2) / 3;
  const int64_t row_stride = args.a_row_stride, k_stride = args.a_k_stride, b_stride = args.b_k_stride;
  const auto last = V::mask(int(args.cols) - (kVectors - 1) * L);

  const T* a[kPointers];
#pragma GCC unroll 16
  for (int i = 0; i < kPointers; ++i) a[i] = args.a + 3 * i * row_stride;
  const TB* b = static_cast<const TB*>(args.b);
  const int64_t ahead = args.b_ahead, k = args.k;

  Reg acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(args.c + i * args.c_row_stride, 1);
    if (kVectors > 1) __builtin_prefetch(args.c + i * args.c_row_stride + L, 1);
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) acc[i][j] = V::zero();
  }
  for (int64_t p = 0; p < k; ++p) {
    Reg column[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors - 1; ++j) column[j] = V::load(b + j * L);
    column[kVectors - 1] = V::load(b + (kVectors - 1) * L, last);
#pragma GCC unroll 16
    for (int j = 0; j < int(kVectors * L * sizeof(TB) + 63) / 64; ++j)
      __builtin_prefetch(reinterpret_cast<const char*>(b + ahead) + 64 * j);
    b += b_stride;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Reg value = V::set(a[i / 3][(i % 3) * row_stride]);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) acc[i][j] = step<V>(value, column[j], acc[i][j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) a[i] += k_stride;
  }

  write_tile<V, kRows, kVectors>(args, acc, last);
}

// The same on panels of pairs, with A in the compute type.
template <class V, int kRows, int kVectors>
void pair_kernel(const MicroArgs<float>& args) {
  using Reg = typename V::Reg;
  typedef uint32_t Bits __attribute__((vector_size(sizeof(Reg))));
  constexpr int L = V::kLanes, kPointers = (kRows + 2) / 3;
  const int64_t row_stride = args.a_row_stride, k_stride = args.a_k_stride, b_stride = args.b_k_stride;
  const float* a[kPointers];
#pragma GCC unroll 16
  for (int i = 0; i < kPointers; ++i) a[i] = args.a + 3 * i * row_stride;
  // Loaded as floats and never computed with as such.
  const float* b = static_cast<const float*>(args.b);
  Reg acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) acc[i][j] = V::zero();
  }
  const auto half = [&](bool high) __attribute__((always_inline)) {
    Reg column[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      const Bits bits = Bits(V::load(b + j * L));
      column[j] = Reg(high ? bits & 0xffff0000u : bits << 16);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Reg value = V::set(a[i / 3][(i % 3) * row_stride]);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) acc[i][j] = V::fma(value, column[j], acc[i][j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) a[i] += k_stride;
  };
  for (int64_t p = 0; p + 2 <= args.k; p += 2) {
#pragma GCC unroll 16
    for (int j = 0; j < int(kVectors * L * 4 + 63) / 64; ++j) __builtin_prefetch(b + args.b_ahead + 16 * j);
    half(false);
    half(true);
    b += b_stride;
  }
  if (args.k % 2) half(false);
  write_tile<V, kRows, kVectors>(args, acc, V::mask(int(args.cols) - (kVectors - 1) * L));
}

template <class V, int kRows, class TB>
void dot_kernel(const DotArgs<typename V::Scalar>& args) {
  using T = typename V::Scalar;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  constexpr int kFit = V::kAccumulators / kRows, kCols = kFit < 1 ? 1 : kFit > 8 ? 8 : kFit;
  // A cache line of B at a time, which may be several vectors of a narrow type.
  constexpr int kUnroll = 64 / int(L * sizeof(TB)) < 1 ? 1 : 64 / int(L * sizeof(TB)), kLine = kUnroll * L;
  constexpr int kAhead = 512 / int(sizeof(TB));
  const int64_t lines = args.k / kLine * kLine, whole = args.k / L * L;
  const auto tail = V::mask(int(args.k - whole));

  for (int64_t col = 0; col < args.cols; col += kCols) {
    const TB* b[kCols];
    const T* a[kRows];
    // Columns beyond the last repeat it; their sums are dropped.
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j)
      b[j] = static_cast<const TB*>(args.b) + (col + j < args.cols ? col + j : args.cols - 1) * args.b_col_stride;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) a[i] = args.a + i * args.a_row_stride;
    Reg acc[kRows][kCols];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) acc[i][j] = V::zero();
    }
    const auto vectors = [&](int64_t p) __attribute__((always_inline)) {
      Reg vb[kCols];
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) vb[j] = V::load(b[j] + p);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Reg va = V::load(a[i] + p);
#pragma GCC unroll 16
        for (int j = 0; j < kCols; ++j) acc[i][j] = step<V>(va, vb[j], acc[i][j]);
      }
    };
    // The columns after these come next: far ahead for the second cache, near ahead for the first.
    const int64_t next = kCols * args.b_col_stride;
    for (int64_t p = 0; p < lines; p += kLine) {
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) {
        __builtin_prefetch(b[j] + p + kAhead);
        __builtin_prefetch(b[j] + p + next, 0, 2);
      }
#pragma GCC unroll 16
      for (int u = 0; u < kUnroll; ++u) vectors(p + u * L);
    }
    for (int64_t p = lines; p < whole; p += L) vectors(p);
    if (whole < args.k) {
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) {
        const Reg vb = V::load(b[j] + whole, tail);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) acc[i][j] = step<V>(V::load(a[i] + whole, tail), vb, acc[i][j]);
      }
    }
    const int64_t cols = args.cols - col < kCols ? args.cols - col : kCols;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      T sums[kCols];
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[j] = args.alpha * V::sum(acc[i][j]);
      T* c = args.c + i * args.c_row_stride + col;
      for (int64_t j = 0; j < cols; ++j) c[j] = args.accumulate ? c[j] + sums[j] : sums[j];
    }
  }
}

// Converts where the types differ.
template <class V, class S, class D>
void copy_row(const S* src, int64_t cols, D* dst) {
  constexpr int L = V::kLanes;
  int64_t j = 0;
  for (; j + L <= cols; j += L) V::store(dst + j, V::load(src + j));
  if (j < cols) {
    const auto mask = V::mask(int(cols - j));
    V::store(dst + j, V::load(src + j, mask), mask);
  }
}

template <class V, class S>
void load_rows(const void* source, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols,
               typename V::Scalar* dst, int64_t dst_stride) {
  const S* src = static_cast<const S*>(source);
  for (int64_t i = 0; i < rows; ++i, src += row_stride, dst += dst_stride) {
    if (col_stride == 1)
      copy_row<V>(src, cols, dst);
    else
      for (int64_t j = 0; j < cols; ++j) dst[j] = to_native(src[j * col_stride]);
  }
}

template <class V, class S>
void store_rows(const typename V::Scalar* src, int64_t src_stride, int64_t rows, int64_t cols, void* target,
                int64_t row_stride, int64_t col_stride) {
  S* dst = static_cast<S*>(target);
  for (int64_t i = 0; i < rows; ++i, src += src_stride, dst += row_stride) {
    if (col_stride == 1)
      copy_row<V>(src, cols, dst);
    else
      for (int64_t j = 0; j < cols; ++j) from_native(src[j], dst + j * col_stride);
  }
}

template <class V, int... kLane>
inline void interleave(typename V::Reg a, typename V::Reg b, typename V::Reg* low, typename V::Reg* high,
                       std::integer_sequence<int, kLane...>) {
  constexpr int L = V::kLanes;
  *low = __builtin_shufflevector(a, b, (kLane / 2 + (kLane % 2 ? L : 0))...);
  *high = __builtin_shufflevector(a, b, (L / 2 + kLane / 2 + (kLane % 2 ? L : 0))...);
}

// Transposes kLanes vectors of kLanes: each perfect shuffle rotates the joint index by one bit.
template <class V>
inline void transpose(typename V::Reg* rows) {
  constexpr int L = V::kLanes;
#pragma GCC unroll 16
  for (int step = 1; step < L; step *= 2) {
    typename V::Reg next[L];
#pragma GCC unroll 16
    for (int i = 0; i < L / 2; ++i)
      interleave<V>(rows[i], rows[i + L / 2], &next[2 * i], &next[2 * i + 1], std::make_integer_sequence<int, L>());
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) rows[i] = next[i];
  }
}

template <class V, class S>
void pack_columns(const void* source, int64_t row_stride, int64_t col_stride, int64_t k, int64_t cols,
                  typename V::Scalar* dst) {
  using Reg = typename V::Reg;
  const S* src = static_cast<const S*>(source);
  constexpr int L = V::kLanes, kPanel = 2 * L;
  if (col_stride == 1) {
    if (cols == kPanel) {
      for (int64_t p = 0; p < k; ++p, src += row_stride, dst += kPanel) {
        // Rows may lie a page apart, where no hardware prefetches.
        __builtin_prefetch(src + 32 * row_stride, 0, 2);
        __builtin_prefetch(src + 32 * row_stride + L, 0, 2);
        V::store(dst, V::load(src));
        V::store(dst + L, V::load(src + L));
      }
    } else {
      const auto low = V::mask(cols < L ? int(cols) : L), high = V::mask(cols < L ? 0 : int(cols) - L);
      for (int64_t p = 0; p < k; ++p, src += row_stride, dst += kPanel) {
        V::store(dst, V::load(src, low));
        V::store(dst + L, cols > L ? V::load(src + L, high) : V::zero());
      }
    }
    return;
  }
  if (row_stride == 1) {
    for (int half = 0; half < 2; ++half) {
      for (int64_t p = 0; p < k; p += L) {
        const auto mask = V::mask(k - p < L ? int(k - p) : L);
        Reg block[L];
#pragma GCC unroll 16
        for (int j = 0; j < L; ++j) {
          const S* at = src + (half * L + j) * col_stride + p;
          block[j] = half * L + j < cols ? V::load(at, mask) : V::zero();
          __builtin_prefetch(at + 4 * L);
        }
        transpose<V>(block);
        const int64_t count = k - p < L ? k - p : L;
        for (int64_t i = 0; i < count; ++i) V::store(dst + (p + i) * kPanel + half * L, block[i]);
      }
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, dst += kPanel) {
    for (int64_t j = 0; j < kPanel; ++j)
      dst[j] = j < cols ? to_native(src[p * row_stride + j * col_stride]) : typename V::Scalar(0);
  }
}

// Panels of pairs from bf16 by any strides.
template <class V>
void pack_pair_columns(const void* source, int64_t row_stride, int64_t col_stride, int64_t k, int64_t cols,
                       void* target) {
  using Reg = typename V::Reg;
  typedef uint32_t Bits __attribute__((vector_size(sizeof(Reg))));
  constexpr int L = V::kLanes, kPanel = 2 * L;
  const BFloat16* src = static_cast<const BFloat16*>(source);
  float* dst = static_cast<float*>(target);
  if (col_stride == 1) {
    const auto low = V::mask(cols < L ? int(cols) : L), high = V::mask(cols < L ? 0 : int(cols) - L);
    for (int64_t p = 0; p < k; p += 2, src += 2 * row_stride, dst += kPanel) {
      const bool odd = p + 1 < k;
      const auto pair = [&](int64_t at, const auto& mask) __attribute__((always_inline)) {
        const Reg first = V::load(src + at, mask), second = odd ? V::load(src + row_stride + at, mask) : V::zero();
        V::store(dst + at, Reg(Bits(first) >> 16 | Bits(second)));
      };
      __builtin_prefetch(src + 32 * row_stride, 0, 2);
      __builtin_prefetch(src + 33 * row_stride, 0, 2);
      pair(0, low);
      if (cols > L)
        pair(L, high);
      else
        V::store(dst + L, V::zero());
    }
    return;
  }
  int64_t done = 0;
  if (row_stride == 1 && col_stride % 2 == 0) {
    // Pairs lie as they should: whole ones move as 32-bit elements.
    done = k / 2 * 2;
    pack_columns<V, float>(src, 1, col_stride / 2, k / 2, cols, dst);
  }
  uint16_t* out = static_cast<uint16_t*>(target) + done * kPanel;
  for (int64_t p = done; p < k; p += 2, out += 2 * kPanel) {
    for (int64_t j = 0; j < kPanel; ++j) {
      const BFloat16* at = src + p * row_stride + j * col_stride;
      out[2 * j] = j < cols ? at->bits : uint16_t(0);
      out[2 * j + 1] = j < cols && p + 1 < k ? at[row_stride].bits : uint16_t(0);
    }
  }
}

template <class V>
void load_any(const void* src, Storage storage, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols,
              typename V::Scalar* dst, int64_t dst_stride) {
  if (storage == kNative) load_rows<V, typename V::Scalar>(src, row_stride, col_stride, rows, cols, dst, dst_stride);
  if constexpr (sizeof(typename V::Scalar) == 4) {
    if (storage == kBFloat16) load_rows<V, BFloat16>(src, row_stride, col_stride, rows, cols, dst, dst_stride);
    if (storage == kHalf) load_rows<V, Half>(src, row_stride, col_stride, rows, cols, dst, dst_stride);
  }
}

template <class V>
void store_any(const typename V::Scalar* src, int64_t src_stride, int64_t rows, int64_t cols, void* dst,
               Storage storage, int64_t row_stride, int64_t col_stride) {
  if (storage == kNative) store_rows<V, typename V::Scalar>(src, src_stride, rows, cols, dst, row_stride, col_stride);
  if constexpr (sizeof(typename V::Scalar) == 4) {
    if (storage == kBFloat16) store_rows<V, BFloat16>(src, src_stride, rows, cols, dst, row_stride, col_stride);
    if (storage == kHalf) store_rows<V, Half>(src, src_stride, rows, cols, dst, row_stride, col_stride);
  }
}

template <class V>
void pack_any(const void* src, Storage storage, int64_t row_stride, int64_t col_stride, int64_t k, int64_t cols,
              typename V::Scalar* dst) {
  if (storage == kNative) pack_columns<V, typename V::Scalar>(src, row_stride, col_stride, k, cols, dst);
  if constexpr (sizeof(typename V::Scalar) == 4) {
    if (storage == kBFloat16) pack_columns<V, BFloat16>(src, row_stride, col_stride, k, cols, dst);
    if (storage == kHalf) pack_columns<V, Half>(src, row_stride, col_stride, k, cols, dst);
  }
}

template <class V>
inline constexpr int kRows16 = V::kRows < 8 ? V::kRows : 8;
// Splitting a pair takes registers.
template <class V>
inline constexpr int kRowsPairs = V::kRows * 6 / 7;

template <class V, class TB, int kLimit, int... kIndex>
constexpr void fill_micro(void (*(&table)[kMaxRows][kWidths])(const MicroArgs<typename V::Scalar>&),
                          std::integer_sequence<int, kIndex...>) {
  (
      [&] {
        constexpr int kRows = kIndex / kWidths + 1, kVectors = 1 << kIndex % kWidths;
        if constexpr (kRows <= kLimit && kRows * kVectors <= V::kAccumulators)
          table[kRows - 1][kIndex % kWidths] = micro_kernel<V, kRows, kVectors, TB>;
      }(),
      ...);
}

template <class V, int kLimit, int... kIndex>
constexpr void fill_pairs(void (*(&table)[kMaxRows][kWidths])(const MicroArgs<float>&),
                          std::integer_sequence<int, kIndex...>) {
  (
      [&] {
        constexpr int kRows = kIndex / kWidths + 1, kVectors = 1 << kIndex % kWidths;
        if constexpr (kRows <= kLimit && kVectors <= 2)
          table[kRows - 1][kIndex % kWidths] = pair_kernel<V, kRows, kVectors>;
      }(),
      ...);
}

template <class V, class TB, int... kIndex>
constexpr void fill_dot(void (*(&table)[kMaxDotRows])(const DotArgs<typename V::Scalar>&),
                        std::integer_sequence<int, kIndex...>) {
  ((table[kIndex] = dot_kernel<V, kIndex + 1, TB>), ...);
}

template <class V>
constexpr GemmCore<typename V::Scalar> make_core() {
  using T = typename V::Scalar;
  GemmCore<T> core{};
  core.lanes = V::kLanes;
  core.panel = 2 * V::kLanes;
  core.max_rows = V::kRows;
  core.max_rows_16 = kRows16<V>;
  constexpr auto kMicro = std::make_integer_sequence<int, kMaxRows * kWidths>();
  constexpr auto kDot = std::make_integer_sequence<int, kMaxDotRows>();
  fill_micro<V, T, V::kRows>(core.micro[kNative], kMicro);
  fill_dot<V, T>(core.dot[kNative], kDot);
  if constexpr (sizeof(T) == 4) {
    fill_micro<V, BFloat16, kRows16<V>>(core.micro[kBFloat16], kMicro);
    fill_micro<V, Half, kRows16<V>>(core.micro[kHalf], kMicro);
    core.max_rows_pairs = kRowsPairs<V>;
    core.pack_pairs = pack_pair_columns<V>;
    fill_pairs<V, kRowsPairs<V>>(core.micro[kPairs], kMicro);
    fill_dot<V, BFloat16>(core.dot[kBFloat16], kDot);
    fill_dot<V, Half>(core.dot[kHalf], kDot);
    core.encoded = &kEncodedCore<V>;
  }
  core.load = load_any<V>;
  core.store = store_any<V>;
  core.pack_panel = pack_any<V>;
  return core;
}

}  // namespace
}  // namespace sinter::runtime::gemm_detail
