// Convolutions and pools of every instruction set against plain loops in double precision.
#include "sinter/runtime/cpu/conv/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/conv/pool.h"

namespace sinter::runtime {
namespace {

// --- numbers in memory

double read(const void* data, int64_t i, GemmType type) {
  if (type == GemmType::f64) return static_cast<const double*>(data)[i];
  if (type == GemmType::f32) return static_cast<const float*>(data)[i];
  uint16_t bits = static_cast<const uint16_t*>(data)[i];
  if (type == GemmType::bf16) {
    uint32_t wide = uint32_t(bits) << 16;
    float f;
    std::memcpy(&f, &wide, 4);
    return f;
  }
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -v : v;
}

// Quarters of small numbers: exact in every type.
void write(void* data, int64_t i, GemmType type, double v) {
  if (type == GemmType::f64) static_cast<double*>(data)[i] = v;
  if (type == GemmType::f32) static_cast<float*>(data)[i] = float(v);
  if (type == GemmType::bf16) {
    float f = float(v);
    uint32_t wide;
    std::memcpy(&wide, &f, 4);
    static_cast<uint16_t*>(data)[i] = uint16_t(wide >> 16);
  }
  if (type == GemmType::f16) {
    int exponent;
    double mantissa = std::frexp(std::abs(v), &exponent);
    uint16_t bits = v == 0 ? 0 : uint16_t((exponent + 14) << 10 | (int(mantissa * 2048) & 1023));
    static_cast<uint16_t*>(data)[i] = uint16_t(bits | (v < 0 ? 0x8000 : 0));
  }
}

int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }

struct Array {
  GemmType type;
  std::vector<char> bytes;
  Array(GemmType type, int64_t count) : type(type), bytes(size_t(count * size_of(type) + 1)) {}
  Array(GemmType type, int64_t count, std::mt19937& rng) : Array(type, count) {
    for (int64_t i = 0; i < count; ++i) write(data(), i, type, (int(rng() % 33) - 16) / 4.0);
  }
  void* data() { return bytes.data(); }
  double operator[](int64_t i) const { return read(bytes.data(), i, type); }
};

// --- the problems

struct Case {
  ConvShape s;
  GemmType type = GemmType::f32;
  bool channels_last = false, epilogue = false, taps_first = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  auto list = [](const int64_t* v) { return format("{},{},{}", v[0], v[1], v[2]); };
  return out
         << format("images {} groups {} channels {} filters {} in {} out {} kernel {} stride {} padding {} dilation {}",
                   c.s.images, c.s.groups, c.s.channels, c.s.filters, list(c.s.in), list(c.s.out), list(c.s.kernel),
                   list(c.s.stride), list(c.s.padding), list(c.s.dilation))
         << format(" type {} channels_last {} epilogue {} taps_first {}", int(c.type), c.channels_last, c.epilogue, c.taps_first);
}

int64_t volume(const int64_t* v) { return v[0] * v[1] * v[2]; }

void set_outputs(ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    s.out[d] = (s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
}

ConvOperand operand(Array& a, int64_t channels, const int64_t* sizes, bool channels_last) {
  const int64_t v = volume(sizes), c = channels_last ? channels : 1;
  return {a.data(), {channels * v, channels_last ? 1 : v, sizes[1] * sizes[2] * c, sizes[2] * c, c}, a.type};
}

// Calls f(image, group, filter, channel, output position, weight index, input position) for every product.
template <class F>
void each_product(const ConvShape& s, F f) {
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t o = 0; o < s.filters; ++o)
        for (int64_t c = 0; c < s.channels; ++c)
          for (int64_t p = 0; p < volume(s.out); ++p)
            for (int64_t t = 0; t < volume(s.kernel); ++t) {
              const int64_t at[3] = {p / s.out[2] / s.out[1], p / s.out[2] % s.out[1], p % s.out[2]};
              const int64_t tap[3] = {t / s.kernel[2] / s.kernel[1], t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
              int64_t flat = 0;
              bool inside = true;
              for (int d = 0; d < 3; ++d) {
                const int64_t i = at[d] * s.stride[d] + tap[d] * s.dilation[d] - s.padding[d];
                inside = inside && i >= 0 && i < s.in[d];
                flat = flat * s.in[d] + i;
              }
              if (inside) f(n, g, o, c, p, ((g * s.filters + o) * s.channels + c) * volume(s.kernel) + t, flat);
            }
}

int64_t place(const ConvOperand& x, const int64_t* sizes, int64_t n, int64_t c, int64_t p) {
  return n * x.strides[0] + c * x.strides[1] + p / sizes[2] / sizes[1] * x.strides[2] +
         p / sizes[2] % sizes[1] * x.strides[3] + p % sizes[2] * x.strides[4];
}

// Doubles the result and adds its row and a bit of its column: any tile misplaced, missing or done twice shows.
double after(double v, int64_t row, int64_t col) { return 2 * v + double(row % 7) + double(col % 5) / 4; }
template <class T>
void epilogue(void*, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T& v = static_cast<T*>(tile)[i * stride + j];
      v = T(after(double(v), row + i, col + j));
    }
}

void expect_near(Array& got, const std::vector<double>& sums, int64_t columns, const Case& c, const char* what) {
  const double relative = c.type == GemmType::bf16 ? 1.0 / 128 : c.type == GemmType::f16 ? 1.0 / 1024 : 1e-5;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double want = c.epilogue ? after(sums[i], int64_t(i) / columns, int64_t(i) % columns) : sums[i];
    ASSERT_NEAR(got[int64_t(i)], want, relative * std::max(1.0, std::abs(want))) << what << " at " << i << " " << c;
  }
}

std::vector<CpuIsa> instruction_sets() {
  std::vector<CpuIsa> out;
  for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512})
    if (cpu_supports(isa)) out.push_back(isa);
  return out;
}

void compare(const Case& c) {
  const ConvShape& s = c.s;
  std::mt19937 rng(5);
  const int64_t ins = s.groups * s.channels, outs = s.groups * s.filters;
  Array x(c.type, s.images * ins * volume(s.in), rng), w(c.type, outs * s.channels * volume(s.kernel), rng),
      g(c.type, s.images * outs * volume(s.out), rng);
  const ConvOperand xs = operand(x, ins, s.in, c.channels_last), gs = operand(g, outs, s.out, c.channels_last);
  std::vector<double> forward(size_t(s.images * outs * volume(s.out))), back(size_t(s.images * ins * volume(s.in))),
      weight(size_t(outs * s.channels * volume(s.kernel)));
  const int64_t taps = volume(s.kernel);
  each_product(s, [&](int64_t n, int64_t group, int64_t o, int64_t channel, int64_t p, int64_t k, int64_t q) {
    const int64_t in = group * s.channels + channel, out = group * s.filters + o;
    if (c.taps_first) k = (out * taps + k % taps) * s.channels + channel;
    const double xv = x[place(xs, s.in, n, in, q)], gv = g[place(gs, s.out, n, out, p)];
    forward[size_t((n * outs + out) * volume(s.out) + p)] += xv * w[k];
    back[size_t((n * ins + in) * volume(s.in) + q)] += gv * w[k];
    weight[size_t(k)] += xv * gv;
  });
  const Epilogue hook{c.type == GemmType::f64 ? epilogue<double> : epilogue<float>, nullptr};
  Case plain = c;
  plain.epilogue = false;
  for (CpuIsa isa : instruction_sets()) {
    const ConvOptions options{c.epilogue ? &hook : nullptr, c.taps_first, isa};
    Array y(c.type, int64_t(forward.size())), dx(c.type, int64_t(back.size())), dw(c.type, int64_t(weight.size()));
    convolution(s, xs, w.data(), c.type, y.data(), c.type, options);
    expect_near(y, forward, volume(s.out), c, "forward");
    convolution_transposed(s, gs, w.data(), c.type, dx.data(), c.type, options);
    expect_near(dx, back, volume(s.in), c, "transposed");
    convolution_weight_grad(s, xs, gs, dw.data(), c.type, {nullptr, c.taps_first, isa});
    expect_near(dw, weight, 1, plain, "weight gradient");
  }
}

Case conv2d(int64_t images, int64_t groups, int64_t channels, int64_t filters, int64_t h, int64_t w, int64_t kernel,
            int64_t stride = 1, int64_t padding = 0, int64_t dilation = 1) {
  Case c;
  c.s = {images,
         groups,
         channels,
         filters,
         {1, h, w},
         {1, 1, 1},
         {1, kernel, kernel},
         {1, stride, stride},
         {0, padding, padding},
         {1, dilation, dilation}};
  set_outputs(c.s);
  return c;
}

TEST(Convolution, FamiliarShapes) {
  const Case cases[] = {conv2d(1, 1, 3, 12, 23, 21, 7, 2, 3), conv2d(2, 1, 16, 24, 14, 14, 3, 1, 1),
                        conv2d(1, 1, 33, 18, 7, 7, 3, 1, 1),  conv2d(2, 1, 20, 30, 9, 11, 1),
                        conv2d(1, 1, 20, 30, 9, 11, 1, 2),    conv2d(2, 8, 1, 1, 17, 19, 3, 1, 1),
                        conv2d(1, 8, 1, 1, 18, 35, 3, 2, 1),  conv2d(1, 5, 1, 3, 12, 13, 5, 1, 2),
                        conv2d(1, 4, 3, 6, 10, 10, 3, 1, 1),  conv2d(1, 1, 4, 5, 20, 40, 3, 1, 2, 2),
                        conv2d(1, 1, 1, 12, 18, 20, 5),       conv2d(1, 1, 5, 200, 6, 6, 3, 1, 1),
                        conv2d(1, 6, 1, 1, 9, 70, 3, 3, 1),   conv2d(3, 2, 2, 2, 5, 5, 2, 2),
                        conv2d(0, 1, 3, 4, 5, 5, 3, 1, 1),    conv2d(7, 1, 9, 40, 4, 4, 3, 1, 1),
                        conv2d(40, 2, 5, 7, 4, 4, 3, 1, 1),   conv2d(33, 2, 5, 7, 7, 7, 3, 2, 1),
                        conv2d(8, 1, 20, 30, 3, 3, 1)};
  for (GemmType type : {GemmType::f32, GemmType::f64, GemmType::bf16, GemmType::f16})
    for (Case c : cases)
      for (bool taps_first : {false, true}) {
        c.type = type;
        c.epilogue = type != GemmType::f16;
        c.taps_first = taps_first;
        compare(c);
        if (HasFatalFailure()) return;
      }
}

TEST(Convolution, RandomShapes) {
  std::mt19937 rng(3);
  auto pick = [&](int64_t low, int64_t high) { return low + int64_t(rng() % uint32_t(high - low + 1)); };
  for (int i = 0; i < 150; ++i) {
    Case c;
    ConvShape& s = c.s;
    s.images = pick(1, 5);
    s.groups = pick(1, 3);
    s.channels = pick(1, 6);
    s.filters = pick(1, 12);
    for (int d = i % 3; d < 3; ++d) {
      s.kernel[d] = pick(1, 4);
      s.dilation[d] = pick(1, 3);
      s.stride[d] = pick(1, 3);
      s.padding[d] = pick(0, 3);
      const int64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
      s.in[d] = std::max<int64_t>(1, reach - 2 * s.padding[d]) + pick(0, d == 2 ? 40 : 5);
    }
    set_outputs(s);
    c.type = GemmType(pick(0, 3));
    c.channels_last = pick(0, 1);
    c.epilogue = pick(0, 1);
    c.taps_first = pick(0, 1);
    compare(c);
    if (HasFatalFailure()) return;
  }
}

TEST(Convolution, TheNumberOfThreadsChangesNoBit) {
  const int before = num_threads();
  std::mt19937 rng(9);
  for (Case c : {conv2d(1, 1, 48, 80, 28, 28, 3, 1, 1), conv2d(3, 1, 24, 200, 14, 14, 3, 2, 1),
                 conv2d(1, 1, 64, 96, 20, 20, 1), conv2d(2, 40, 1, 1, 28, 28, 3, 1, 1), conv2d(7, 1, 40, 72, 5, 5, 3, 1, 1),
                 conv2d(9, 1, 40, 72, 7, 7, 3, 2, 1)}) {
    const ConvShape& s = c.s;
    const int64_t ins = s.groups * s.channels, outs = s.groups * s.filters;
    Array x(c.type, s.images * ins * volume(s.in)), w(c.type, outs * s.channels * volume(s.kernel)),
        g(c.type, s.images * outs * volume(s.out));
    for (Array* a : {&x, &w, &g})
      for (size_t i = 0; i + 1 < a->bytes.size(); i += 4)
        write(a->data(), int64_t(i / 4), c.type, double(rng() % 10007) / 5000 - 1);
    std::vector<Array> results[2];
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      Array y(c.type, s.images * outs * volume(s.out)), dx(c.type, s.images * ins * volume(s.in)),
          dw(c.type, outs * s.channels * volume(s.kernel));
      const ConvOptions options{.taps_first = s.stride[2] > 1 || s.images == 7};
      convolution(s, operand(x, ins, s.in, false), w.data(), c.type, y.data(), c.type, options);
      convolution_transposed(s, operand(g, outs, s.out, false), w.data(), c.type, dx.data(), c.type, options);
      convolution_weight_grad(s, operand(x, ins, s.in, false), operand(g, outs, s.out, false), dw.data(), c.type, options);
      results[threads - 1] = {y, dx, dw};
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[0][i].bytes, results[1][i].bytes) << i << " " << c;
  }
  set_num_threads(before);
}

// --- pools

void compare_pools(const Case& c, CpuIsa isa, double special) {
  const ConvShape& s = c.s;
  std::mt19937 rng(11);
  const int64_t in = volume(s.in), out = volume(s.out);
  Array x(c.type, s.images * in, rng), g(c.type, s.images * out, rng);
  if (c.type == GemmType::f32 && !std::isnan(special))
    for (int64_t i = 0; i < s.images * in; i += 1 + int64_t(rng() % 3)) write(x.data(), i, c.type, special);
  if (std::isnan(special) && c.type == GemmType::f32) write(x.data(), s.images * in / 2, c.type, special);
  std::vector<double> largest(size_t(s.images * out), -std::numeric_limits<double>::infinity()), sums(largest.size()),
      back(size_t(s.images * in));
  std::vector<int64_t> where(largest.size(), -1);
  each_product(s, [&](int64_t n, int64_t, int64_t, int64_t, int64_t p, int64_t, int64_t q) {
    const size_t at = size_t(n * out + p);
    const double v = x[n * in + q];
    if (where[at] < 0 || v > largest[at] || (std::isnan(v) && !std::isnan(largest[at]))) largest[at] = v, where[at] = q;
    sums[at] += v;
    back[size_t(n * in + q)] += g[n * out + p];
  });
  Array max(c.type, s.images * out), sum(c.type, s.images * out), spread(c.type, s.images * in);
  std::vector<int64_t> indices(largest.size());
  max_pool(s, x.data(), c.type, max.data(), isa);
  max_pool_indices(s, x.data(), c.type, indices.data(), isa);
  EXPECT_EQ(indices, where) << c;
  for (size_t i = 0; i < largest.size(); ++i)
    if (std::isnan(largest[i]))
      ASSERT_TRUE(std::isnan(max[int64_t(i)])) << c;
    else
      ASSERT_EQ(max[int64_t(i)], largest[i]) << i << " " << c;
  window_sum_transposed(s, g.data(), c.type, spread.data(), isa);
  expect_near(spread, back, 1, c, "window sum transposed");
  std::vector<double> chosen(back.size());
  for (size_t i = 0; i < where.size(); ++i) chosen[size_t(int64_t(i) / out * in + where[i])] += g[int64_t(i)];
  Array gathered(c.type, s.images * in);
  ConvShape reach = s;
  for (int d = 0; d < 3; ++d) reach.kernel[d] = s.dilation[d] * (s.kernel[d] - 1) + 1;
  max_pool_grad(reach, g.data(), where.data(), c.type, gathered.data());
  expect_near(gathered, chosen, 1, c, "gradient of the maxima");
  if (!std::isfinite(special)) return;
  window_sum(s, x.data(), c.type, sum.data(), isa);
  expect_near(sum, sums, 1, c, "window sum");
}

TEST(Pool, AgreesWithPlainLoops) {
  std::mt19937 rng(4);
  auto pick = [&](int64_t low, int64_t high) { return low + int64_t(rng() % uint32_t(high - low + 1)); };
  for (int i = 0; i < 120; ++i) {
    Case c;
    ConvShape& s = c.s;
    s.images = pick(1, 5);
    for (int d = i % 3; d < 3; ++d) {
      s.kernel[d] = pick(1, 4);
      s.stride[d] = pick(1, 3);
      s.dilation[d] = pick(1, 2);
      s.padding[d] = pick(0, s.kernel[d] / 2);
      s.in[d] = s.dilation[d] * (s.kernel[d] - 1) + 1 + pick(0, d == 2 ? 50 : 6);
    }
    set_outputs(s);
    c.type = GemmType(pick(0, 3));
    const double specials[] = {1.5, -std::numeric_limits<double>::infinity(), std::nan("")};
    for (CpuIsa isa : instruction_sets()) compare_pools(c, isa, specials[i / 3 % 3]);
    if (HasFatalFailure()) return;
  }
}

// As ceil_mode has it: the last window begins inside and hangs over.
TEST(Pool, WindowsMayHangOver) {
  Case c = conv2d(3, 1, 1, 1, 6, 7, 3, 2);
  c.s.out[1] = 3, c.s.out[2] = 4;
  for (CpuIsa isa : instruction_sets()) compare_pools(c, isa, 1.5);
}

}  // namespace
}  // namespace sinter::runtime
