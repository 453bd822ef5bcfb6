#pragma once
// Transforms of a few complex vectors in registers. Everything has internal linkage, since it is compiled per instruction set.
#include <cstdint>
#include <utility>

namespace sinter::runtime::fft_detail {
namespace {

// Calls f(0), f(1) ... with constants, so that arrays indexed by them become registers.
template <int kCount, class F>
[[gnu::always_inline]] inline void unroll(F&& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, kIndex>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// The type of a vector is lost as a template argument, so that its element and size stand for it.
template <class T, int kBytes>
struct Complex {
  typedef T Reg __attribute__((vector_size(kBytes)));
  Reg re, im;
};
template <class T, int kBytes>
[[gnu::always_inline]] inline Complex<T, kBytes> operator+(const Complex<T, kBytes>& a, const Complex<T, kBytes>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T, int kBytes>
[[gnu::always_inline]] inline Complex<T, kBytes> operator-(const Complex<T, kBytes>& a, const Complex<T, kBytes>& b) {
  return {a.re - b.re, a.im - b.im};
}
// By a vector or one number for all lanes.
template <class T, int kBytes, class W>
[[gnu::always_inline]] inline Complex<T, kBytes> times(const Complex<T, kBytes>& a, const W& w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
template <class T>
struct Number {
  T re, im;
};
// Times -i.
template <class T, int kBytes>
[[gnu::always_inline]] inline Complex<T, kBytes> turned(const Complex<T, kBytes>& a) {
  return {a.im, -a.re};
}

// sin(pi k / 8).
inline constexpr long double kSine8[] = {0.0L, 0.38268343236508977172845998403039886676L, 0.70710678118654752440084436210484903928L,
                                         0.92387953251128675612818318939678828682L, 1.0L};

// cos and sin of 2 pi k / n for the odd radices.
template <int kRadix>
struct Roots;
template <>
struct Roots<3> {
  static constexpr long double kCos[] = {1.0L, -0.5L};
  static constexpr long double kSin[] = {0.0L, 0.86602540378443864676372317075293618347L};
};
template <>
struct Roots<5> {
  static constexpr long double kCos[] = {1.0L, 0.30901699437494742410229341718281905886L,
                                         -0.80901699437494742410229341718281905886L};
  static constexpr long double kSin[] = {0.0L, 0.95105651629515357211643933337938214340L,
                                         0.58778525229247312916870595463907276860L};
};
template <>
struct Roots<7> {
  static constexpr long double kCos[] = {1.0L, 0.62348980185873353052500488400423981063L,
                                         -0.22252093395631440428890256449679475947L,
                                         -0.90096886790241912623610231950744505116L};
  static constexpr long double kSin[] = {0.0L, 0.78183148246802980870844452667405775023L,
                                         0.97492791218182360701813168299393121723L,
                                         0.43388373911755812047576833284835875461L};
};

// x becomes its transform. Odd radices by sums and differences of elements k and radix - k.
template <int kRadix, class T, int kBytes>
struct Butterfly {
  using C = Complex<T, kBytes>;
  [[gnu::always_inline]] static inline void run(C* x) {
    constexpr int kHalf = kRadix / 2;
    using R = Roots<kRadix>;
    C sum[kHalf], difference[kHalf], total = x[0];
    const C first = x[0];
    unroll<kHalf>([&](auto j) __attribute__((always_inline)) {
      sum[j] = x[j + 1] + x[kRadix - 1 - j];
      difference[j] = x[j + 1] - x[kRadix - 1 - j];
      total = total + sum[j];
    });
    x[0] = total;
    unroll<kHalf>([&](auto p) __attribute__((always_inline)) {
      C even = first, odd{};
      unroll<kHalf>([&](auto j) __attribute__((always_inline)) {
        constexpr int kAt = (p + 1) * (j + 1) % kRadix;
        constexpr T c = T(R::kCos[kAt <= kHalf ? kAt : kRadix - kAt]);
        constexpr T s = T(kAt <= kHalf ? R::kSin[kAt] : -R::kSin[kRadix - kAt]);
        even = {even.re + sum[j].re * c, even.im + sum[j].im * c};
        if constexpr (j == 0)
          odd = {difference[j].re * s, difference[j].im * s};
        else
          odd = {odd.re + difference[j].re * s, odd.im + difference[j].im * s};
      });
      x[p + 1] = even + turned(odd);
      x[kRadix - 1 - p] = even - turned(odd);
    });
  }
};

template <class T, int kBytes>
struct Butterfly<2, T, kBytes> {
  [[gnu::always_inline]] static inline void run(Complex<T, kBytes>* x) {
    const auto a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  }
};

template <class T, int kBytes>
struct Butterfly<4, T, kBytes> {
  [[gnu::always_inline]] static inline void run(Complex<T, kBytes>* x) {
    const auto a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }
};

template <class T, int kBytes>
struct Butterfly<8, T, kBytes> {
  [[gnu::always_inline]] static inline void run(Complex<T, kBytes>* x) {
    constexpr T h = T(kSine8[2]);
    Complex<T, kBytes> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    Butterfly<4, T, kBytes>::run(even);
    Butterfly<4, T, kBytes>::run(odd);
    odd[1] = {(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
    odd[2] = turned(odd[2]);
    odd[3] = {(odd[3].im - odd[3].re) * h, (odd[3].re + odd[3].im) * -h};
    unroll<4>([&](auto k) __attribute__((always_inline)) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    });
  }
};

template <class T, int kBytes>
struct Butterfly<16, T, kBytes> {
  [[gnu::always_inline]] static inline void run(Complex<T, kBytes>* x) {
    Complex<T, kBytes> y[16];  // four of the columns of a 4 x 4 matrix
    unroll<4>([&](auto j) __attribute__((always_inline)) {
      Complex<T, kBytes> column[4] = {x[j], x[j + 4], x[j + 8], x[j + 12]};
      Butterfly<4, T, kBytes>::run(column);
      unroll<4>([&](auto p) __attribute__((always_inline)) {
        constexpr int kAt = j * p;  // w^kAt with w = exp(-2 pi i / 16)
        auto& to = y[4 * p + j];
        if constexpr (kAt == 0) {
          to = column[p];
        } else if constexpr (kAt == 4) {
          to = turned(column[p]);
        } else if constexpr (kAt % 4 == 2) {
          constexpr T h = T(kSine8[2]);
          if constexpr (kAt == 2)
            to = {(column[p].re + column[p].im) * h, (column[p].im - column[p].re) * h};
          else
            to = {(column[p].im - column[p].re) * h, (column[p].re + column[p].im) * -h};
        } else {
          constexpr int kFold = kAt % 8;
          constexpr long double c = kFold <= 4 ? kSine8[4 - kFold] : -kSine8[kFold - 4];
          constexpr long double s = kFold <= 4 ? kSine8[kFold] : kSine8[8 - kFold];
          constexpr int kSign = kAt < 8 ? 1 : -1;
          to = times(column[p], Number<T>{T(kSign * c), T(-kSign * s)});
        }
      });
    });
    unroll<4>([&](auto p) __attribute__((always_inline)) {
      Butterfly<4, T, kBytes>::run(y + 4 * p);
      unroll<4>([&](auto k) __attribute__((always_inline)) { x[p + 4 * k] = y[4 * p + k]; });
    });
  }
};

}  // namespace
}  // namespace sinter::runtime::fft_detail
