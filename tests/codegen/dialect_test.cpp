// Kernels as the emitter writes them for the vectors of this machine, against the interpreter: every way in which the
// prelude's memory, masks, conversions, reductions and functions are used, with sizes that leave partial vectors.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/engine/executable.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {
namespace {

using Function = std::function<TensorList(const TensorList&)>;

// Numbers between -2 and 2.
Tensor numbers(const Shape& shape, double shift = 0, DType dtype = kFloat32) {
  Tensor out = empty(shape);
  auto* data = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < out.numel(); ++i) data[i] = float(2 * std::sin(double(i) * 0.7 + shift));
  return dtype == kFloat32 ? out : out.to(dtype);
}

void expect_agreement(const Function& f, const TensorList& inputs, double tolerance = 1e-5) {
  std::vector<Type> types;
  std::vector<TensorArg> arguments(inputs.begin(), inputs.end());
  for (auto& input : inputs) types.push_back({input.dtype(), input.sizes(), input.device()});
  TensorList results[2];
  for (int i = 0; i < 2; ++i) {
    Program program{.graph = trace(f, types), .symbols = {}, .writes = {}, .name = "dialect"};
    results[i].resize(program.graph.outputs().size());
    compile_program(std::move(program), i == 0 ? "sinter" : "interpreter")->run(arguments, {}, results[i]);
  }
  for (size_t r = 0; r < results[0].size(); ++r) {
    ASSERT_EQ(results[0][r].dtype(), results[1][r].dtype());
    auto got = results[0][r].to_vector<double>(), want = results[1][r].to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_LE(std::abs(got[i] - want[i]), tolerance * (1 + std::abs(want[i])))
          << "result " << r << " element " << i << ": " << got[i] << " instead of " << want[i];
  }
}

TEST(Dialect, Functions) {
  expect_agreement(
      [](const TensorList& x) {
        Tensor a = x[0], positive = a.abs() + 0.5;
        return TensorList{a.exp() + a.tanh() * erf(a), sigmoid(a) - positive.log() * positive.sqrt(), a.sin() + a.cos(),
                          pow(positive, a), a.floor() + a.round() * 2, positive.rsqrt()};
      },
      {numbers({5, 37})});
}

TEST(Dialect, SixteenBitStorage) {
  for (DType dtype : {kBFloat16, kFloat16})
    expect_agreement([](const TensorList& x) { return TensorList{gelu(x[0] * x[1]) + 1, x[0].to(kFloat32) * 3}; },
                     {numbers({7, 21}, 0, dtype), numbers({21}, 1, dtype)}, dtype == kBFloat16 ? 1e-2 : 2e-3);
}

TEST(Dialect, IntegersAndMasks) {
  expect_agreement(
      [](const TensorList& x) {
        Tensor a = (x[0] * 20).to(kInt32), b = (x[1] * 5).to(kInt32), small = a.to(kInt8), wide = a.to(kInt64) * 3;
        return TensorList{floor_divide(a, b.abs() + 1), remainder(a, b.abs() + 1), small, wide + b.to(kInt64),
                          where(x[0] > x[1], x[0], x[1] * 2), (x[0] > 0).to(kInt64)};
      },
      {numbers({3, 45}), numbers({3, 45}, 2)});
}

// A select of x and of a value with the sign of x: LLVM joins them (prelude.embed: opaque).
TEST(Dialect, SelectsMeetBitOperations) {
  for (DType dtype : {kFloat32, kFloat64, kBFloat16})
    expect_agreement(
        [](const TensorList& x) {
          Tensor a = x[0];
          return TensorList{elu(a) + 1, elu(a).sum(), celu(a).mean(), where(a > 0, a, a.tanh()) + 1, where(a > 0, a, sinh(a)) * x[1]};
        },
        {numbers({6, 45}, 0, dtype), numbers({6, 45}, 1, dtype)}, dtype == kBFloat16 ? 1e-2 : 1e-5);
  for (DType dtype : {kInt32, kInt64})
    expect_agreement(
        [](const TensorList& x) {
          Tensor a = x[0], b = x[1], m = a > b;
          return TensorList{where(m, a, (a & 15) | (b & ~15)) + 1, where(m, b, (a & 15) + (b & ~15)),
                            where(m, a, floor_divide(a, 16) * 16 + remainder(b, 16))};
        },
        {numbers({6, 45}).mul(1000).to(dtype), numbers({6, 45}, 1).mul(1000).to(dtype)}, 0);
}

TEST(Dialect, DoublePrecision) {
  expect_agreement([](const TensorList& x) { return TensorList{x[0].exp() * x[0].sqrt() + 1, x[0].sum({1})}; },
                   {numbers({4, 19}).abs().to(kFloat64)}, 1e-12);
}

TEST(Dialect, Reductions) {
  expect_agreement(
      [](const TensorList& x) {
        return TensorList{x[0].sum({1}),  x[0].sum({0}),  x[0].amax({1}),
                          x[0].amin({0}), x[0].argmax(1), x[0].mean({0, 1})};
      },
      {numbers({13, 71})});
}

TEST(Dialect, SoftmaxAndLayerNorm) {
  expect_agreement(
      [](const TensorList& x) {
        return TensorList{x[0].softmax(-1), layer_norm(x[0], {53}, x[1], x[2])};
      },
      {numbers({9, 53}), numbers({53}, 1), numbers({53}, 2)});
}

TEST(Dialect, TransposedAndStridedAccess) {
  expect_agreement(
      [](const TensorList& x) {
        return TensorList{x[0] + x[1].t(), x[0].slice(1, 0, 30, 2) * 3, x[0].index_select(0, x[2])};
      },
      {numbers({18, 33}), numbers({33, 18}, 1), (numbers({11}).abs() * 8).to(kInt64)});
}

TEST(Dialect, ProductsWithEpilogues) {
  for (DType dtype : {kFloat32, kBFloat16})
    expect_agreement([](const TensorList& x) { return TensorList{gelu(matmul(x[0], x[1]) + x[2]) * 2}; },
                     {numbers({21, 40}, 0, dtype), numbers({40, 35}, 1, dtype), numbers({35}, 2, dtype)},
                     dtype == kFloat32 ? 1e-4 : 3e-2);
  // Sums are finished where they fit: not those of doubles in floats, nor the other way round.
  for (auto [from, to] : {std::pair(kFloat32, kFloat64), std::pair(kFloat64, kFloat32), std::pair(kBFloat16, kFloat64)})
    expect_agreement([to = to](const TensorList& x) { return TensorList{matmul(x[0], x[1]).to(to) * 2}; },
                     {numbers({21, 40}, 0, from), numbers({40, 35}, 1, from)}, from == kBFloat16 ? 3e-2 : 1e-4);
}

}  // namespace
}  // namespace sinter
