// The CPU prelude, compiled here for the instruction set this file is built for: elementary functions against libm in
// double, scalar against vector bit by bit, storage types, integers, reductions, random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sinter/ops/philox.h"

#if defined(__AVX512F__)
#define SINTER_LANES 16
#elif defined(__AVX2__)
#define SINTER_LANES 8
#else
#define SINTER_LANES 4
#endif
#include "sinter/codegen/cpu/prelude.embed"
#include "sinter/codegen/cpu/arith.embed"
#include "sinter/codegen/cpu/math.embed"
#include "sinter/codegen/cpu/random.embed"
#include "sinter/codegen/cpu/special_lanes.embed"
namespace k {
#include "sinter/ops/special.embed"
#include "sinter/ops/bessel.embed"
#include "sinter/ops/polynomials.embed"
}

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr int kW = k::kLanes;

float float_of(uint32_t b) { return __builtin_bit_cast(float, b); }
uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
bool same(float a, float b) { return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b)); }

// Error in units of the last place of the f32 nearest to `want`; 1e9 for a wrong special value or sign of zero.
double ulp_error(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(got) || std::isinf(static_cast<float>(want))) {
    bool close = std::fabs(want) > 3.4028233e38 && std::fabs(got) > 3.4028233e38 && (got < 0) == (want < 0);
    return got == static_cast<float>(want) ? 0 : close && !std::isinf(want) ? 1 : 1e9;
  }
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  int e;
  std::frexp(want, &e);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(e - 24, -149));
}

const std::vector<float>& sweep() {
  static const std::vector<float> points = [] {
    std::vector<float> x;
    for (uint64_t u = 0; u < (1ull << 32); u += 80021) x.push_back(float_of(static_cast<uint32_t>(u)));
    for (float c : {0.0f, 1.0f, -1.0f, 0.5f, -0.5f, kInfinity, -kInfinity, 88.72284f, -87.33654f, -103.97208f, 128.0f,
                    -149.0f, 89.4159851f, 1e6f, -1e6f, 3.95f, 10.05f, 1.1754944e-38f, 1.4142135f, 0.70710677f,
                    0.34657359f})
      for (int d = -300; d <= 300; ++d) x.push_back(float_of(bits_of(c) + static_cast<uint32_t>(d)));
    while (x.size() % static_cast<size_t>(kW)) x.push_back(0);
    return x;
  }();
  return points;
}

template <class Vector, class Scalar, class Reference>
void expect_accurate(const char* name, double bound, Vector vector, Scalar scalar, Reference reference) {
  double worst = 0;
  float at = 0;
  int differ = 0;
  for (size_t i = 0; i < sweep().size(); i += kW) {
    float out[kW];
    k::store<k::f32>(out, 0, vector(k::load<k::f32>(sweep().data(), static_cast<long>(i))));
    for (int lane = 0; lane < kW; ++lane) {
      float x = sweep()[i + static_cast<size_t>(lane)];
      double e = ulp_error(out[lane], reference(static_cast<double>(x)));
      if (e > worst) worst = e, at = x;
      differ += !same(out[lane], scalar(x));
    }
  }
  EXPECT_LE(worst, bound) << name << " at " << at << " gives " << scalar(at) << ", want " << reference(double{at});
  EXPECT_EQ(differ, 0) << name << ": scalar and vector bits differ";
}
#define ACCURATE(f, bound, reference) \
  expect_accurate(#f, bound, [](k::f32v x) { return k::f(x); }, [](float x) { return k::f(x); }, reference)
#define ACCURATE_LIBM(f, bound) ACCURATE(f, bound, [](double x) { return std::f(x); })

TEST(Prelude, ExponentialsAndLogarithms) {
  ACCURATE_LIBM(exp, 1.0);
  ACCURATE_LIBM(exp2, 1.1);
  ACCURATE_LIBM(expm1, 1.5);
  ACCURATE_LIBM(log, 0.9);
  ACCURATE_LIBM(log2, 1.8);
  ACCURATE_LIBM(log10, 1.2);
  ACCURATE_LIBM(log1p, 1.5);
  ACCURATE_LIBM(tanh, 2.3);
  ACCURATE_LIBM(sinh, 1.6);
  ACCURATE_LIBM(cosh, 1.4);
  ACCURATE(sigmoid, 2.3, [](double x) { return 1 / (1 + std::exp(-x)); });
  ACCURATE_LIBM(erf, 1.2);
  ACCURATE_LIBM(erfc, 0.8);
}

TEST(Prelude, Trigonometry) {
  ACCURATE_LIBM(sin, 1.6);
  ACCURATE_LIBM(cos, 1.6);
  ACCURATE_LIBM(tan, 0.51);
  ACCURATE_LIBM(asin, 1.8);
  ACCURATE_LIBM(acos, 1.2);
  ACCURATE_LIBM(atan, 1.5);
  ACCURATE_LIBM(asinh, 0.51);
  ACCURATE_LIBM(acosh, 0.51);
  ACCURATE_LIBM(atanh, 0.51);
}

TEST(Prelude, RoundingAndRoots) {
  ACCURATE_LIBM(sqrt, 0.5);
  ACCURATE_LIBM(floor, 0.5);
  ACCURATE_LIBM(ceil, 0.5);
  ACCURATE_LIBM(trunc, 0.5);
  ACCURATE(round, 0.5, [](double x) { return std::nearbyint(x); });
  ACCURATE(abs, 0, [](double x) { return std::fabs(x); });
  ACCURATE(neg, 0, [](double x) { return -x; });
  ACCURATE(sign, 0, [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  ACCURATE(rsqrt, 1.5, [](double x) { return 1 / std::sqrt(x); });
}

template <class Vector, class Scalar, class Reference>
void expect_accurate_pairs(const char* name, double bound, Vector vector, Scalar scalar, Reference reference) {
  std::vector<float> x, y;
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, 3.0f, -3.0f, kInfinity, -kInfinity,
                           kNan, 1e-45f, 3.4028234e38f, -3.4028234e38f, 1.1754944e-38f, 1.5f, -1.5f, 16777216.0f, 7.0f,
                           -7.0f, 1.0000001f};
  for (float a : special)
    for (float b : special) x.push_back(a), y.push_back(b);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> small(-20, 20);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(i % 3 ? small(random) : float_of(random()));
    y.push_back(i % 3 == 1 ? std::round(small(random)) : i % 3 ? small(random) : float_of(random()));
  }
  while (x.size() % static_cast<size_t>(kW)) x.push_back(1), y.push_back(1);
  for (size_t i = 0; i < x.size(); i += kW) {
    float out[kW];
    auto at = static_cast<long>(i);
    k::store<k::f32>(out, 0, vector(k::load<k::f32>(x.data(), at), k::load<k::f32>(y.data(), at)));
    for (int lane = 0; lane < kW; ++lane) {
      float a = x[i + static_cast<size_t>(lane)], b = y[i + static_cast<size_t>(lane)];
      ASSERT_LE(ulp_error(out[lane], reference(a, b)), bound) << name << "(" << a << ", " << b << "): " << out[lane];
      ASSERT_TRUE(same(out[lane], scalar(a, b))) << name << "(" << a << ", " << b << "): scalar " << scalar(a, b);
    }
  }
}
#define ACCURATE_PAIRS(f, bound, reference)                                          \
  expect_accurate_pairs(#f, bound, [](k::f32v x, k::f32v y) { return k::f(x, y); },  \
                        [](float x, float y) { return k::f(x, y); }, reference)

float python_remainder(float a, float b) {
  float r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
float python_floor_divide(float a, float b) {
  if (b == 0) return a / b;
  float r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0f, a / b);
  float low = std::floor(q);
  return q - low > 0.5f ? low + 1 : low;
}

TEST(Prelude, PairsOfFloats) {
  ACCURATE_PAIRS(pow, 0.51, [](double a, double b) { return std::pow(a, b); });
  ACCURATE_PAIRS(atan2, 1.5, [](double a, double b) { return std::atan2(a, b); });
  ACCURATE_PAIRS(hypot, 0.51, [](double a, double b) { return std::hypot(a, b); });
  ACCURATE_PAIRS(fmod, 0, [](float a, float b) { return std::fmod(a, b); });
  ACCURATE_PAIRS(remainder, 0, python_remainder);
  ACCURATE_PAIRS(floor_divide, 0, python_floor_divide);
  ACCURATE_PAIRS(maximum, 0, [](float a, float b) { return std::isnan(a) || a > b ? a : b; });
  ACCURATE_PAIRS(minimum, 0, [](float a, float b) { return std::isnan(a) || a < b ? a : b; });
}

// They are computed in double, lane by lane.
TEST(Prelude, SpecialFunctionsRoundOnce) {
  ACCURATE(lgamma, 0.51, [](double x) { return k::lgamma(x); });
  ACCURATE(erfinv, 0.51, [](double x) { return k::erfinv(x); });
  ACCURATE(bessel_y0, 0.51, [](double x) { return k::bessel_y0(x); });
  ACCURATE(airy_ai, 0.51, [](double x) { return k::airy_ai(x); });
  ACCURATE_PAIRS(gammainc, 0.51, [](double a, double b) { return k::gammainc(a, b); });
}

TEST(Prelude, DoublesUseLibm) {
  k::f64v x = k::cast_f64(k::iota_i32()) * 0.3 + 0.1;
  for (int lane = 0; lane < kW; ++lane) {
    EXPECT_EQ(k::exp(x)[lane], std::exp(x[lane]));
    EXPECT_EQ(k::pow(x, x + 1.0)[lane], std::pow(x[lane], x[lane] + 1));
    EXPECT_EQ(k::erf(x[lane]), std::erf(x[lane]));
    EXPECT_NEAR(k::sigmoid(x)[lane], 1 / (1 + std::exp(-x[lane])), 1e-15);
    EXPECT_EQ(k::floor(x)[lane], std::floor(x[lane]));
    EXPECT_EQ(k::abs(-x)[lane], x[lane]);
  }
}

// Round to a format of `digits` bits of precision and smallest exponent `low`, through double.
double rounded(double x, int digits, int low) {
  if (x == 0 || !std::isfinite(x)) return x;
  int e;
  std::frexp(x, &e);
  double unit = std::ldexp(1.0, std::max(e - digits, low));
  return std::nearbyint(x / unit) * unit;
}

TEST(Prelude, HalfTypesRoundToNearestEven) {
  for (float x : sweep()) {
    double b = rounded(x, 8, -133), h = rounded(x, 11, -24);
    if (std::fabs(h) > 65504) h = std::copysign(INFINITY, h);
    ASSERT_TRUE(same(k::round_bf16(x), static_cast<float>(b))) << x;
    ASSERT_TRUE(same(k::round_f16(x), static_cast<float>(h))) << x;
    ASSERT_TRUE(same(k::round_bf16(k::splat_f32(x))[1], static_cast<float>(b))) << x;
    ASSERT_TRUE(same(k::round_f16(k::splat_f32(x))[1], static_cast<float>(h))) << x;
  }
  for (uint32_t half = 0; half < 65536; ++half) {
    int e = half >> 10 & 31, m = half & 1023;
    double want = e == 31 ? (m ? NAN : INFINITY) : std::ldexp(e ? 1024 + m : m, (e ? e : 1) - 25);
    auto raw = static_cast<uint16_t>(half);
    ASSERT_TRUE(same(k::load1<k::f16>(&raw, 0), static_cast<float>(half & 0x8000 ? -want : want))) << half;
  }
}

// Writes and reads back by every way; `value(i)` is what element i holds.
template <class X, class Stored>
void expect_memory(Stored (*value)(int)) {
  constexpr int kSize = 4 * kW;
  Stored from[kSize], to[kSize], guard{};
  for (int i = 0; i < kSize; ++i) from[i] = value(i), to[i] = guard;
  k::store<X>(to, 1, k::load<X>(from, 1));
  for (int i = 1; i <= kW; ++i) EXPECT_EQ(to[i], from[i]);
  for (int n = 0; n <= kW; ++n) {
    for (auto& t : to) t = guard;
    auto v = k::load_partial<X>(from, 3, n);
    k::store<X>(to, kW, v);
    k::store_partial<X>(to, 2 * kW + 1, n, k::load<X>(from, 3));
    for (int i = 0; i < kW; ++i) EXPECT_EQ(to[kW + i], i < n ? from[3 + i] : guard);
    for (int i = 0; i < kW; ++i) EXPECT_EQ(to[2 * kW + 1 + i], i < n ? from[3 + i] : guard) << n;
  }
  k::store_strided<X>(to, 0, 3, k::load_strided<X>(from, 1, 2));
  for (int i = 0; i < kW; ++i) EXPECT_EQ(to[3 * i], from[1 + 2 * i]);
  k::store<X>(to, 0, k::load_gather<X>(from, k::splat_i64(kSize - 1) - k::iota_i64()));
  for (int i = 0; i < kW; ++i) EXPECT_EQ(to[i], from[kSize - 1 - i]);
  k::store1<X>(to, 5, k::load1<X>(from, 7));
  EXPECT_EQ(to[5], from[7]);
}

TEST(Prelude, MemoryOfEveryStorageType) {
  expect_memory<double, double>([](int i) { return i * 0.5 - 7; });
  expect_memory<float, float>([](int i) { return static_cast<float>(i) * 0.5f - 7; });
  expect_memory<k::bf16, uint16_t>([](int i) { return static_cast<uint16_t>(0x3f81 + 37 * i); });
  expect_memory<k::f16, uint16_t>([](int i) { return static_cast<uint16_t>(0x3c01 + 37 * i); });
  expect_memory<k::i64, int64_t>([](int i) { return (i - 9) * 0x123456789abl; });
  expect_memory<k::i32, int32_t>([](int i) { return (i - 9) * 0x1234567; });
  expect_memory<k::i16, int16_t>([](int i) { return static_cast<int16_t>((i - 9) * 999); });
  expect_memory<k::i8, int8_t>([](int i) { return static_cast<int8_t>((i - 9) * 11); });
  expect_memory<k::u8, uint8_t>([](int i) { return static_cast<uint8_t>(i * 11); });
  expect_memory<bool, bool>([](int i) { return i % 3 == 0; });
  EXPECT_EQ(k::load<k::i8>("\xff\x80\x7f\x01................", 0)[1], -128);
  EXPECT_EQ(k::load<k::u8>("\xff\x80\x7f\x01................", 0)[1], 128);
  unsigned char truth[kW] = {7, 0, 1};
  k::store<bool>(truth, 0, k::load<bool>(truth, 0));
  EXPECT_EQ(truth[0], 1);
  EXPECT_EQ(truth[1], 0);
  alignas(64) float streamed[kW];
  k::stream<k::f32>(streamed, 0, k::cast_f32(k::iota_i32()));
  k::stream_fence();
  EXPECT_EQ(streamed[3], 3);
  k::store<k::i8>(truth, 0, k::splat_i32(300));
  EXPECT_EQ(truth[2], 44);
}

TEST(Prelude, MasksAndCasts) {
  k::i32v i = k::iota_i32();
  k::maskv m = k::lt(k::cast_f64(i), k::splat_f64(2));
  EXPECT_EQ(m[1], ~0u);
  EXPECT_EQ(m[2], 0u);
  EXPECT_EQ(k::cast_f32(m)[1], 1.0f);
  EXPECT_EQ(k::cast_i64(m)[1], 1);
  EXPECT_EQ(k::select(m, k::splat_i64(5), k::splat_i64(6))[1], 5);
  EXPECT_EQ(k::select(m, k::splat_f64(5), k::splat_f64(6))[2], 6);
  EXPECT_EQ(k::select(true, 1.0f, 2.0f), 1.0f);
  EXPECT_TRUE(k::any(m));
  EXPECT_FALSE(k::all(m));
  EXPECT_TRUE(k::all(k::logical_or(m, k::logical_not(m))));
  EXPECT_FALSE(k::any(k::logical_and(m, k::logical_not(m))));
  EXPECT_FALSE(k::any(k::logical_xor(m, m)));
  EXPECT_TRUE(k::cast_bool(kNan));
  EXPECT_TRUE(k::all(k::cast_bool(k::splat_f32(kNan))));
  EXPECT_FALSE(k::any(k::cast_bool(k::splat_i64(0))));
  EXPECT_EQ(k::cast_i32(k::splat_f32(-2.9f))[0], -2);
  EXPECT_EQ(k::cast_i64(k::splat_f32(3e10f))[0], 30000001024);
  EXPECT_EQ(k::wrap_u8(-1), 255);
  EXPECT_EQ(k::wrap_i8(k::splat_i32(200))[0], -56);
  EXPECT_EQ(k::wrap_i16(k::splat_i32(40000))[0], -25536);
  EXPECT_TRUE(k::isinf(-kInfinity));
  EXPECT_FALSE(k::any(k::isfinite(k::splat_f32(kNan))));
  EXPECT_EQ(k::first_lanes(3)[2], ~0u);
  EXPECT_EQ(k::first_lanes(3)[3], 0u);
}

template <class T, class V>
void expect_integers(V (*splat)(T)) {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const T values[] = {0,  1,  -1, 2,  -2,  3,       -3,   7,        -7,        10,
                      31, 33, 63, 64, low, low + 1, high, high - 1, 123456789, -987654321};
  using Wide = __int128;
  for (T a : values)
    for (T b : values) {
      auto both = [&](const char* name, T scalar, V vector, T want) {
        EXPECT_EQ(scalar, want) << name << " " << a << " " << b;
        EXPECT_EQ(vector[kW - 1], want) << name << " vector " << a << " " << b;
      };
      V x = splat(a), y = splat(b);
      Wide q = b ? Wide{a} / b : 0, r = b ? Wide{a} % b : 0;
      bool wrong = r != 0 && (r < 0) != (b < 0);
      both("trunc_divide", k::trunc_divide(a, b), k::trunc_divide(x, y), static_cast<T>(q));
      both("fmod", k::fmod(a, b), k::fmod(x, y), static_cast<T>(r));
      both("floor_divide", k::floor_divide(a, b), k::floor_divide(x, y), static_cast<T>(q - wrong));
      both("remainder", k::remainder(a, b), k::remainder(x, y), static_cast<T>(wrong ? r + b : r));
      constexpr T kWidth = sizeof(T) * 8;
      bool bad = b < 0 || b >= kWidth;
      both("shift_left", k::shift_left(a, b), k::shift_left(x, y), bad ? 0 : static_cast<T>(Wide{a} << b));
      both("shift_right", k::shift_right(a, b), k::shift_right(x, y), a >> (bad ? kWidth - 1 : b));
      both("maximum", k::maximum(a, b), k::maximum(x, y), std::max(a, b));
      both("abs", k::abs(a), k::abs(x), static_cast<T>(a < 0 ? -Wide{a} : Wide{a}));
      both("sign", k::sign(a), k::sign(x), (a > 0) - (a < 0));
    }
  EXPECT_EQ(k::floor(T{-5}), -5);
  EXPECT_EQ(k::round(splat(7))[0], 7);
  EXPECT_EQ(k::pow(T{3}, T{13}), 1594323);
  EXPECT_EQ(k::pow(splat(-2), splat(5))[0], -32);
  EXPECT_EQ(k::pow(T{-1}, T{-3}), -1);
  EXPECT_EQ(k::pow(splat(2), splat(-1))[0], 0);
  EXPECT_EQ(k::pow(T{0}, T{0}), 1);
}

TEST(Prelude, Integers) {
  expect_integers<int32_t, k::i32v>([](int32_t x) { return k::splat_i32(x); });
  expect_integers<int64_t, k::i64v>([](int64_t x) { return k::splat_i64(x); });
}

TEST(Prelude, ReductionsFollowOneTree) {
  float x[kW], tree[kW];
  for (int i = 0; i < kW; ++i) tree[i] = x[i] = 1.0f / static_cast<float>(i + 3);
  for (int half = kW / 2; half; half /= 2)
    for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
  EXPECT_EQ(k::hsum(k::load<k::f32>(x, 0)), tree[0]);
  EXPECT_EQ(k::hmax(k::load<k::f32>(x, 0)), x[0]);
  EXPECT_EQ(k::hmin(k::load<k::f32>(x, 0)), x[kW - 1]);
  x[kW - 2] = kNan;
  EXPECT_TRUE(std::isnan(k::hmax(k::load<k::f32>(x, 0))));
  EXPECT_TRUE(std::isnan(k::hmin(k::load<k::f32>(x, 0))));
  EXPECT_EQ(k::hsum(k::iota_i64()), kW * (kW - 1) / 2);
  EXPECT_EQ(k::hprod(k::splat_i32(3) - (k::iota_i32() & 1)), kW == 4 ? 36 : kW == 8 ? 1296 : 1679616);
  EXPECT_EQ(k::hmax(k::cast_f64(k::iota_i32())), kW - 1);
  EXPECT_TRUE(k::hor(k::first_lanes(1)));
  EXPECT_FALSE(k::hand(k::first_lanes(kW - 1)));
}

TEST(Prelude, PhiloxKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(sinter::philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(sinter::philox(-1, -1, -1), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Prelude, RandomAgreesWithTheHost) {
  const int64_t seed = 0x123456789abcdef, offset = 5l << 33;
  double sum = 0, squares = 0;
  const int64_t count = 1 << 14, base = (1l << 32) - 100;
  for (int64_t i = base; i < base + count; i += kW) {
    k::i64v index = k::splat_i64(i) + k::iota_i64();
    k::i32v words = k::rand_bits32(index, seed, offset);
    k::i64v longs = k::rand_bits64(index, seed, offset);
    k::f32v uniform = k::rand_uniform_f32(index, seed, offset), normal = k::rand_normal_f32(index, seed, offset);
    k::f64v fine = k::rand_uniform_f64(index, seed, offset);
    k::f32v word = k::rand_word_f32(index, seed, offset);
    for (int lane = 0; lane < kW; ++lane) {
      int64_t at = i + lane;
      ASSERT_EQ(words[lane], sinter::rand_bits32(at, seed, offset));
      ASSERT_EQ(longs[lane], sinter::rand_bits64(at, seed, offset));
      ASSERT_EQ(uniform[lane], sinter::rand_uniform24(at, seed, offset));
      ASSERT_EQ(fine[lane], sinter::rand_uniform53(at, seed, offset));
      ASSERT_EQ(word[lane], sinter::rand_word24(at, seed, offset));
      ASSERT_NEAR(normal[lane], sinter::rand_normal(at, seed, offset), 1e-6);
      ASSERT_EQ(k::rand_bits32(at, seed, offset), words[lane]);
      ASSERT_TRUE(same(k::rand_normal_f32(at, seed, offset), normal[lane]));
      sum += normal[lane];
      squares += normal[lane] * normal[lane];
    }
  }
  EXPECT_NEAR(sum / count, 0, 0.03);
  EXPECT_NEAR(squares / count, 1, 0.05);
}

#if defined(__SSE__) || defined(__aarch64__)
TEST(Prelude, FlushDenormalsInScope) {
  volatile float tiny = 1e-39f, half = 0.5f;
  {
    k::FlushDenormals flush;
    EXPECT_EQ(tiny * half, 0.0f);
  }
  EXPECT_NE(tiny * half, 0.0f);
}
#endif

// Both compilers take the text without headers, for every lane count.
TEST(Prelude, CompilesForEveryTarget) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the g++ of this machine compiles for it alone";
#endif
  std::string source = testing::TempDir() + "sinter_prelude_target.cpp";
  std::ofstream(source) << R"(
#include "sinter/codegen/cpu/prelude.embed"
#include "sinter/codegen/cpu/arith.embed"
#include "sinter/codegen/cpu/math.embed"
#include "sinter/codegen/cpu/random.embed"
#include "sinter/codegen/cpu/special_lanes.embed"
namespace k {
#include "sinter/ops/special.embed"
#include "sinter/ops/bessel.embed"
#include "sinter/ops/polynomials.embed"
}
using namespace k;
extern "C" void kernel(const void* in, void* out, long n) {
  FlushDenormals flush;
  for (long i = 0; i < n; i += kLanes) {
    f32v x = load<k::bf16>(in, i), y = load_partial<k::f16>(in, i, 3);
    store<k::f32>(out, i, select(lt(x, y), tanh(x) + pow(x, y), erf(y) * rand_normal_f32(splat_i64(i), 1, 2)));
    store_partial<k::i8>(out, i, 2, floor_divide(load<k::i16>(in, i), load<k::u8>(in, i)));
    store<k::f32>(out, i, draw_gamma(lgamma(x), gammainc(x, y)) + draw_binomial(x, y, erfinv(x)));
    store<k::f32>(out, i, bessel_j0(x) * bessel_y1(y) + airy_ai(scaled_bessel_k1(x)) + bessel_i0(chebyshev_v(x, laguerre_l(x, y))));
    store<k::i32>(out, i, gcd(load<k::i32>(in, i), load<k::i16>(in, i)));
    store1<k::f64>(out, i, exp(load1<k::f64>(in, i)) + hsum(sin(load<k::f64>(in, i))));
  }
}
)";
  int tried = 0;
  const std::string kCross = "aarch64-linux-gnu-g++", kClang = "clang++-19 -fdelayed-template-parsing";
  for (std::string compiler : {kClang + " -Wno-delayed-template-parsing-in-cxx20", std::string("g++"), kCross}) {
    if (std::system((compiler + " --version >/dev/null 2>&1").c_str()) != 0) continue;
    const bool cross = compiler == kCross;
    for (std::string target : {"-march=x86-64-v4 -DSINTER_LANES=16", "-march=x86-64-v3 -DSINTER_LANES=8",
                               "-march=x86-64 -DSINTER_LANES=4", "-march=armv8-a -DSINTER_LANES=4"}) {
      // clang compiles for every machine; of g++ there is one per machine.
      const bool arm = target.find("armv8") != std::string::npos, clang = compiler.starts_with("clang");
      if (!clang && arm != cross) continue;
      if (clang) target += arm ? " --target=aarch64-linux-gnu" : " --target=x86_64-linux-gnu";
      std::string command = compiler + " -std=c++20 -O1 -ffp-contract=fast -fno-math-errno -fwrapv -nostdinc -Wall " +
                            "-Wextra -Werror -Wno-psabi -S -o /dev/null " + target + " -I'" +
                            SINTER_SOURCE_DIR + "' '" + source + "'";
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
      ++tried;
    }
  }
  if (!tried) GTEST_SKIP() << "no compiler found";
}

}  // namespace
