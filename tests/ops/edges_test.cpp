// Where definitions have edges: tensors without dimensions, bounds that cross, powers without a slope, sizes that broadcast.
// Expected values are those of PyTorch.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/sinter.h"

namespace sinter {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& x) { return x.detach().contiguous().to_vector<float>(); }
Tensor leaf(const std::vector<float>& values) {
  return from_data(values, {int64_t(values.size())}).requires_grad_();
}
Tensor first() { return tensor(std::vector<int64_t>{0}); }
// The gradients of the sum.
Floats gradients(const Tensor& y, const Tensor& x) { return values(autograd::grad({y.sum()}, {x})[0]); }

TEST(Indexing, ATensorOfNoDimensionsHasOneElement) {
  Tensor x = full({}, 3.f), source = full({}, 2.f), nothing = zeros({}, kInt64);
  EXPECT_EQ(index_select(x, 0, first()).dim(), 0);
  EXPECT_TRUE(gather(x, 0, first()).sizes().same_as({1}));
  EXPECT_EQ(gather(tensor({5.f, 6.f}), 0, nothing).item<float>(), 5);
  EXPECT_EQ(index_copy(x, 0, first(), source).item<float>(), 2);
  EXPECT_EQ(index_add(x, 0, nothing, source, 4).item<float>(), 11);
  EXPECT_EQ(index_fill(x, 0, first(), source).item<float>(), 2);
  EXPECT_EQ(scatter(x, 0, nothing, source).item<float>(), 2);
  EXPECT_EQ(scatter(x, 0, nothing, 7).item<float>(), 7);
  EXPECT_EQ(scatter_add(x, 0, nothing, source).item<float>(), 5);
  EXPECT_EQ(scatter_reduce(x, 0, nothing, source, "prod", false).item<float>(), 2);
  EXPECT_EQ(scatter_reduce(x, 0, nothing, source, "mean").item<float>(), 2.5);
  EXPECT_EQ(index_add(x, 0, first(), source).dim(), 0);
}

TEST(IndexFill, TheValueGetsAGradientOnceForEachElement) {
  Tensor x = leaf({1, 2, 3, 4}), value = full({}, 9.f).requires_grad_();
  Tensor y = index_fill(x, 0, tensor(std::vector<int64_t>{1, 3, 1}), value);
  EXPECT_EQ(values(y), (Floats{1, 9, 3, 9}));
  auto grads = autograd::grad({y.sum()}, {x, value});
  EXPECT_EQ(values(grads[0]), (Floats{1, 0, 1, 0}));
  EXPECT_EQ(grads[1].item<float>(), 2);
}

TEST(Logit, TheLowerBoundIsAskedFirstWhereBoundsCross) {
  Tensor y = logit(tensor({0.1f, 0.9f}), 0.6);
  EXPECT_NEAR(y.select(0, 0).item<float>(), std::log(0.6 / 0.4), 1e-6);
  EXPECT_NEAR(y.select(0, 1).item<float>(), std::log(0.4 / 0.6), 1e-6);
  EXPECT_TRUE(std::isnan(logit(tensor({NAN}), 0.1).item<float>()));
}

TEST(Norm, NoGradientFlowsWhereAPowerHasNoSlope) {
  for (double p : {-3.5, -0.5, 0.5, 1.5, 3.0}) {
    Tensor x = leaf({0, 0, 0});
    EXPECT_EQ(gradients(linalg::vector_norm(x, p), x), (Floats{0, 0, 0})) << p;
  }
  Tensor x = leaf({0, 4, 9});
  EXPECT_EQ(linalg::vector_norm(x, 0.5).item<float>(), 25);
  EXPECT_EQ(gradients(linalg::vector_norm(x, 0.5), x)[0], 0);
  EXPECT_NEAR(gradients(linalg::vector_norm(x, 0.5), x)[1], 2.5, 1e-5);
  EXPECT_EQ(linalg::vector_norm(x, -2).item<float>(), 0);
}

// exp(x), and not a difference of numbers near to each other.

TEST(Pad, NegativePadsCrop) {
  Tensor x = arange(4, kFloat32).view({1, 1, 4});
  EXPECT_EQ(values(pad(x, {-1, 2}, "replicate")), (Floats{1, 2, 3, 3, 3}));
  EXPECT_EQ(values(pad(x, {-1, 2}, "reflect")), (Floats{1, 2, 3, 2, 1}));
  EXPECT_EQ(values(pad(x, {-1, 2}, "circular")), (Floats{1, 2, 3, 1, 2}));
  EXPECT_EQ(values(pad(x, {5, -4}, "replicate")), (Floats{0, 0, 0, 0, 0}));
}

TEST(Tensordot, SizesOfOneBroadcast) {
  Tensor y = tensordot(full({1, 2}, 3.f), arange(6, kFloat32).view({3, 2}), {0}, {0});
  EXPECT_TRUE(y.sizes().same_as({2, 2}));
  EXPECT_EQ(values(y), (Floats{18, 27, 18, 27}));
}

TEST(AddScaled, WholeNumbersAreScaledByWholeNumbers) {
  Tensor a = ones({2, 3}, kInt64), v = ones({3}, kInt64), start = ones({2}, kInt64);
  EXPECT_EQ(addmv(start, a, v, 2, 3).to_vector<int64_t>(), (std::vector<int64_t>{11, 11}));
  EXPECT_THROW(addmv(start, a, v, 0.2, 1), Error);
  EXPECT_EQ(addr(zeros({2, 2}, kBool), ones({2}, kBool), ones({2}, kBool)).dtype(), kBool);
}

TEST(Bool, IsComparedAndFilled) {
  Tensor x = tensor({1, 0}).to(kBool);
  EXPECT_TRUE(isclose(x, x).all().item<bool>());
  EXPECT_EQ(masked_fill(x, logical_not(x), 1).dtype(), kBool);
  EXPECT_TRUE(masked_fill(x, logical_not(x), 1).all().item<bool>());
}

// Vectors stay orthonormal: what reaches a symmetric matrix is symmetric.
TEST(Eigh, GradientsAreSymmetric) {
  manual_seed(3);
  Tensor a = randn({4, 4}, kFloat64);
  a = (a + a.t()).detach().requires_grad_();
  auto [eigenvalues, vectors] = linalg::eigh(a);
  Tensor g = autograd::grad({(vectors.abs() * randn({4, 4}, kFloat64)).sum()}, {a})[0];
  EXPECT_LT((g - g.t()).abs().max().item<double>(), 1e-10);
}

TEST(Cov, OfOneVariableIsANumber) {
  EXPECT_EQ(cov(tensor({1.f, 3.f}).view({1, 2})).dim(), 0);
  EXPECT_EQ(corrcoef(tensor({1.f, 3.f}).view({1, 2})).dim(), 0);
}

TEST(Histogram, ARangeOfNoWidthIsWidenedByAHalf) {
  Tensor x = full({3}, 2.f);
  auto [counts, edges] = histogram(x, 4);
  EXPECT_EQ(values(edges), (Floats{1.5, 1.75, 2, 2.25, 2.5}));
  EXPECT_EQ(values(counts), (Floats{0, 0, 3, 0}));
  EXPECT_EQ(values(std::get<1>(histogram(x, 2, std::array<double, 2>{0, 0}))), (Floats{-0.5, 0, 0.5}));
}

TEST(Vander, OfASingleNumber) { EXPECT_EQ(values(linalg::vander(full({}, 3.f), 3)), (Floats{1, 3, 9})); }

}  // namespace
}  // namespace sinter
