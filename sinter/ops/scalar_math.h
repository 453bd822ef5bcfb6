#pragma once
// The functions that pointwise bodies may use, on the host: T is double or int64_t. The generated code's prelude
// (codegen/cpu/prelude.embed) has the same names; a body is one text for both.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sinter/ops/philox.h"

namespace sinter::scalar_math {

template <class T> T lt(T a, T b) { return a < b; }
template <class T> T le(T a, T b) { return a <= b; }
template <class T> T gt(T a, T b) { return a > b; }
template <class T> T ge(T a, T b) { return a >= b; }
template <class T> T eq(T a, T b) { return a == b; }
template <class T> T ne(T a, T b) { return a != b; }
template <class T> T select(T condition, T yes, T no) { return condition != 0 ? yes : no; }
template <class T> T logical_and(T a, T b) { return a != 0 && b != 0; }
template <class T> T logical_or(T a, T b) { return a != 0 || b != 0; }
template <class T> T logical_xor(T a, T b) { return (a != 0) != (b != 0); }
template <class T> T logical_not(T a) { return a == 0; }

template <class T> T isnan(T x) { return x != x; }
template <class T> T isinf(T x) { return T(std::isinf(double(x))); }
template <class T> T isfinite(T x) { return T(std::isfinite(double(x))); }

template <class T> T abs(T x) { return x < 0 ? -x : x == 0 ? T(0) : x; }
template <class T> T sign(T x) { return T((x > 0) - (x < 0)); }
template <class T> T square(T x) { return x * x; }
template <class T> T minimum(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
template <class T> T maximum(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }

#define SINTER_HOST_UNARY(name, expression)                              \
  template <class T>                                                     \
  T name(T value) {                                                      \
    [[maybe_unused]] double x = double(value);                           \
    return T(expression);                                                \
  }
SINTER_HOST_UNARY(floor, std::floor(x))
SINTER_HOST_UNARY(ceil, std::ceil(x))
SINTER_HOST_UNARY(trunc, std::trunc(x))
SINTER_HOST_UNARY(round, std::nearbyint(x))
SINTER_HOST_UNARY(sqrt, std::sqrt(x))
SINTER_HOST_UNARY(rsqrt, 1 / std::sqrt(x))
SINTER_HOST_UNARY(reciprocal, 1 / x)
SINTER_HOST_UNARY(exp, std::exp(x))
SINTER_HOST_UNARY(exp2, std::exp2(x))
SINTER_HOST_UNARY(expm1, std::expm1(x))
SINTER_HOST_UNARY(log, std::log(x))
SINTER_HOST_UNARY(log2, std::log2(x))
SINTER_HOST_UNARY(log10, std::log10(x))
SINTER_HOST_UNARY(log1p, std::log1p(x))
SINTER_HOST_UNARY(sin, std::sin(x))
SINTER_HOST_UNARY(cos, std::cos(x))
SINTER_HOST_UNARY(tan, std::tan(x))
SINTER_HOST_UNARY(asin, std::asin(x))
SINTER_HOST_UNARY(acos, std::acos(x))
SINTER_HOST_UNARY(atan, std::atan(x))
SINTER_HOST_UNARY(sinh, std::sinh(x))
SINTER_HOST_UNARY(cosh, std::cosh(x))
SINTER_HOST_UNARY(tanh, std::tanh(x))
SINTER_HOST_UNARY(asinh, std::asinh(x))
SINTER_HOST_UNARY(acosh, std::acosh(x))
SINTER_HOST_UNARY(atanh, std::atanh(x))
SINTER_HOST_UNARY(erf, std::erf(x))
SINTER_HOST_UNARY(erfc, std::erfc(x))
SINTER_HOST_UNARY(sigmoid, x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)))
#undef SINTER_HOST_UNARY

template <class T> T atan2(T y, T x) { return T(std::atan2(double(y), double(x))); }
template <class T> T hypot(T x, T y) { return T(std::hypot(double(x), double(y))); }
template <class T> T copysign(T x, T y) { return T(std::copysign(double(x), double(y))); }

// Integers: a division by zero gives 0, as the generated code does (it must not trap).
template <class T>
T fmod(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == 0 ? 0 : b == -1 ? 0 : a % b;
  else
    return std::fmod(a, b);
}
template <class T>
T remainder(T a, T b) {
  T r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T trunc_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == 0 ? 0 : b == -1 ? T(0 - uint64_t(a)) : a / b;
  else
    return std::trunc(a / b);
}
template <class T>
T floor_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    T q = trunc_divide(a, b);
    return b != 0 && fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  } else {
    if (b == 0) return a / b;
    T r = std::fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return std::copysign(T(0), a / b);
    T floored = std::floor(q);
    return q - floored > T(0.5) ? floored + 1 : floored;
  }
}
template <class T>
T pow(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, b = uint64_t(base);
    for (uint64_t e = uint64_t(exponent); e; e >>= 1, b *= b)
      if (e & 1) result *= b;
    return T(result);
  } else {
    return std::pow(base, exponent);
  }
}

// Euclid's algorithm: not negative, and 0 of two zeros.
template <class T>
T gcd(T a, T b) {
  while (b != 0) {
    T rest = fmod(a, b);
    a = b;
    b = rest;
  }
  return abs(a);
}

template <class T> T bit_and(T a, T b) { return T(int64_t(a) & int64_t(b)); }
template <class T> T bit_or(T a, T b) { return T(int64_t(a) | int64_t(b)); }
template <class T> T bit_xor(T a, T b) { return T(int64_t(a) ^ int64_t(b)); }
template <class T> T bit_not(T a) { return T(~int64_t(a)); }
template <class T> T shift_left(T a, T b) { return T(uint64_t(b) > 63 ? 0 : uint64_t(a) << uint64_t(b)); }
template <class T> T shift_right(T a, T b) { return T(int64_t(a) >> (uint64_t(b) > 63 ? 63 : uint64_t(b))); }

// Random bodies have i64 operands only; there the result is the bits of a double.
template <class T>
T random_result(double value) {
  if constexpr (std::is_integral_v<T>)
    return std::bit_cast<int64_t>(value);
  else
    return value;
}
template <class T>
T rand_uniform_f32(T index, T seed, T offset) {
  return random_result<T>(rand_uniform24(int64_t(index), int64_t(seed), int64_t(offset)));
}
template <class T>
T rand_word_f32(T index, T seed, T offset) {
  return random_result<T>(rand_word24(int64_t(index), int64_t(seed), int64_t(offset)));
}
template <class T>
T rand_uniform_f64(T index, T seed, T offset) {
  return random_result<T>(rand_uniform53(int64_t(index), int64_t(seed), int64_t(offset)));
}
template <class T>
T rand_normal_f32(T index, T seed, T offset) {
  return random_result<T>(sinter::rand_normal(int64_t(index), int64_t(seed), int64_t(offset)));
}

// The functions of special.embed and those that follow it, the same text everywhere.
#define K_SPECIAL inline
#define K_UNIFORM(index, seed) sinter::rand_uniform53(index, seed, 0)
#define K_BITS(x) std::bit_cast<int64_t>(x)
#define K_DOUBLE(b) std::bit_cast<double>(int64_t(b))
#define K_SPECIAL1(name) \
  template <class T>     \
  T name(T x) {          \
    return T(wide::name(double(x))); \
  }
#define K_SPECIAL2(name) \
  template <class T>     \
  T name(T x, T y) {     \
    return T(wide::name(double(x), double(y))); \
  }
#define K_SPECIAL3(name)  \
  template <class T>      \
  T name(T x, T y, T z) { \
    return T(wide::name(double(x), double(y), double(z))); \
  }
#include "sinter/ops/special.embed"
#include "sinter/ops/bessel.embed"
#include "sinter/ops/polynomials.embed"
#undef K_SPECIAL
#undef K_SPECIAL1
#undef K_SPECIAL2
#undef K_SPECIAL3
#undef K_UNIFORM
#undef K_BITS
#undef K_DOUBLE

}  // namespace sinter::scalar_math
