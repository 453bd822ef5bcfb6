#pragma once
// The kernels over vectors of kBytes in the compiler's own notation, instantiated by one source file per instruction set.
// Everything has internal linkage and nothing calls the standard library.
#include <cstdint>
#include <utility>

#include "sinter/runtime/cpu/fft/butterflies.h"
#include "sinter/runtime/cpu/fft/core.h"

namespace sinter::runtime::fft_detail {
namespace {

template <class T, int kBytes>
struct Vector {
  typedef T Reg __attribute__((vector_size(kBytes)));
  using C = Complex<T, kBytes>;
  static constexpr int kLanes = kBytes / int(sizeof(T));

  [[gnu::always_inline]] static inline Reg load(const T* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  [[gnu::always_inline]] static inline void store(T* p, Reg v) { __builtin_memcpy(p, &v, sizeof v); }
  [[gnu::always_inline]] static inline Reg set(T v) { return v - Reg{}; }

  // Pairs of parts in two registers, and back.
  [[gnu::always_inline]] static inline C separate(Reg a, Reg b) {
    return [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
      return C{__builtin_shufflevector(a, b, (2 * kLane)...), __builtin_shufflevector(a, b, (2 * kLane + 1)...)};
    }(std::make_integer_sequence<int, kLanes>());
  }
  [[gnu::always_inline]] static inline void interleave(C x, Reg* low, Reg* high) {
    [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
      *low = __builtin_shufflevector(x.re, x.im, (kLane / 2 + (kLane % 2 ? kLanes : 0))...);
      *high = __builtin_shufflevector(x.re, x.im, (kLanes / 2 + kLane / 2 + (kLane % 2 ? kLanes : 0))...);
    }(std::make_integer_sequence<int, kLanes>());
  }
  [[gnu::always_inline]] static inline Reg reversed(Reg a) {
    return [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
      return __builtin_shufflevector(a, a, (kLanes - 1 - kLane)...);
    }(std::make_integer_sequence<int, kLanes>());
  }

  // A square of kLanes registers, bit by bit of the numbers of row and lane.
  template <int kBit = 1>
  [[gnu::always_inline]] static inline void transpose(Reg* rows) {
    if constexpr (kBit < kLanes) {
      unroll<kLanes>([&](auto i) __attribute__((always_inline)) {
        if constexpr ((i & kBit) == 0) {
          const Reg a = rows[i], b = rows[i + kBit];
          [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
            rows[i] = __builtin_shufflevector(a, b, (kLane & kBit ? kLanes + kLane - kBit : kLane)...);
            rows[i + kBit] = __builtin_shufflevector(a, b, (kLane & kBit ? kLanes + kLane : kLane + kBit)...);
          }(std::make_integer_sequence<int, kLanes>());
        }
      });
      transpose<kBit * 2>(rows);
    }
  }
};

// How a stage reads and writes its elements.
template <class V, class T>
struct PlainInput {
  const T *re, *im;
  explicit PlainInput(const StageArgs<T>& args) : re(args.in.re), im(args.in.im) {}
  [[gnu::always_inline]] typename V::C operator()(int64_t at) const { return {V::load(re + at), V::load(im + at)}; }
};
template <class V, class T>
struct PairInput {
  const T* data;
  typename V::Reg re, im;
  explicit PairInput(const StageArgs<T>& args)
      : data(args.in.re), re(V::set(args.of_input.re)), im(V::set(args.of_input.im)) {}
  [[gnu::always_inline]] typename V::C operator()(int64_t at) const {
    const auto x = V::separate(V::load(data + at), V::load(data + at + V::kLanes));
    return {x.re * re, x.im * im};
  }
};
template <class V, class T>
struct PlainOutput {
  T *re, *im;
  explicit PlainOutput(const StageArgs<T>& args) : re(args.out.re), im(args.out.im) {}
  [[gnu::always_inline]] void operator()(int64_t at, typename V::C x) const {
    V::store(re + at, x.re);
    V::store(im + at, x.im);
  }
};
template <class V, class T>
struct PairOutput {
  T* data;
  typename V::Reg re, im;
  explicit PairOutput(const StageArgs<T>& args)
      : data(args.out.re), re(V::set(args.of_output.re)), im(V::set(args.of_output.im)) {}
  [[gnu::always_inline]] void operator()(int64_t at, typename V::C x) const {
    typename V::Reg low, high;
    V::interleave({x.re * re, x.im * im}, &low, &high);
    V::store(data + at, low);
    V::store(data + at + V::kLanes, high);
  }
};

template <class T, int kBytes, int kRadix, template <class, class> class Input, template <class, class> class Output>
void stage(const StageArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using C = typename V::C;
  const Input<V, T> input(args);
  const Output<V, T> output(args);
  const int64_t in_stride = args.in.stride, out_stride = args.out.stride, span = args.span;
  const int64_t in_step = span * args.groups * in_stride, out_step = span * out_stride;
  // The first group, which is all of the last stage, has factors of one.
  for (int64_t k = 0; k < span; ++k) {
    C x[kRadix];
    unroll<kRadix>([&](auto q) __attribute__((always_inline)) { x[q] = input(k * in_stride + q * in_step); });
    Butterfly<kRadix, T, kBytes>::run(x);
    unroll<kRadix>([&](auto p) __attribute__((always_inline)) { output(k * out_stride + p * out_step, x[p]); });
  }
  const T* w = args.twiddles + 2 * (kRadix - 1);
  for (int64_t j = 1; j < args.groups; ++j, w += 2 * (kRadix - 1)) {
    const int64_t from = j * span * in_stride, to = j * kRadix * span * out_stride;
    for (int64_t k = 0; k < span; ++k) {
      C x[kRadix];
      unroll<kRadix>([&](auto q) __attribute__((always_inline)) { x[q] = input(from + k * in_stride + q * in_step); });
      Butterfly<kRadix, T, kBytes>::run(x);
      output(to + k * out_stride, x[0]);
      unroll<kRadix - 1>([&](auto p) __attribute__((always_inline)) {
        output(to + k * out_stride + (p + 1) * out_step, times(x[p + 1], Number<T>{w[2 * p], w[2 * p + 1]}));
      });
    }
  }
}

// Any odd radix up to kMaxPrime. Sums and differences of elements q and radix - q stay in memory.
template <class T, int kBytes>
void any_radix(const StageArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using C = typename V::C;
  const int64_t radix = args.radix, half = radix / 2, span = args.span;
  const int64_t in_step = span * args.groups * args.in.stride, out_step = span * args.out.stride;
  const PlainInput<V, T> input(args);
  const PlainOutput<V, T> output(args);
  C sums[kMaxPrime / 2 + 1], differences[kMaxPrime / 2 + 1];
  for (int64_t j = 0; j < args.groups; ++j) {
    const T* w = args.twiddles + 2 * (radix - 1) * j;
    for (int64_t k = 0; k < span; ++k) {
      const int64_t from = (j * span + k) * args.in.stride, to = (j * radix * span + k) * args.out.stride;
      const C first = input(from);
      C total = first;
      for (int64_t q = 0; q < half; ++q) {
        const C a = input(from + (q + 1) * in_step), b = input(from + (radix - 1 - q) * in_step);
        sums[q] = a + b;
        differences[q] = a - b;
        total = total + sums[q];
      }
      output(to, total);
      const auto write = [&](int64_t p, C even, C odd) __attribute__((always_inline)) {
        const C low = even + turned(odd), high = even - turned(odd);
        const T *at = w + 2 * (p - 1), *mirror = w + 2 * (radix - p - 1);
        output(to + p * out_step, times(low, Number<T>{at[0], at[1]}));
        output(to + (radix - p) * out_step, times(high, Number<T>{mirror[0], mirror[1]}));
      };
      int64_t p = 1;
      const T* m = args.matrix;
      for (; p + 1 <= half; p += 2, m += 4 * half) {
        C even[2] = {first, first}, odd[2] = {};
        for (int64_t q = 0; q < half; ++q) {
          const C s = sums[q], d = differences[q];
          unroll<2>([&](auto i) __attribute__((always_inline)) {
            const T* at = m + 2 * (i * half + q);
            even[i] = {even[i].re + s.re * at[0], even[i].im + s.im * at[0]};
            odd[i] = {odd[i].re + d.re * at[1], odd[i].im + d.im * at[1]};
          });
        }
        write(p, even[0], odd[0]);
        write(p + 1, even[1], odd[1]);
      }
      if (p <= half) {
        C even = first, odd = {};
        for (int64_t q = 0; q < half; ++q) {
          even = {even.re + sums[q].re * m[2 * q], even.im + sums[q].im * m[2 * q]};
          odd = {odd.re + differences[q].re * m[2 * q + 1], odd.im + differences[q].im * m[2 * q + 1]};
        }
        write(p, even, odd);
      }
    }
  }
}

template <class T, int kBytes>
void move(const MoveArgs<T>& args) {
  using V = Vector<T, kBytes>;
  const auto re = V::set(args.factors.re), im = V::set(args.factors.im);
  const Vectors<const T> in = args.in;
  const Vectors<T> out = args.out;
  for (int64_t i = 0; i < args.count; ++i) {
    const T* from = in.re + i * in.stride;
    T* to = out.re + i * out.stride;
    const auto x = in.im ? typename V::C{V::load(from), V::load(in.im + i * in.stride)}
                         : V::separate(V::load(from), V::load(from + V::kLanes));
    if (out.im) {
      V::store(to, x.re * re);
      V::store(out.im + i * out.stride, x.im * im);
    } else {
      typename V::Reg low, high;
      V::interleave({x.re * re, x.im * im}, &low, &high);
      V::store(to, low);
      V::store(to + V::kLanes, high);
    }
  }
}

// Squares of kLanes lines and as many numbers; the last one overlaps the one before where it has to.
template <class T, int kBytes, bool kReal>
void load_rows(const RowArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  const Reg re = V::set(args.factors.re), im = V::set(args.factors.im);
  const T* rows[L];
  for (int i = 0; i < L; ++i) rows[i] = args.rows + args.offsets[i < args.lines ? i : args.lines - 1];
  const int64_t numbers = kReal ? args.n : 2 * args.n;
  for (int64_t next = 0; next < numbers; next += L) {
    const int64_t at = next + L <= numbers ? next : numbers - L;
    Reg square[L];
    unroll<L>([&](auto i) __attribute__((always_inline)) { square[i] = V::load(rows[i] + at); });
    V::transpose(square);
    T* to = args.block + at * L * (kReal ? 2 : 1);
    unroll<L>([&](auto i) __attribute__((always_inline)) {
      if constexpr (kReal) {
        V::store(to + i * 2 * L, square[i] * re);
        V::store(to + i * 2 * L + L, Reg{});
      } else {
        V::store(to + i * L, square[i] * (i % 2 ? im : re));
      }
    });
  }
}

template <class T, int kBytes, bool kReal>
void store_rows(const RowArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  const Reg re = V::set(args.factors.re), im = V::set(args.factors.im);
  const int64_t numbers = kReal ? args.n : 2 * args.n;
  for (int64_t next = 0; next < numbers; next += L) {
    const int64_t at = next + L <= numbers ? next : numbers - L;
    const T* from = args.block + at * L * (kReal ? 2 : 1);
    Reg square[L];
    unroll<L>([&](auto i) __attribute__((always_inline)) {
      square[i] = V::load(from + i * (kReal ? 2 : 1) * L) * (!kReal && i % 2 ? im : re);
    });
    V::transpose(square);
    if (args.lines == L) {
      unroll<L>([&](auto i) __attribute__((always_inline)) { V::store(args.rows + args.offsets[i] + at, square[i]); });
    } else {
      unroll<L>([&](auto i) __attribute__((always_inline)) {
        if (i < args.lines) V::store(args.rows + args.offsets[i] + at, square[i]);
      });
    }
  }
}

template <class T, int kBytes>
void turn(const TurnArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using Reg = typename V::Reg;
  constexpr int L = V::kLanes;
  const int64_t size = args.rows * 2 * L;  // of a block of columns
  for (int64_t column = 0, b = 0; column < args.n; column += L, ++b) {
    Reg re[L], im[L];
    unroll<L>([&](auto i) __attribute__((always_inline)) {
      // Rows that do not exist repeat the last one.
      const int64_t row = args.first + i < args.rows ? args.first + i : args.rows - 1;
      const T* from = args.columns + b * size + row * 2 * L;
      const T* by = args.twiddles + (args.steps ? 0 : b * size) + row * 2 * L;
      typename V::C w{V::load(by), V::load(by + L)};
      if (args.steps) {
        const T* step = args.steps + 2 * (b * args.rows + row);
        w = times(w, Number<T>{step[0], step[1]});
      }
      const auto x = times(typename V::C{V::load(from), V::load(from + L)}, w);
      re[i] = x.re;
      im[i] = x.im;
    });
    V::transpose(re);
    V::transpose(im);
    T* to = args.block + column * 2 * L;
    const int64_t count = args.n - column;
    unroll<L>([&](auto i) __attribute__((always_inline)) {
      if (i < count) {
        V::store(to + i * 2 * L, re[i]);
        V::store(to + i * 2 * L + L, im[i]);
      }
    });
  }
}

template <class T, int kBytes>
void multiply(const MultiplyArgs<T>& args) {
  using V = Vector<T, kBytes>;
  const auto in_sign = V::set(args.in_sign), out_sign = V::set(args.out_sign);
  const int64_t step = args.along ? V::kLanes : 1;
  for (int64_t i = 0; i < args.count; i += step) {
    const int64_t from = i * args.in.stride, to = i * args.out.stride;
    const typename V::C x{V::load(args.in.re + from), V::load(args.in.im + from) * in_sign};
    const auto by_re = args.along ? V::load(args.by_re + i) : V::set(args.by_re[i]);
    const auto by_im = args.along ? V::load(args.by_im + i) : V::set(args.by_im[i]);
    const auto y = times(x, typename V::C{by_re, by_im});
    V::store(args.out.re + to, y.re);
    V::store(args.out.im + to, y.im * out_sign);
  }
}

template <class T, int kBytes>
void combine(const CombineArgs<T>& args) {
  using V = Vector<T, kBytes>;
  using C = typename V::C;
  const int64_t step = args.along ? V::kLanes : 1;
  for (int64_t k = 0; k < args.count; k += step) {
    const int64_t at = k * args.in.stride, mirror = (args.last - k - step + 1) * args.in.stride;
    const C a{V::load(args.in.re + at), V::load(args.in.im + at)};
    C b{V::load(args.in.re + mirror), -V::load(args.in.im + mirror)}, by;
    if (args.along) {
      b = {V::reversed(b.re), V::reversed(b.im)};
      by = {V::load(args.by_re + k), V::load(args.by_im + k)};
    } else {
      by = {V::set(args.by_re[k]), V::set(args.by_im[k])};
    }
    const C y = a + b + times(a - b, by);
    V::store(args.out.re + k * args.out.stride, y.re);
    V::store(args.out.im + k * args.out.stride, y.im);
  }
}

template <class T, int kBytes, int kRadix>
Stage<T> stage_of(int variant) {
  if (variant == kPlain) return stage<T, kBytes, kRadix, PlainInput, PlainOutput>;
  if constexpr (kRadix % 4 == 0) {
    if (variant == kPairsIn) return stage<T, kBytes, kRadix, PairInput, PlainOutput>;
    if (variant == kPairsOut) return stage<T, kBytes, kRadix, PlainInput, PairOutput>;
    return stage<T, kBytes, kRadix, PairInput, PairOutput>;
  }
  return nullptr;
}

template <class T, int kBytes>
Stage<T> find_stage(int64_t radix, int variant) {
  switch (radix) {
    case 2: return stage_of<T, kBytes, 2>(variant);
    case 3: return stage_of<T, kBytes, 3>(variant);
    case 4: return stage_of<T, kBytes, 4>(variant);
    case 5: return stage_of<T, kBytes, 5>(variant);
    case 7: return stage_of<T, kBytes, 7>(variant);
    case 8: return stage_of<T, kBytes, 8>(variant);
    case 16: return stage_of<T, kBytes, 16>(variant);
    default: return variant == kPlain ? any_radix<T, kBytes> : nullptr;
  }
}

template <class T, int kBytes>
constexpr FftCore<T> make_core() {
  return {.lanes = kBytes / int(sizeof(T)),
          .stage = find_stage<T, kBytes>,
          .move = move<T, kBytes>,
          .load_rows = load_rows<T, kBytes, false>,
          .store_rows = store_rows<T, kBytes, false>,
          .load_real_rows = load_rows<T, kBytes, true>,
          .store_real_rows = store_rows<T, kBytes, true>,
          .turn = turn<T, kBytes>,
          .multiply = multiply<T, kBytes>,
          .combine = combine<T, kBytes>};
}

}  // namespace
}  // namespace sinter::runtime::fft_detail
