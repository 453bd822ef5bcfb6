#include "sinter/runtime/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "tests/runtime/available_isas.h"

namespace sinter::runtime {
namespace {

constexpr GemmType kTypes[] = {GemmType::f32, GemmType::f64, GemmType::bf16, GemmType::f16};

int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }
double epsilon(GemmType type) {
  return type == GemmType::f64 ? 0x1p-52 : type == GemmType::f32 ? 0x1p-23 : type == GemmType::f16 ? 0x1p-10 : 0x1p-7;
}

// Slow and simple conversions, independent of those under test.
double decode(const void* at, GemmType type) {
  if (type == GemmType::f64) {
    double v;
    std::memcpy(&v, at, 8);
    return v;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, at, size_t(size_of(type)));
  if (type == GemmType::bf16) bits <<= 16;
  if (type != GemmType::f16) {
    float v;
    std::memcpy(&v, &bits, 4);
    return v;
  }
  const int exponent = int(bits >> 10 & 31), fraction = int(bits & 1023);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

// Values with few bits, so that every type holds them exactly.
void encode(double value, void* at, GemmType type) {
  if (type == GemmType::f64) {
    std::memcpy(at, &value, 8);
    return;
  }
  const float narrow = float(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  if (type == GemmType::f32) {
    std::memcpy(at, &bits, 4);
  } else if (type == GemmType::bf16) {
    const uint16_t half = uint16_t(bits >> 16);
    std::memcpy(at, &half, 2);
  } else {
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const uint16_t half =
        uint16_t((value < 0 ? 0x8000 : 0) | (value == 0 ? 0 : ((exponent + 14) << 10) + int(fraction * 2048) - 1024));
    std::memcpy(at, &half, 2);
  }
}

enum Layout { kRowMajor, kColMajor, kStrided, kReversed, kLayouts };

// A strided matrix inside guarded storage: elements outside the view hold a value that must survive.
struct Matrix {
  std::vector<char> bytes;
  GemmType type;
  int64_t rows, cols, row_stride, col_stride, origin, batch_stride;

  Matrix(int64_t batch, int64_t rows_, int64_t cols_, GemmType type_, Layout layout)
      : type(type_), rows(rows_), cols(cols_), origin(0) {
    const int64_t pad = layout == kRowMajor || layout == kColMajor ? 3 : 1;
    if (layout == kColMajor) {
      row_stride = 1, col_stride = rows + pad;
    } else if (layout == kStrided) {
      col_stride = 2, row_stride = 2 * cols + pad;
    } else {
      col_stride = 1, row_stride = cols + pad;
    }
    batch_stride = (rows + pad) * std::max(row_stride, int64_t(1)) + (cols + pad) * col_stride;
    if (layout == kReversed) {
      origin = (rows - 1) * row_stride + (cols - 1);
      row_stride = -row_stride, col_stride = -1;
    }
    origin = std::max(origin, int64_t(0));
    bytes.resize(size_t((batch * batch_stride + 1) * size_of(type)));
    for (int64_t i = 0; i <= batch * batch_stride; ++i) encode(96, bytes.data() + i * size_of(type), type);
  }
  int64_t offset(int64_t b, int64_t i, int64_t j) const {
    return (origin + b * batch_stride + i * row_stride + j * col_stride) * size_of(type);
  }
  double at(int64_t b, int64_t i, int64_t j) const { return decode(bytes.data() + offset(b, i, j), type); }
  void set(int64_t b, int64_t i, int64_t j, double v) { encode(v, bytes.data() + offset(b, i, j), type); }
  void fill(int64_t batch, std::mt19937& rng) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) set(b, i, j, (int(rng() % 63) - 31) / 16.0);
  }
  GemmOperand operand() const { return {bytes.data() + offset(0, 0, 0), row_stride, col_stride, type, batch_stride}; }
  GemmOutput output() { return {bytes.data() + offset(0, 0, 0), row_stride, col_stride, type, batch_stride}; }
};

struct Case {
  int64_t m, n, k, batch = 1;
  GemmType a = GemmType::f32, b = GemmType::f32, c = GemmType::f32;
  Layout layout_a = kRowMajor, layout_b = kRowMajor, layout_c = kRowMajor;
  bool accumulate = false, epilogue = false, packed = false, shared_b = false;
  double alpha = 1;
  CpuIsa isa = best_cpu_isa();

  std::string text() const {
    return format(
        "m={} n={} k={} batch={} types={}{}{} layouts={}{}{} accumulate={} epilogue={} packed={} shared={} "
        "alpha={} isa={}",
        m, n, k, batch, int(a), int(b), int(c), int(layout_a), int(layout_b), int(layout_c), accumulate, epilogue,
        packed, shared_b, alpha, int(isa));
  }
};

struct Touched {
  int64_t rows, cols;
  std::vector<int>* counts;
};

template <class T>
void bias_and_relu(void* context, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
  const Touched& touched = *static_cast<Touched*>(context);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      T& value = static_cast<T*>(tile)[i * stride + j];
      value = std::max(value + T(row + i) + T(0.5) * T(col + j), T(0));
      ++(*touched.counts)[size_t((row + i) * touched.cols + col + j)];
    }
  }
}

void run(const Case& t, unsigned seed) {
  SCOPED_TRACE(t.text());
  std::mt19937 rng(seed);
  Matrix a(t.batch, t.m, t.k, t.a, t.layout_a), c(t.batch, t.m, t.n, t.c, t.layout_c);
  const int64_t b_batch = t.packed || t.shared_b ? 1 : t.batch;
  Matrix b(b_batch, t.k, t.n, t.b, t.layout_b);
  a.fill(t.batch, rng);
  b.fill(b_batch, rng);
  c.fill(t.batch, rng);
  Matrix before = c;

  std::vector<int> counts(size_t(t.batch * t.m * t.n));
  Touched touched{t.batch * t.m, t.n, &counts};
  const Epilogue epilogue{t.c == GemmType::f64 ? bias_and_relu<double> : bias_and_relu<float>, &touched};
  const GemmOptions options{.alpha = t.alpha,
                            .accumulate = t.accumulate,
                            .batch = t.batch,
                            .epilogue = t.epilogue ? &epilogue : nullptr,
                            .isa = t.isa};
  GemmOperand view = b.operand();
  if (t.shared_b) view.batch_stride = 0;
  if (t.packed)
    gemm(t.m, a.operand(), pack_b(t.k, t.n, view, t.isa), c.output(), options);
  else
    gemm(t.m, t.n, t.k, a.operand(), view, c.output(), options);

  std::vector<double> va, vb;
  for (int64_t s = 0; s < t.batch; ++s)
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t p = 0; p < t.k; ++p) va.push_back(a.at(s, i, p));
  for (int64_t s = 0; s < b_batch; ++s)
    for (int64_t j = 0; j < t.n; ++j)
      for (int64_t p = 0; p < t.k; ++p) vb.push_back(b.at(s, p, j));
  const double compute = t.c == GemmType::f64 ? 0x1p-52 : 0x1p-23;
  for (int64_t s = 0; s < t.batch; ++s) {
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < t.k; ++p) {
          const double product =
              va[size_t((s * t.m + i) * t.k + p)] * vb[size_t(((b_batch == 1 ? 0 : s) * t.n + j) * t.k + p)];
          sum += product;
          magnitude += std::fabs(product);
        }
        sum = t.alpha * sum + (t.accumulate ? before.at(s, i, j) : 0);
        if (t.epilogue) {
          sum = std::max(sum + double(s * t.m + i) + 0.5 * double(j), 0.0);
          magnitude += double(s * t.m + i) + double(j);
          ASSERT_EQ(counts[size_t((s * t.m + i) * t.n + j)], 1) << "epilogue at " << i << "," << j;
        }
        const double tolerance = compute * (magnitude + 4) * 4 + epsilon(t.c) * std::fabs(sum) * 0.502;
        ASSERT_NEAR(c.at(s, i, j), sum, tolerance) << "at " << s << "," << i << "," << j;
        // What lies between the elements is compared next; here the elements themselves are evened out.
        std::memcpy(c.bytes.data() + c.offset(s, i, j), before.bytes.data() + c.offset(s, i, j), size_t(size_of(t.c)));
      }
    }
  }
  ASSERT_EQ(c.bytes, before.bytes) << "written outside C";
}

class GemmIsa : public testing::TestWithParam<CpuIsa> {};

TEST_P(GemmIsa, EveryTypeAndLayout) {
  unsigned seed = 1;
  for (GemmType type : kTypes) {
    for (int layout = 0; layout < kLayouts * kLayouts * kLayouts; ++layout) {
      for (int64_t m : {5, 33}) {
        Case t{m, 39, 45};
        t.a = t.b = t.c = type;
        t.layout_a = Layout(layout % kLayouts);
        t.layout_b = Layout(layout / kLayouts % kLayouts);
        t.layout_c = Layout(layout / kLayouts / kLayouts);
        t.accumulate = seed % 2;
        t.epilogue = seed % 3 == 0;
        t.isa = GetParam();
        run(t, seed++);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmIsa, RandomOddSizes) {
  std::mt19937 rng(7);
  const auto pick = [&](auto count) { return int64_t(rng() % unsigned(count)); };
  for (unsigned round = 0; round < 400; ++round) {
    Case t{1 + pick(70), 1 + pick(70), 1 + pick(70)};
    // A few are narrow, so that the streaming paths of each side are met often.
    if (pick(4) == 0) t.m = 1 + pick(9);
    if (pick(4) == 0) t.n = 1 + pick(9);
    if (pick(8) == 0) t.k = 1 + pick(3);
    if (pick(5) == 0) {
      t.a = t.b = t.c = GemmType::f64;
    } else {
      const GemmType narrow[] = {GemmType::f32, GemmType::bf16, GemmType::f16};
      t.a = narrow[pick(3)], t.b = narrow[pick(3)], t.c = narrow[pick(3)];
    }
    t.layout_a = Layout(pick(kLayouts)), t.layout_b = Layout(pick(kLayouts)), t.layout_c = Layout(pick(kLayouts));
    t.accumulate = pick(2);
    t.epilogue = pick(2);
    t.packed = pick(3) == 0;
    t.shared_b = pick(3) == 0;
    t.batch = pick(4) == 0 ? 1 + pick(5) : 1;
    t.alpha = pick(3) == 0 ? 0.75 : 1;
    t.isa = GetParam();
    run(t, round);
    if (HasFatalFailure()) return;
  }
}

// Past every block size: several k blocks, several chunks of rows and columns, the streamed paths in earnest.
TEST_P(GemmIsa, Blocks) {
  const int64_t sizes[][3] = {{130, 150, 1100}, {257, 70, 600}, {3, 300, 700},
                              {8, 1100, 260},   {300, 2, 700},  {30, 560, 530},
                              {12, 80, 2100},   {32, 70, 1100}, {64, 90, 4200}};
  unsigned seed = 0;
  for (const auto& s : sizes) {
    for (int variant = 0; variant < 8; ++variant) {
      Case t{s[0], s[1], s[2]};
      const GemmType types[] = {GemmType::f32, GemmType::bf16, GemmType::f64, GemmType::f32};
      t.a = t.b = t.c = types[variant / 2];
      t.layout_b = variant % 2 ? kColMajor : kRowMajor;
      if (variant >= 6) t.packed = true;
      t.accumulate = seed % 2;
      t.epilogue = seed % 3 == 0;
      t.isa = GetParam();
      run(t, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(GemmIsa, ZeroSizes) {
  for (bool accumulate : {false, true}) {
    for (bool epilogue : {false, true}) {
      Case t{5, 7, 0};
      t.accumulate = accumulate;
      t.epilogue = epilogue;
      t.isa = GetParam();
      run(t, 3);
      t.packed = true;
      run(t, 4);
      t.packed = false;
      t.m = 0, t.k = 4;
      run(t, 5);
      t.m = 4, t.n = 0;
      run(t, 6);
    }
  }
}

TEST_P(GemmIsa, RoundsOnceToNearestEven) {
  // 1 + 2^-8 lies halfway between two bf16 values, 1 + 3 * 2^-8 between the next two; f16 likewise at 2^-11.
  for (auto [type, step] : {std::pair{GemmType::bf16, 0x1p-8}, std::pair{GemmType::f16, 0x1p-11}}) {
    for (int64_t n : {1, 5, 16, 37}) {
      std::vector<float> a(size_t(4), 1.0f), b(size_t(4 * n));
      std::vector<uint16_t> c(n, 0);
      const double parts[4] = {1, step, step, step};
      for (int64_t p = 0; p < 4; ++p)
        for (int64_t j = 0; j < n; ++j) b[size_t(p * n + j)] = float(j % 2 && p > 1 ? 0 : parts[p]);
      gemm(1, n, 4, {a.data(), 4, 1}, {b.data(), n, 1}, {c.data(), n, 1, type}, {.isa = GetParam()});
      for (int64_t j = 0; j < n; ++j)
        EXPECT_EQ(decode(&c[size_t(j)], type), j % 2 ? 1 : 1 + 4 * step) << "n=" << n << " j=" << j;
    }
  }
}

TEST_P(GemmIsa, NanAndInfinityFlow) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (GemmType type : {GemmType::f32, GemmType::bf16, GemmType::f16}) {
    for (int64_t m : {2, 20}) {
      const int64_t n = 19, k = 40;
      std::vector<float> a(size_t(m * k), 1.0f), b(size_t(k * n), 1.0f);
      b[3] = nan, b[5] = inf, b[7] = -inf, b[size_t(n + 7)] = inf, b[9] = 1e38f, b[size_t(n + 9)] = 3e38f;
      std::vector<char> c(size_t(m * n * size_of(type)));
      gemm(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, {c.data(), n, 1, type}, {.isa = GetParam()});
      for (int64_t i = 0; i < m; ++i) {
        const auto at = [&](int64_t j) { return decode(c.data() + (i * n + j) * size_of(type), type); };
        EXPECT_TRUE(std::isnan(at(3)));
        EXPECT_EQ(at(5), inf);
        EXPECT_TRUE(std::isnan(at(7)));
        EXPECT_EQ(at(9), inf);
        EXPECT_EQ(at(4), k);
      }
    }
  }
}

TEST_P(GemmIsa, ThreadsDoNotChangeBits) {
  const int before = num_threads();
  const int64_t shapes[][3] = {{150, 200, 1100}, {1, 900, 1000}, {7, 900, 500},
                               {900, 1, 500},    {64, 64, 64},   {40, 2000, 90},
                               {20, 300, 1500}};
  for (const auto& s : shapes) {
    const int64_t m = s[0], n = s[1], k = s[2];
    for (bool transposed : {false, true}) {
      std::mt19937 rng(5);
      std::normal_distribution<float> normal;
      std::vector<float> a(size_t(m * k)), b(size_t(k * n)), first;
      for (float& v : a) v = normal(rng);
      for (float& v : b) v = normal(rng);
      for (int threads : {1, 2, 3, 5}) {
        set_num_threads(threads);
        std::vector<float> c(size_t(m * n));
        gemm(m, n, k, {a.data(), k, 1}, {b.data(), transposed ? 1 : n, transposed ? k : 1}, {c.data(), n, 1},
             {.isa = GetParam()});
        if (first.empty()) first = c;
        EXPECT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0)
            << format("{} {} {} threads={}", m, n, k, threads);
      }
    }
  }
  set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(All, GemmIsa, testing::ValuesIn(available_isas()), [](const auto& info) {
  return std::string(cpu_isa_name(info.param));
});

TEST(Gemm, FlushesDenormalsAndRestores) {
  const float tiny = 1e-40f;
  volatile float source = tiny;
  std::vector<float> a(64, tiny), b(64, 1.0f), c(64, 5.0f);
  gemm(8, 8, 8, {a.data(), 8, 1}, {b.data(), 8, 1}, {c.data(), 8, 1});
#if defined(__SSE2__)
  EXPECT_EQ(c[0], 0.0f);
#endif
  EXPECT_NE(source * 0.5f, 0.0f);
}

TEST(Gemm, PackedKeepsItsElementType) {
  std::vector<uint16_t> b(100 * 100);
  const PackedB packed = pack_b(100, 100, {b.data(), 100, 1, GemmType::bf16});
  EXPECT_EQ(packed.type(), GemmType::bf16);
  EXPECT_LT(packed.size_bytes(), 100 * 160 * 2);
}

TEST(Gemm, RefusesMixedDouble) {
  double a = 1;
  float b = 1, c = 1;
  EXPECT_THROW(gemm(1, 1, 1, {&a, 1, 1, GemmType::f64}, {&b, 1, 1}, {&c, 1, 1}), Error);
  EXPECT_THROW(gemm(-1, 1, 1, {&b, 1, 1}, {&b, 1, 1}, {&c, 1, 1}), Error);
}

}  // namespace
}  // namespace sinter::runtime
