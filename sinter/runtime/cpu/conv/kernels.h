#pragma once
// The kernels over vectors of kBytes in the compiler's own notation, instantiated by one source file per instruction
// set. As in gemm/kernels.h everything has internal linkage and nothing calls the standard library.
#include <cstdint>
#include <utility>

#include "sinter/runtime/cpu/conv/core.h"

namespace sinter::runtime::conv_detail {
namespace {

template <class T, int kBytes>
struct Vector {
  typedef T Reg __attribute__((vector_size(kBytes)));
  typedef IndexOf<T> Bits __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / int(sizeof(T));

  static Reg load(const T* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  static void store(T* p, Reg v) { __builtin_memcpy(p, &v, sizeof v); }
  static Reg set(T v) { return v - Reg{}; }
  // The first count < kLanes elements, in pieces of powers of two.
  template <int kPiece = kLanes / 2>
  static void store_part(void* to, const void* from, int64_t count) {
    constexpr auto kSize = kPiece * sizeof(T);
    if (count & kPiece) {
      __builtin_memcpy(to, from, kSize);
      to = static_cast<char*>(to) + kSize;
      from = static_cast<const char*>(from) + kSize;
    }
    if constexpr (kPiece > 1) store_part<kPiece / 2>(to, from, count);
  }
  // Set in the first `count` lanes.
  static Bits first_lanes(int64_t count) { return first_lanes(count, kAll); }
  template <int... kLane>
  static Bits first_lanes(int64_t count, std::integer_sequence<int, kLane...>) {
    return Bits{kLane...} < IndexOf<T>(count) - Bits{};
  }

  template <int... kLane>
  static void interleave(Reg a, Reg b, Reg* low, Reg* high, std::integer_sequence<int, kLane...>) {
    *low = __builtin_shufflevector(a, b, (kLane / 2 + (kLane % 2 ? kLanes : 0))...);
    *high = __builtin_shufflevector(a, b, (kLanes / 2 + kLane / 2 + (kLane % 2 ? kLanes : 0))...);
  }
  template <int... kLane>
  static void separate(Reg a, Reg b, Reg* even, Reg* odd, std::integer_sequence<int, kLane...>) {
    *even = __builtin_shufflevector(a, b, (2 * kLane)...);
    *odd = __builtin_shufflevector(a, b, (2 * kLane + 1)...);
  }
  static constexpr std::make_integer_sequence<int, kLanes> kAll{};
};

template <class T, int kBytes>
void fill(T* dst, int64_t count, T value) {
  using V = Vector<T, kBytes>;
  const auto v = V::set(value);
  int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) V::store(dst + i, v);
  for (; i < count; ++i) dst[i] = value;
}

// Pairs of neighbours to two places and back, by narrower and narrower vectors; gives how many were moved.
template <class T, int kBytes>
inline int64_t split_pairs(const T* src, int64_t count, T* a, T* b) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  int64_t i = 0;
  for (; i + 2 * L <= count; i += 2 * L) {
    typename V::Reg even, odd;
    V::separate(V::load(src + i), V::load(src + i + L), &even, &odd, V::kAll);
    V::store(a + i / 2, even);
    V::store(b + i / 2, odd);
  }
  if constexpr (kBytes > 16) i += split_pairs<T, kBytes / 2>(src + i, count - i, a + i / 2, b + i / 2);
  return i;
}
template <class T, int kBytes>
inline int64_t join_pairs(const T* a, const T* b, int64_t count, T* dst) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  int64_t i = 0;
  for (; i + 2 * L <= count; i += 2 * L) {
    typename V::Reg low, high;
    V::interleave(V::load(a + i / 2), V::load(b + i / 2), &low, &high, V::kAll);
    V::store(dst + i, low);
    V::store(dst + i + L, high);
  }
  if constexpr (kBytes > 16) i += join_pairs<T, kBytes / 2>(a + i / 2, b + i / 2, count - i, dst + i);
  return i;
}

template <class T, int kBytes>
void split(const T* src, int64_t count, int64_t stride, int64_t first, T* dst, int64_t pitch) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  int64_t i = 0;
  if (stride == 1) {
    for (; i + L <= count; i += L) V::store(dst + first + i, V::load(src + i));
    for (; i < count; ++i) dst[first + i] = src[i];
    return;
  }
  if (stride == 2) {
    T *a = dst + first % 2 * pitch + first / 2, *b = dst + (first + 1) % 2 * pitch + (first + 1) / 2;
    i = split_pairs<T, kBytes>(src, count, a, b);
  }
  int64_t phase = (first + i) % stride, place = (first + i) / stride;
  for (; i < count; ++i) {
    dst[phase * pitch + place] = src[i];
    if (++phase == stride) phase = 0, ++place;
  }
}

template <class T, int kBytes>
void join(const T* src, int64_t pitch, int64_t stride, int64_t first, int64_t count, T* dst) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  int64_t i = 0;
  if (stride == 1) {
    for (; i + L <= count; i += L) V::store(dst + i, V::load(src + first + i));
    for (; i < count; ++i) dst[i] = src[first + i];
    return;
  }
  if (stride == 2) {
    const T *a = src + first % 2 * pitch + first / 2, *b = src + (first + 1) % 2 * pitch + (first + 1) / 2;
    i = join_pairs<T, kBytes>(a, b, count, dst);
  }
  int64_t phase = (first + i) % stride, place = (first + i) / stride;
  for (; i < count; ++i) {
    dst[i] = src[phase * pitch + place];
    if (++phase == stride) phase = 0, ++place;
  }
}

template <class T, int kBytes>
void gather(const GatherArgs<T>& args) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  int64_t tap = args.taps_first ? args.first_row / args.channels : args.first_row % args.tap_count;
  int64_t channel = args.taps_first ? args.first_row % args.channels : args.first_row / args.tap_count;
  T* dst = args.dst;
  for (int64_t row = 0; row < args.rows; ++row, dst += args.panel) {
    const T* base = args.image + channel * args.channel_stride + args.taps[tap];
    if (args.taps_first) {
      if (++channel == args.channels) channel = 0, ++tap;
    } else if (++tap == args.tap_count) {
      tap = 0, ++channel;
    }
    T* to = dst;
    if (row + 1 < args.rows) {
      // Whole vectors: what hangs over is overwritten by the next segment or row.
      for (int64_t s = 0; s < args.segment_count; ++s) {
        const T* from = base + args.segments[s].offset;
        const int64_t count = args.segments[s].count;
        for (int64_t i = 0; i < count; i += L) V::store(to + i, V::load(from + i));
        to += count;
      }
      for (int64_t i = args.cols; i < args.panel; i += L) V::store(dst + i, typename V::Reg{});
    } else {
      for (int64_t s = 0; s < args.segment_count; ++s) {
        const T* from = base + args.segments[s].offset;
        for (int64_t i = 0; i < args.segments[s].count; ++i) *to++ = from[i];
      }
      for (int64_t i = args.cols; i < args.panel; ++i) dst[i] = T(0);
    }
  }
}

struct Weighted {
  template <class R, class T>
  static R first(R x, T w) {
    return x * w;
  }
  template <class R, class T>
  static R next(R acc, R x, T w) {
    return acc + x * w;
  }
};
struct Sum {
  template <class R, class T>
  static R first(R x, T) {
    return x;
  }
  template <class R, class T>
  static R next(R acc, R x, T) {
    return acc + x;
  }
};
struct Max {
  template <class R, class T>
  static R first(R x, T) {
    return x;
  }
  template <class R, class T>
  static R next(R acc, R x, T) {
    const R larger = acc > x ? acc : x;  // x where either is NaN
    return acc == acc ? larger : acc;
  }
};

template <class T, int kBytes, class F, int kVectors>
inline void combine(const WindowArgs<T>& args, const T* src, typename Vector<T, kBytes>::Reg* acc) {
  using V = Vector<T, kBytes>;
  const T* at = src + args.taps[0];
  const T first = args.weights ? args.weights[0] : T(1);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) acc[v] = F::first(V::load(at + v * V::kLanes), first);
  for (int64_t t = 1; t < args.tap_count; ++t) {
    at = src + args.taps[t];
    const T w = args.weights ? args.weights[t] : T(1);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[v] = F::next(acc[v], V::load(at + v * V::kLanes), w);
  }
}

template <class T, int kBytes, class F>
void window(const WindowArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  const T* src = args.src;
  T* dst = args.dst;
  const int64_t count = args.count;
  for (int64_t line = 0; line < args.lines; ++line, src += args.src_stride, dst += args.dst_stride) {
    int64_t i = 0;
    Reg acc[4];
    for (; i + 4 * L <= count; i += 4 * L) {
      combine<T, kBytes, F, 4>(args, src + i, acc);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) V::store(dst + i + v * L, acc[v]);
    }
    if (i + 2 * L <= count) {
      combine<T, kBytes, F, 2>(args, src + i, acc);
      V::store(dst + i, acc[0]);
      V::store(dst + i + L, acc[1]);
      i += 2 * L;
    }
    if (i + L <= count) {
      combine<T, kBytes, F, 1>(args, src + i, acc);
      V::store(dst + i, acc[0]);
      i += L;
    }
    if (i < count) {
      combine<T, kBytes, F, 1>(args, src + i, acc);
      // Where the lines lie together, what hangs over is overwritten by the next.
      if (args.dst_stride == count && (args.lines - line) * count - i >= L)
        V::store(dst + i, acc[0]);
      else
        V::store_part(dst + i, acc, count - i);
    }
  }
}

template <class T, int kBytes>
void argmax(const WindowArgs<T>& args, IndexOf<T>* best) {
  using V = Vector<T, kBytes>;
  using Reg = typename V::Reg;
  using Bits = typename V::Bits;
  constexpr int L = V::kLanes;
  const T* src = args.src;
  for (int64_t line = 0; line < args.lines; ++line, src += args.src_stride, best += args.dst_stride) {
    for (int64_t i = 0; i < args.count; i += L) {
      Reg value = V::load(src + i + args.taps[0]);
      Bits index{};
      for (int64_t t = 1; t < args.tap_count; ++t) {
        const Reg x = V::load(src + i + args.taps[t]);
        const Bits wins = (x > value) | ((x != x) & (value == value));
        value = wins ? x : value;
        index = wins ? IndexOf<T>(t) - Bits{} : index;
      }
      if (i + L <= args.count || (args.dst_stride == args.count && (args.lines - line) * args.count - i >= L))
        __builtin_memcpy(best + i, &index, sizeof index);
      else
        V::store_part(best + i, &index, args.count - i);
    }
  }
}

template <class T, int kBytes>
void spread(const WindowArgs<T>& args) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  const T* src = args.src;
  T* dst = args.dst;
  const int64_t count = args.count, whole = count / L * L;
  const auto tail = V::first_lanes(count - whole);
  for (int64_t line = 0; line < args.lines; ++line, src += args.src_stride, dst += args.dst_stride) {
    for (int64_t t = 0; t < args.tap_count; ++t) {
      T* to = dst + args.taps[t];
      const auto w = V::set(args.weights[t]);
      for (int64_t i = 0; i < whole; i += L) V::store(to + i, V::load(to + i) + V::load(src + i) * w);
      if (whole < count) {
        const auto before = V::load(to + whole);
        V::store(to + whole, tail ? before + V::load(src + whole) * w : before);
      }
    }
  }
}

template <class T, int kBytes>
void dots(const WindowArgs<T>& args, T* sums) {
  using V = Vector<T, kBytes>;
  constexpr int L = V::kLanes;
  const int64_t count = args.count, whole = count / L * L;
  const auto tail = V::first_lanes(count - whole);
  for (int64_t t = 0; t < args.tap_count; ++t) {
    typename V::Reg acc{}, other{};
    const T *src = args.src + args.taps[t], *by = args.dst;
    for (int64_t line = 0; line < args.lines; ++line, src += args.src_stride, by += args.dst_stride) {
      int64_t i = 0;
      for (; i + 2 * L <= whole; i += 2 * L) {
        acc = acc + V::load(src + i) * V::load(by + i);
        other = other + V::load(src + i + L) * V::load(by + i + L);
      }
      if (i < whole) acc = acc + V::load(src + i) * V::load(by + i);
      if (whole < count) other = tail ? other + V::load(src + whole) * V::load(by + whole) : other;
    }
    acc = acc + other;
    T total = T(0);
    for (int i = 0; i < L; ++i) total += acc[i];
    sums[t] += total;
  }
}

template <class T, int kBytes>
constexpr ConvCore<T> make_core() {
  return {
      fill<T, kBytes>,        split<T, kBytes>,       join<T, kBytes>,   gather<T, kBytes>, window<T, kBytes, Weighted>,
      window<T, kBytes, Sum>, window<T, kBytes, Max>, argmax<T, kBytes>, spread<T, kBytes>, dots<T, kBytes>};
}

}  // namespace
}  // namespace sinter::runtime::conv_detail
