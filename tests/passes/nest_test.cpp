// Kernels inside kernels: products of one operand together, prologues, and siblings; how many launches remain.
#include "sinter/passes/nest.h"

#include <gtest/gtest.h>

#include "sinter/base/thread_pool.h"
#include "tests/passes/fuse_traced.h"

namespace sinter {
namespace {

Tensor rms_norm_of(const Tensor& x, const Tensor& w) { return x * (x.square().mean({-1}, true) + 1e-5).rsqrt() * w; }

TEST(JointProducts, SwiGluIsTwoKernels) {
  auto f = [](const TensorList& x) { return TensorList{matmul(silu(matmul(x[0], x[1])) * matmul(x[0], x[2]), x[3])}; };
  for (int64_t rows : {1, 3, 70}) {
    auto fused = fuse_traced(f, {normal({rows, 24}), normal({24, 50}), normal({24, 50}), normal({50, 24})});
    EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
  }
}

TEST(JointProducts, TransposedWeightsAndRowsOfABatch) {
  auto f = [](const TensorList& x) {
    return TensorList{silu(matmul(x[0], x[1].t())) * matmul(x[0], x[2].t()) + x[3]};
  };
  auto fused = fuse_traced(f, {normal({2, 5, 24}), normal({50, 24}), normal({50, 24}), normal({2, 5, 50})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(JointProducts, DifferentWidthsHaveEpiloguesOfTheirOwn) {
  // Queries are wider than keys and values; each has a bias.
  auto f = [](const TensorList& x) {
    Tensor q = matmul(x[0], x[1]) + x[4], k = matmul(x[0], x[2]) + x[5], v = matmul(x[0], x[3]) + x[6];
    return TensorList{q, k, v.tanh()};
  };
  for (int64_t rows : {1, 33}) {
    auto fused = fuse_traced(f, {normal({rows, 16}), normal({16, 48}), normal({16, 16}), normal({16, 20}), normal({48}),
                                 normal({16}), normal({20})});
    EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
  }
}

TEST(JointProducts, PlainProductsOfOneOperandAreOneLaunch) {
  auto f = [](const TensorList& x) { return TensorList{matmul(x[0], x[1]), matmul(x[0], x[2]), matmul(x[0], x[3])}; };
  auto fused = fuse_traced(f, {normal({9, 16}), normal({16, 40}), normal({16, 8}), normal({16, 8})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(JointProducts, ASumOfProductsOfDifferentWidthsStaysApart) {
  auto f = [](const TensorList& x) {
    Tensor a = matmul(x[0], x[1]), b = matmul(x[0], x[2]);
    return TensorList{a.sum({-1}) + b.sum({-1})};
  };
  auto fused = fuse_traced(f, {normal({9, 16}), normal({16, 40}), normal({16, 8})});
  EXPECT_EQ(fused.list.substr(0, 5), "fused") << fused.graph.text();
}

TEST(JointProducts, AProductThatWaitsForItsSiblingIsNotJoined) {
  auto f = [](const TensorList& x) {
    Tensor a = matmul(x[0], x[1]);
    return TensorList{matmul(x[0], a)};
  };
  auto fused = fuse_traced(f, {normal({6, 6}), normal({6, 6})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(JointProducts, BFloat16) {
  auto f = [](const TensorList& x) { return TensorList{silu(matmul(x[0], x[1])) * matmul(x[0], x[2])}; };
  auto small = [](const Shape& shape) { return (normal(shape) * 0.25).to(kBFloat16); };
  for (int64_t rows : {1, 20}) {
    auto fused = fuse_traced(f, {small({rows, 32}), small({32, 48}), small({32, 48})}, 1e-2);
    EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
  }
}

TEST(Prologue, ANormOfFewRowsIsTakenInByItsProducts) {
  auto f = [](const TensorList& x) {
    Tensor y = rms_norm_of(x[0], x[1]);
    return TensorList{silu(matmul(y, x[2])) * matmul(y, x[3])};
  };
  for (auto [rows, kernels] : {std::pair<int64_t, int>{1, 1}, {8, 1}, {9, 2}}) {
    auto fused = nest_traced(f, {normal({rows, 24}), normal({24}), normal({24, 50}), normal({24, 50})});
    EXPECT_EQ(fused.kernels, kernels) << fused.graph.text();
  }
}

TEST(Prologue, BehindAView) {
  auto f = [](const TensorList& x) { return TensorList{matmul(rms_norm_of(x[0], x[1]), x[2]) + x[3]}; };
  auto fused = nest_traced(f, {normal({1, 2, 24}), normal({24}), normal({24, 50}), normal({1, 2, 50})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Prologue, WhatOthersReadIsComputedOnce) {
  auto f = [](const TensorList& x) {
    Tensor y = rms_norm_of(x[0], x[1]);
    return TensorList{matmul(y, x[2]), y};
  };
  auto fused = nest_traced(f, {normal({2, 24}), normal({24}), normal({24, 24})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Siblings, SmallIndependentKernelsShareALaunch) {
  auto f = [](const TensorList& x) { return TensorList{x[0].exp() * 2 + 1, x[1].softmax(-1), x[0].sum({-1}) * 3}; };
  auto fused = nest_traced(f, {normal({5, 33}), normal({7, 21})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Siblings, OneThatReadsAnotherWaits) {
  auto f = [](const TensorList& x) {
    Tensor a = (x[0].softmax(-1) * 2).t().contiguous();
    return TensorList{a.softmax(-1) + 1};
  };
  auto fused = nest_traced(f, {normal({5, 33})});
  EXPECT_GE(fused.kernels, 2) << fused.graph.text();
}

TEST(Siblings, LargeOnesKeepTheirOwnLaunch) {
  auto f = [](const TensorList& x) { return TensorList{x[0].exp() * 2 + 1, x[1].softmax(-1)}; };
  auto fused = nest_traced(f, {normal({300, 200}), normal({301, 201})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Siblings, SeveralPiecesOnTwoThreads) {
  auto f = [](const TensorList& x) { return TensorList{x[0].exp() * 2 + 1, x[1].softmax(-1)}; };
  int before = num_threads();
  set_num_threads(2);
  auto fused = nest_traced(f, {normal({180, 180}), normal({181, 181})});
  set_num_threads(before);
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Siblings, MemoryIsTakenOverOnlyWhereNoSiblingReadsIt) {
  // Both read a; the first one could otherwise overwrite it while the second reads.
  auto f = [](const TensorList& x) {
    Tensor a = matmul(x[0], x[1]);
    Tensor at = a.t().contiguous();
    return TensorList{a.exp() + 1, a.softmax(-1) * 2, at};
  };
  nest_traced(f, {normal({40, 30}), normal({30, 40})});
}

}  // namespace
}  // namespace sinter
