#include "sinter/runtime/cpu/fft/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "tests/runtime/available_isas.h"

namespace sinter::runtime {
namespace {

using Wide = std::complex<long double>;

// exp(-2 pi i k / n) for k < n.
std::vector<Wide> unit_roots(int64_t n) {
  std::vector<Wide> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const long double angle = -2 * std::numbers::pi_v<long double> * (long double)(k) / (long double)(n);
    roots[size_t(k)] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

Wide naive_element(const std::vector<Wide>& x, const std::vector<Wide>& roots, int64_t k) {
  Wide sum = 0;
  size_t at = 0;
  for (const Wide& value : x) {
    sum += value * roots[at];
    at = (at + size_t(k)) % roots.size();
  }
  return sum;
}

// Random complex numbers, exact in a float.
std::vector<Wide> random_line(int64_t n) {
  std::mt19937 random{unsigned(n)};
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<Wide> line(static_cast<size_t>(n));
  for (auto& value : line) {
    const float re = values(random), im = values(random);
    value = {re, im};
  }
  return line;
}

enum class Kind { kComplex, kRealToComplex, kComplexToReal };
constexpr Kind kKinds[] = {Kind::kComplex, Kind::kRealToComplex, Kind::kComplexToReal};

// An input and what becomes of it, with the sign -1: elements of a line as each kind has them.
struct Known {
  std::vector<Wide> in, out;
};

std::vector<Wide> first(const std::vector<Wide>& line, int64_t count) { return {line.begin(), line.begin() + count}; }

// All kinds from one naive transform: that of the real parts is the even part of it, and the way back has the sign +1.
std::vector<Known> known_results(int64_t n) {
  const auto x = random_line(n), roots = unit_roots(n);
  Known complex{x, std::vector<Wide>(x.size())}, forth{x, {}}, back{{}, std::vector<Wide>(x.size())};
  for (int64_t k = 0; k < n; ++k) complex.out[size_t(k)] = naive_element(x, roots, k);
  for (auto& value : forth.in) value = value.real();
  for (int64_t k = 0; k <= n / 2; ++k)
    forth.out.push_back((complex.out[size_t(k)] + std::conj(complex.out[size_t((n - k) % n)])) / 2.0L);
  back.in = forth.out;
  // With the sign -1 the result runs backwards.
  for (int64_t k = 0; k < n; ++k) back.out[size_t(k)] = forth.in[size_t((n - k) % n)] * (long double)(n);
  return {complex, forth, back};
}

// A side in memory of its own: strides in elements, as FftSide has them.
struct Strides {
  int64_t stride, line, outer;
};

template <class T>
struct Memory {
  static constexpr T kUntouched = T(12345);
  std::vector<T> numbers;
  std::vector<bool> used;
  FftSide<T> side;
  int64_t parts;

  Memory(const FftShape& shape, int64_t elements, const Strides& s, bool real) : parts(real ? 1 : 2) {
    int64_t low = 0, high = 0;
    for (auto [stride, size] : {std::pair(s.stride, elements), {s.line, shape.lines}, {s.outer, shape.outer}})
      (stride < 0 ? low : high) += stride * (size - 1);
    numbers.assign(size_t((high - low + 1) * parts), kUntouched);
    used.assign(numbers.size(), false);
    side = {numbers.data() - low * parts, s.stride, s.line, s.outer};
  }
  T* at(int64_t k, int64_t line, int64_t outer) {
    return side.data + (k * side.stride + line * side.line_stride + outer * side.outer_stride) * parts;
  }
  void set(int64_t k, int64_t line, int64_t outer, Wide value) {
    at(k, line, outer)[0] = T(value.real());
    if (parts == 2) at(k, line, outer)[1] = T(value.imag());
  }
  Wide take(int64_t k, int64_t line, int64_t outer) {
    T* p = at(k, line, outer);
    for (int64_t i = 0; i < parts; ++i) used[size_t(p + i - numbers.data())] = true;
    return {p[0], parts == 2 ? p[1] : T(0)};
  }
  // What lies between the elements taken is as it was.
  bool rest_untouched() const {
    for (size_t i = 0; i < numbers.size(); ++i)
      if (!used[i] && numbers[i] != kUntouched) return false;
    return true;
  }
};

template <class T>
FftSide<const T> as_input(const FftSide<T>& side) {
  return {side.data, side.stride, side.line_stride, side.outer_stride};
}

template <class T>
void run(Kind kind, const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out,
         const FftOptions& options) {
  switch (kind) {
    case Kind::kComplex:
      return fft_c2c(shape, in, out, options);
    case Kind::kRealToComplex:
      return fft_r2c(shape, in, out, options);
    case Kind::kComplexToReal:
      return fft_c2r(shape, in, out, options);
  }
}

struct Elements {
  int64_t in, out;
};
Elements elements_of(Kind kind, int64_t n) {
  const int64_t half = n / 2 + 1;
  return {kind == Kind::kComplexToReal ? half : n, kind == Kind::kRealToComplex ? half : n};
}

// The relative root of the mean square of the errors that rounding explains.
template <class T>
double bound(int64_t n) {
  return double(std::numeric_limits<T>::epsilon()) * (1 + std::log2(double(n)));
}

// Elements in rows, in columns, with gaps, backwards.
enum class Layout { kRows, kColumns, kGaps, kBackwards };
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kGaps, Layout::kBackwards};
Strides strides_of(Layout layout, int64_t elements, const FftShape& shape) {
  switch (layout) {
    case Layout::kRows:
      return {1, elements, elements * shape.lines};
    case Layout::kColumns:
      return {shape.lines, 1, elements * shape.lines};
    case Layout::kGaps:
      return {3, (3 * elements + 1) * shape.outer, 3 * elements + 1};
    case Layout::kBackwards:
      return {-1, -elements, elements * shape.lines};
  }
  return {};
}

// Lines that are multiples of a known one, each of its own. The other sign conjugates everything.
template <class T>
void check_known(Kind kind, const Known& known, const FftShape& shape, Layout in_layout, Layout out_layout,
                 FftOptions options) {
  const auto elements = elements_of(kind, shape.n);
  Memory<T> in(shape, elements.in, strides_of(in_layout, elements.in, shape), kind == Kind::kRealToComplex);
  Memory<T> out(shape, elements.out, strides_of(out_layout, elements.out, shape), kind == Kind::kComplexToReal);
  const auto with_sign = [&](Wide value) { return options.sign < 0 ? value : std::conj(value); };
  const auto scale = [&](int64_t line, int64_t outer) { return (long double)(1 + line + shape.lines * outer) / 16; };
  for (int64_t outer = 0; outer < shape.outer; ++outer)
    for (int64_t line = 0; line < shape.lines; ++line)
      for (int64_t k = 0; k < elements.in; ++k)
        in.set(k, line, outer, with_sign(known.in[size_t(k)]) * scale(line, outer));
  options.factor = 0.75;
  run<T>(kind, shape, as_input(in.side), out.side, options);
  for (int64_t outer = 0; outer < shape.outer; ++outer)
    for (int64_t line = 0; line < shape.lines; ++line) {
      long double error = 0, norm = 0;
      for (int64_t k = 0; k < elements.out; ++k) {
        const Wide want = with_sign(known.out[size_t(k)]) * (0.75L * scale(line, outer));
        error += std::norm(out.take(k, line, outer) - want);
        norm += std::norm(want);
      }
      ASSERT_LE(double(std::sqrt(error / norm)), bound<T>(shape.n)) << format(
          "n {}, kind {}, sign {}, isa {}, {} bits, line {} of {}, layouts {} and {}", shape.n, int(kind), options.sign,
          cpu_isa_name(options.isa), 8 * sizeof(T), line, shape.lines, int(in_layout), int(out_layout));
    }
  ASSERT_TRUE(out.rest_untouched()) << shape.n;
}

class Fft : public ::testing::TestWithParam<CpuIsa> {};

template <class T>
void check_small(int64_t n, const std::vector<Known>& known, CpuIsa isa) {
  for (Kind kind : kKinds)
    for (int sign : {-1, 1}) {
      // One line goes alone; nineteen fill the lanes and leave some over. The layouts of both sides take turns.
      const FftShape many{n, 19, 1}, nested{n, 3, 2};
      const FftOptions options{.sign = sign, .isa = isa};
      const auto& its = known[size_t(kind)];
      check_known<T>(kind, its, {n, 1, 1}, Layout::kRows, Layout::kRows, options);
      check_known<T>(kind, its, many, Layout::kRows, Layout::kRows, options);
      check_known<T>(kind, its, many, kLayouts[n % 4], kLayouts[(n / 4 + sign + 1) % 4], options);
      check_known<T>(kind, its, nested, kLayouts[(n / 2) % 4], kLayouts[(n + 2) % 4], options);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST_P(Fft, AgreesWithTheDefinitionAtSmallLengths) {
  for (int64_t n = 1; n <= 200; ++n) {
    const auto known = known_results(n);
    check_small<float>(n, known, GetParam());
    check_small<double>(n, known, GetParam());
    if (HasFatalFailure()) return;
  }
}

// Alone and side by side, in all pairs of layouts, whatever the radices are.
TEST_P(Fft, TakesAnyLayouts) {
  for (int64_t n : {24, 45, 53, 64, 94}) {
    const auto known = known_results(n);
    for (Kind kind : kKinds)
      for (Layout in : kLayouts)
        for (Layout out : kLayouts)
          for (int64_t lines : {2, 33}) {
            check_known<float>(kind, known[size_t(kind)], {n, lines, 2}, in, out, {.isa = GetParam()});
            if (HasFatalFailure()) return;
          }
  }
}

// A few elements by the definition, all of them by Parseval's theorem and the way back.
template <class T>
void check_large(int64_t n, int64_t lines, CpuIsa isa) {
  const auto x = random_line(n), roots = unit_roots(n);
  const std::string what = format("n {}, {} lines, isa {}, {} bits", n, lines, cpu_isa_name(isa), 8 * sizeof(T));
  const FftShape shape{n, lines, 1};
  Memory<T> in(shape, n, {1, n, 0}, false), out(shape, n, {1, n, 0}, false), again(shape, n, {1, n, 0}, false);
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < n; ++k) in.set(k, line, 0, x[size_t(k)] * (long double)(line + 1));
  fft_c2c<T>(shape, as_input(in.side), out.side, {.isa = isa});
  fft_c2c<T>(shape, as_input(out.side), again.side, {.sign = 1, .factor = 1 / double(n), .isa = isa});
  long double in_norm = 0;
  for (const Wide& value : x) in_norm += std::norm(value);
  for (int64_t line = 0; line < lines; line += std::max<int64_t>(1, lines - 1)) {
    const long double by = (long double)(line + 1);
    long double norm = 0, error = 0;
    for (int64_t k = 0; k < n; ++k) {
      norm += std::norm(out.take(k, line, 0));
      error += std::norm(again.take(k, line, 0) - x[size_t(k)] * by);
    }
    const long double scale = std::sqrt(in_norm * (long double)(n)) * by;  // of the result as a whole
    ASSERT_NEAR(double(std::sqrt(norm) / scale), 1, bound<T>(n)) << what;
    ASSERT_LE(double(std::sqrt(error / in_norm) / by), 2 * bound<T>(n)) << what;
    for (int64_t k : {int64_t(0), int64_t(1), n / 2, n / 3, n - 1}) {
      const long double off = std::abs(out.take(k, line, 0) - naive_element(x, roots, k) * by);
      ASSERT_LE(double(off * std::sqrt((long double)(n)) / scale), 5 * bound<T>(n)) << what << ", element " << k;
    }
  }
}

template <class T>
void check_real_round_trip(int64_t n, CpuIsa isa) {
  const auto x = random_line(n);
  std::vector<T> line(static_cast<size_t>(n)), back(static_cast<size_t>(n)), all(static_cast<size_t>(2 * n));
  std::vector<T> half(size_t(2 * (n / 2 + 1))), complex(static_cast<size_t>(2 * n));
  for (int64_t k = 0; k < n; ++k) line[size_t(k)] = complex[size_t(2 * k)] = T(x[size_t(k)].real());
  fft_r2c<T>({n}, {line.data()}, {half.data()}, {.isa = isa});
  fft_c2c<T>({n}, {complex.data()}, {all.data()}, {.isa = isa});
  fft_c2r<T>({n}, {half.data()}, {back.data()}, {.sign = 1, .factor = 1 / double(n), .isa = isa});
  long double norm = 0, error = 0, there = 0;
  for (int64_t k = 0; k < n; ++k) {
    norm += std::norm(line[size_t(k)]);
    error += std::norm((long double)(back[size_t(k)]) - line[size_t(k)]);
  }
  for (size_t k = 0; k < half.size(); ++k) there += std::norm((long double)(half[k]) - all[k]);
  EXPECT_LE(double(std::sqrt(error / norm)), 2 * bound<T>(n)) << n;
  EXPECT_LE(double(std::sqrt(there / norm / (long double)(n))), 2 * bound<T>(n)) << n;
}

// Powers of two and of other primes, neighbours of powers of two, products of many small primes and of few large ones.
TEST_P(Fft, AgreesWithTheDefinitionAtLargeLengths) {
  for (int64_t n : {255, 256, 257, 1009, 1024, 2047, 2048, 2187, 2209, 2401, 4096, 4097, 5040, 8191, 10403, 15625}) {
    check_large<float>(n, n < 5000 ? 17 : 1, GetParam());
    check_large<double>(n, 1, GetParam());
    check_real_round_trip<float>(n, GetParam());
    check_real_round_trip<double>(n, GetParam());
    if (HasFatalFailure()) return;
  }
}

TEST(FftOfThisMachine, AgreesWithTheDefinitionAtVeryLargeLengths) {
  for (int64_t n : {65536, 65537, 110880}) {
    check_large<float>(n, 1, best_cpu_isa());
    check_real_round_trip<double>(n, best_cpu_isa());
    if (HasFatalFailure()) return;
  }
  check_large<float>(int64_t(1) << 20, 1, best_cpu_isa());
}

// Windows of a signal: lines of the input that overlap.
TEST_P(Fft, LinesOfTheInputMayOverlap) {
  const auto signal = random_line(200);
  std::vector<float> reals;
  for (const Wide& value : signal) reals.push_back(float(value.real()));
  for (int64_t n : {9, 16, 53})
    for (int64_t hop : {1, 2, 3}) {
      const int64_t lines = 20, elements = n / 2 + 1;
      const auto roots = unit_roots(n);
      std::vector<float> out(size_t(2 * elements * lines));
      fft_r2c<float>({n, lines}, {reals.data(), 1, hop}, {out.data(), 1, elements}, {.isa = GetParam()});
      for (int64_t line = 0; line < lines; ++line) {
        const auto frame = first({signal.begin() + line * hop, signal.end()}, n);
        std::vector<Wide> real_frame;
        for (const Wide& value : frame) real_frame.push_back(value.real());
        for (int64_t k = 0; k < elements; ++k) {
          const Wide want = naive_element(real_frame, roots, k);
          const float* got = &out[size_t(2 * (line * elements + k))];
          ASSERT_NEAR(got[0], double(want.real()), 1e-5) << n << " " << hop;
          ASSERT_NEAR(got[1], double(want.imag()), 1e-5) << n << " " << hop;
        }
      }
    }
}

// Strides of zero: of an input the elements of a line, or its lines, may all be one.
TEST_P(Fft, ElementsAndLinesOfTheInputMayRepeat) {
  for (int64_t n : {1, 2, 8, 9, 53, 100, 640})
    for (Kind kind : kKinds)
      for (Strides strides : {Strides{0, 1, 0}, Strides{1, 0, 0}, Strides{0, 0, 0}}) {
        const FftShape shape{n, 19, 1};
        const auto elements = elements_of(kind, n);
        const bool real_in = kind == Kind::kRealToComplex, real_out = kind == Kind::kComplexToReal;
        Memory<float> few(shape, elements.in, strides, real_in), all(shape, elements.in, {1, elements.in, 0}, real_in);
        Memory<float> got(shape, elements.out, {1, elements.out, 0}, real_out), want = got;
        want.side.data = want.numbers.data();
        for (size_t i = 0; i < few.numbers.size(); ++i) few.numbers[i] = float(i % 17) - 7;
        for (int64_t line = 0; line < shape.lines; ++line)
          for (int64_t k = 0; k < elements.in; ++k) all.set(k, line, 0, few.take(k, line, 0));
        run<float>(kind, shape, as_input(few.side), got.side, {.isa = GetParam()});
        run<float>(kind, shape, as_input(all.side), want.side, {.isa = GetParam()});
        for (size_t i = 0; i < got.numbers.size(); ++i)
          ASSERT_NEAR(got.numbers[i], want.numbers[i], 1e-5 * double(n))
              << n << " " << int(kind) << " " << strides.stride;
      }
}

// The same bits as beside the input, for lines that are adjacent and lines that are columns.
template <class T>
void check_in_place(Kind kind, int64_t n, int64_t lines, bool columns, CpuIsa isa) {
  const auto elements = elements_of(kind, n);
  const FftShape shape{n, lines, 1};
  // A line of n reals lies in the memory of its n / 2 + 1 complex numbers.
  const int64_t pitch = 2 * (n / 2 + 1);
  const auto strides = [&](bool real) {
    if (kind == Kind::kComplex) return columns ? Strides{lines, 1, 0} : Strides{1, n, 0};
    return real ? Strides{1, pitch, 0} : Strides{1, pitch / 2, 0};
  };
  const bool real_in = kind == Kind::kRealToComplex, real_out = kind == Kind::kComplexToReal;
  Memory<T> in(shape, elements.in, strides(real_in), real_in), apart(shape, elements.out, strides(real_out), real_out);
  in.numbers.resize(size_t(std::max<int64_t>(2 * n, pitch) * lines));  // both ways fit
  in.side.data = in.numbers.data();
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < elements.in; ++k)
      in.set(k, line, 0, {(long double)(k * (line + 2) % 31 - 15), (long double)(k % 7)});
  run<T>(kind, shape, as_input(in.side), apart.side, {.isa = isa});
  const Strides out = strides(real_out);
  run<T>(kind, shape, as_input(in.side), {in.numbers.data(), out.stride, out.line, out.outer}, {.isa = isa});
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < elements.out; ++k) {
      const int64_t at = k * out.stride + line * out.line;
      ASSERT_EQ(
          std::memcmp(apart.at(k, line, 0), in.numbers.data() + at * apart.parts, sizeof(T) * size_t(apart.parts)), 0)
          << format("n {}, kind {}, {} lines, isa {}: element {} of line {}", n, int(kind), lines, cpu_isa_name(isa), k,
                    line);
    }
}

TEST_P(Fft, WorksInPlace) {
  for (int64_t n : {1, 2, 7, 16, 47, 53, 60, 256, 1009, 4096})
    for (int64_t lines : {1, 5, 40})
      for (Kind kind : kKinds) {
        check_in_place<float>(kind, n, lines, false, GetParam());
        check_in_place<double>(kind, n, lines, false, GetParam());
        if (kind == Kind::kComplex) check_in_place<float>(kind, n, lines, true, GetParam());
        if (HasFatalFailure()) return;
      }
}

TEST(FftOfThisMachine, AnyNumberOfThreadsGivesTheSameBits) {
  const int before = num_threads();
  for (auto [n, lines] :
       {std::pair<int64_t, int64_t>{131072, 1}, {120000, 3}, {65537, 1}, {64, 3000}, {1009, 50}, {10007, 9}})
    for (Kind kind : kKinds) {
      const auto elements = elements_of(kind, n);
      std::vector<float> in(size_t(2 * elements.in * lines)), wanted;
      for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(float(i % 1013));
      for (int threads : {1, 2, 5}) {
        set_num_threads(threads);
        std::vector<float> out(size_t(2 * elements.out * lines));
        run<float>(kind, {n, lines}, {in.data(), 1, elements.in}, {out.data(), 1, elements.out}, {});
        if (threads == 1) wanted = out;
        EXPECT_EQ(std::memcmp(out.data(), wanted.data(), out.size() * sizeof(float)), 0) << n << " " << threads;
      }
    }
  set_num_threads(before);
}

// What is not a number stays in its line.
TEST_P(Fft, InfinitiesAndNansStayInTheirLines) {
  for (int64_t n : {5, 16, 47, 59, 100, 1024})
    for (float strange : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (Kind kind : kKinds) {
        const int64_t lines = 21, bad = 9;
        const auto elements = elements_of(kind, n);
        const int64_t in_parts = kind == Kind::kRealToComplex ? 1 : 2, out_parts = kind == Kind::kComplexToReal ? 1 : 2;
        const int64_t in_numbers = elements.in * in_parts, out_numbers = elements.out * out_parts;
        std::vector<float> in(size_t(in_numbers * lines), 0.5f), out(size_t(out_numbers * lines));
        in[size_t(bad * in_numbers + in_parts)] = strange;
        run<float>(kind, {n, lines}, {in.data(), 1, elements.in}, {out.data(), 1, elements.out}, {.isa = GetParam()});
        int64_t numbers_lost = 0;
        for (int64_t i = 0; i < int64_t(out.size()); ++i) {
          const bool lost = !std::isfinite(out[size_t(i)]);
          ASSERT_TRUE(!lost || i / out_numbers == bad) << n << " " << int(kind) << " " << i;
          numbers_lost += lost;
        }
        EXPECT_GE(numbers_lost, out_numbers / 2) << n << " " << int(kind);
      }
}

// What the imaginary parts of the first and the middle element are is nobody's business.
TEST_P(Fft, ImaginaryPartsThatRealLinesLackAreNotRead) {
  for (int64_t n : {1, 2, 8, 9, 106, 512})
    for (int64_t lines : {1, 20}) {
      const int64_t elements = n / 2 + 1;
      std::vector<float> in(size_t(2 * elements * lines), 0.25f), out(size_t(n * lines)), strange = in, same = out;
      for (int64_t line = 0; line < lines; ++line) {
        strange[size_t(2 * elements * line + 1)] = NAN;
        if (n % 2 == 0) strange[size_t(2 * elements * (line + 1) - 1)] = NAN;
      }
      fft_c2r<float>({n, lines}, {in.data(), 1, elements}, {out.data(), 1, n}, {.isa = GetParam()});
      fft_c2r<float>({n, lines}, {strange.data(), 1, elements}, {same.data(), 1, n}, {.isa = GetParam()});
      EXPECT_EQ(out, same) << n;
    }
}

TEST_P(Fft, WithoutLinesNothingIsDone) {
  float* const nowhere = nullptr;
  const FftOptions options{.isa = GetParam()};
  fft_c2c<float>({8, 0, 3}, {nowhere}, {nowhere}, options);
  fft_r2c<float>({8, 3, 0}, {nowhere}, {nowhere}, options);
  fft_c2r<float>({7, 0, 0}, {nowhere}, {nowhere}, options);
}

INSTANTIATE_TEST_SUITE_P(Isas, Fft, ::testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(cpu_isa_name(info.param)); });

}  // namespace
}  // namespace sinter::runtime
