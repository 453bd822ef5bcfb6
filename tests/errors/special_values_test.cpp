// NaN and infinity through the ops, and integers divided by zero.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

Tensor odd_row() { return tensor({1.0f, kNan, -kInf, kInf, 2.0f}); }

// Long enough for vector bodies and several threads, with one NaN.
Tensor long_row(int64_t n, int64_t at) {
  Tensor x = arange(n, kFloat32);
  x.index_put_({at}, kNan);
  return x;
}

TEST(SpecialValues, Reductions) {
  Tensor x = odd_row(), infinite = tensor({1.0f, kInf});
  EXPECT_TRUE(has_values(x.max(), {kNan}));
  EXPECT_TRUE(has_values(x.min(), {kNan}));
  EXPECT_TRUE(has_values(x.amax(0), {kNan}));
  EXPECT_EQ(x.argmax().item<int64_t>(), 1);
  EXPECT_EQ(x.argmin().item<int64_t>(), 1);
  EXPECT_TRUE(has_values(x.sum(), {kNan}));
  EXPECT_TRUE(has_values(x.mean(), {kNan}));
  EXPECT_TRUE(has_values(x.prod(), {kNan}));
  EXPECT_TRUE(has_values(infinite.sum(), {kInf}));
  EXPECT_TRUE(has_values(infinite.max(), {kInf}));
  EXPECT_TRUE(has_values(tensor({kInf, -kInf}).sum(), {kNan}));
  EXPECT_TRUE(has_values(tensor({-kInf, -kInf}).max(), {-kInf}));
  EXPECT_EQ(tensor({-kInf, -kInf}).argmax().item<int64_t>(), 0);
  EXPECT_TRUE(has_values(tensor({-kInf, -kInf}).logsumexp(0), {-kInf}));
  EXPECT_TRUE(has_values(nansum(tensor({1.0f, kNan})), {1}));
  EXPECT_TRUE(x.any().item<bool>());
  auto [values, positions] = x.max(0);
  EXPECT_TRUE(has_values(values, {kNan}));
  EXPECT_TRUE(has_values(positions, {1}));
}

TEST(SpecialValues, OneNanInALongRow) {
  for (int64_t n : {17, 1000, 200000})
    for (int64_t at : {int64_t(0), n / 2, n - 1}) {
      Tensor x = long_row(n, at);
      EXPECT_TRUE(has_values(x.max(), {kNan})) << n << " " << at;
      EXPECT_TRUE(has_values(x.min(), {kNan})) << n << " " << at;
      EXPECT_EQ(x.argmax().item<int64_t>(), at);
      EXPECT_EQ(x.argmin(0).item<int64_t>(), at);
      EXPECT_TRUE(has_values(x.sum(), {kNan}));
      EXPECT_EQ(isnan(x).sum().item<int64_t>(), 1);
      Tensor columns = x.view({n, 1}).expand({n, 20});
      EXPECT_TRUE(isnan(columns.amax(0)).all().item<bool>());
    }
}

TEST(SpecialValues, Softmax) {
  EXPECT_TRUE(has_values(tensor({0.0f, -kInf}).softmax(0), {1, 0}));
  EXPECT_TRUE(has_values(tensor({1e30, 1e30}).softmax(0), {0.5, 0.5}));
  EXPECT_TRUE(has_values(tensor({kInf, 0.0f}).softmax(0), {kNan, 0}) || has_values(tensor({kInf, 0.0f}).softmax(0), {kNan, kNan}));
  EXPECT_TRUE(has_values(tensor({-kInf, -kInf}).softmax(0), {kNan, kNan}));
  EXPECT_TRUE(has_values(tensor({kNan, 0.0f}).softmax(0), {kNan, kNan}));
  EXPECT_TRUE(has_values(tensor({0.0f, -kInf}).log_softmax(0), {0, -kInf}));
}

TEST(SpecialValues, Order) {
  Tensor x = odd_row();
  EXPECT_TRUE(has_values(std::get<0>(x.sort()), {-kInf, 1, 2, kInf, kNan}));
  EXPECT_TRUE(has_values(std::get<0>(x.sort(0, true)), {kNan, kInf, 2, 1, -kInf}));
  EXPECT_TRUE(has_values(std::get<0>(x.topk(2)), {kNan, kInf}));
  EXPECT_TRUE(has_values(x.clamp(0, 1.5), {1, kNan, 0, 1.5, 1.5}));
  EXPECT_TRUE(has_values(maximum(x, 0), {1, kNan, 0, kInf, 2}));
  EXPECT_TRUE(has_values(minimum(0, x), {0, kNan, -kInf, 0, 0}));
  EXPECT_TRUE(has_values(fmax(x, 0), {1, 0, 0, kInf, 2}));
  EXPECT_TRUE(has_values(relu(x), {1, kNan, 0, kInf, 2}));
  EXPECT_TRUE(has_values(x == x, {1, 0, 1, 1, 1}));
  EXPECT_TRUE(has_values(x != x, {0, 1, 0, 0, 0}));
  EXPECT_TRUE(has_values(x < kInf, {1, 0, 1, 0, 1}));
  EXPECT_TRUE(has_values(isfinite(x), {1, 0, 0, 0, 1}));
  EXPECT_TRUE(has_values(where(isnan(x), 0, x), {1, 0, -kInf, kInf, 2}));
  EXPECT_TRUE(has_values(x.cumsum(0), {1, kNan, kNan, kNan, kNan}));
  EXPECT_TRUE(has_values(sign(tensor({kNan, -kInf, 0.0f})), {kNan, -1, 0}) || has_values(sign(tensor({kNan, -kInf, 0.0f})), {0, -1, 0}));
}

TEST(SpecialValues, Functions) {
  Tensor zero = zeros({1}), one = ones({1});
  EXPECT_TRUE(has_values(zero / zero, {kNan}));
  EXPECT_TRUE(has_values(one / zero, {kInf}));
  EXPECT_TRUE(has_values(-one / zero, {-kInf}));
  EXPECT_TRUE(has_values(log(zero), {-kInf}));
  EXPECT_TRUE(has_values(log(-one), {kNan}));
  EXPECT_TRUE(has_values(sqrt(-one), {kNan}));
  EXPECT_TRUE(has_values(rsqrt(zero), {kInf}));
  EXPECT_TRUE(has_values(exp(tensor({1000.0, -1000.0})), {kInf, 0}));
  EXPECT_TRUE(has_values(exp(odd_row().slice(0, 1, 4)), {kNan, 0, kInf}));
  EXPECT_TRUE(has_values(tanh(tensor({kInf, -kInf, kNan})), {1, -1, kNan}));
  EXPECT_TRUE(has_values(sigmoid(tensor({kInf, -kInf, kNan})), {1, 0, kNan}));
  EXPECT_TRUE(has_values(pow(zero, 0), {1}));
  EXPECT_TRUE(has_values(pow(tensor({kNan}), 0), {1}));
  EXPECT_TRUE(has_values(pow(one, tensor({kNan})), {1}));
  EXPECT_TRUE(has_values(pow(zero, -1), {kInf}));
  EXPECT_TRUE(has_values(pow(tensor({-8.0}), 1.0 / 3), {kNan}));
  EXPECT_TRUE(has_values(pow(tensor({-2.0}), 3), {-8}));
  EXPECT_TRUE(has_values(pow(tensor({kInf, -kInf}), 2), {kInf, kInf}));
  EXPECT_TRUE(has_values(pow(tensor({2, 3, -1}), 3), {8, 27, -1}));
  EXPECT_TRUE(has_values(gelu(tensor({kNan})), {kNan}));
  EXPECT_TRUE(has_values(matmul(tensor({{kNan, 0.0f}}), zeros({2, 1})), {kNan}));
  EXPECT_TRUE(has_values(matmul(tensor({{kInf, 1.0f}}), tensor({{0.0f}, {1.0f}})), {kNan}));
  EXPECT_TRUE(has_values(layer_norm(tensor({1.0f, kInf}), {2}), {kNan, kNan}));
  EXPECT_TRUE(has_values(fmod(one, zero), {kNan}));
  EXPECT_TRUE(has_values(remainder(one, zero), {kNan}));
  EXPECT_TRUE(has_values(floor_divide(one, zero), {kInf}));
  EXPECT_TRUE(has_values(logaddexp(tensor({-kInf}), tensor({-kInf})), {-kInf}));
  EXPECT_TRUE(has_values(xlogy(zero, zero), {0}));
}

TEST(SpecialValues, HalfTypes) {
  for (DType dtype : {kFloat16, kBFloat16, kFloat64}) {
    Tensor x = odd_row().to(dtype);
    EXPECT_TRUE(has_values(x, {1, kNan, -kInf, kInf, 2})) << dtype;
    EXPECT_TRUE(has_values(x.max(), {kNan})) << dtype;
    EXPECT_EQ(x.argmax().item<int64_t>(), 1) << dtype;
    EXPECT_TRUE(has_values(std::get<0>(x.sort()), {-kInf, 1, 2, kInf, kNan})) << dtype;
    EXPECT_TRUE(has_values(x + 1, {2, kNan, -kInf, kInf, 3})) << dtype;
  }
  EXPECT_TRUE(has_values(tensor({1e6}).to(kFloat16), {kInf}));
  EXPECT_TRUE(has_values(tensor({60000.0}, kFloat16) * 2, {kInf}));
}

TEST(SpecialValues, IntegersByZeroAreRefused) {
  for (DType dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    Tensor n = tensor({7, 0, 1}).to(dtype), zero = zeros({3}, dtype);
    EXPECT_THROW(floor_divide(n, zero), Error) << dtype;
    EXPECT_THROW(n % zero, Error) << dtype;
    EXPECT_THROW(fmod(n, zero), Error) << dtype;
    EXPECT_THROW(div(n, zero, "trunc"), Error) << dtype;
    EXPECT_TRUE(has_values(n / zero, {kInf, kNan, kInf})) << dtype;
  }
  Tensor lowest = tensor({INT64_MIN});
  EXPECT_EQ(floor_divide(lowest, -1).numel(), 1);
  EXPECT_EQ((lowest % -1).item<int64_t>(), 0);
  EXPECT_EQ((-lowest).item<int64_t>(), INT64_MIN);
  EXPECT_EQ((lowest - 1).item<int64_t>(), INT64_MAX);  // wraps
  EXPECT_EQ(abs(lowest).item<int64_t>(), INT64_MIN);
  EXPECT_EQ(bitwise_left_shift(tensor({1}), 64).numel(), 1);
  EXPECT_EQ(bitwise_right_shift(tensor({-1}), 100).numel(), 1);
  EXPECT_EQ(tensor({kNan, kInf}).to(kInt64).numel(), 2);
}

}  // namespace
}  // namespace sinter
