// Kernels inside kernels: products of one operand together, prologues, and siblings; how many launches remain.
#include "sinter/passes/nest.h"

#include <gtest/gtest.h>

#include "sinter/base/thread_pool.h"
#include "sinter/capture/compile.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/view.h"
#include "tests/passes/fuse_traced.h"
#include "tests/support/network_blocks.h"

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

TEST(JointProducts, AnEpilogueThatDoublesItselfManyTimes) {
  // Each value is read twice: walking all ways back to the product would never end.
  auto f = [](const TensorList& x) {
    Tensor q = matmul(x[0], x[1]), k = matmul(x[0], x[2]);
    for (int i = 0; i < 40; ++i) q = (q + q) * 0.5;
    return TensorList{q, k};
  };
  auto fused = fuse_traced(f, {normal({3, 8}), normal({8, 20}), normal({8, 6})});
  EXPECT_GE(fused.kernels, 1);
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

TEST(Prologue, AWeightInAnotherTypeIsReadAsItIs) {
  auto f = [](const TensorList& x) {
    Tensor h = x[0].to(kFloat32);
    Tensor y = (h * (h.square().mean({-1}, true) + 1e-5).rsqrt() * x[1].to(kFloat32)).to(kBFloat16);
    return TensorList{matmul(y, x[2])};
  };
  auto half = [](const Shape& shape) { return (normal(shape) * 0.25).to(kBFloat16); };
  auto fused = fuse_traced(f, {half({1, 1, 32}), half({32}), half({32, 48})}, 2e-2, true);
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

// As on a GPU.
const NestOptions kGathers = {.small = 1 << 17, .small_map = 1 << 22, .gathers = true, .most_siblings = 32, .most_operands = 256};

TEST(Siblings, GatheredOnesWaitUntilOneIsRead) {
  // The casts run at the beginning, as one launch; the sums at the end, as another.
  auto f = [](const TensorList& x) {
    Tensor h = x[0], sums;
    TensorList out;
    for (int n = 1; n <= 3; ++n) {
      h = matmul(h, x[size_t(n)].to(kFloat32)).relu();
      out.push_back(h.sum({0}));
    }
    out.push_back(h);
    return out;
  };
  auto weight = [](int64_t k, int64_t n) { return normal({k, n}).to(kFloat64); };
  const TensorList inputs{normal({5, 8}), weight(8, 12), weight(12, 20), weight(20, 8)};
  EXPECT_EQ(fuse_traced(f, inputs, 1e-4, true, kGathers).kernels, 5);
  EXPECT_EQ(nest_traced(f, inputs).kernels, 9);
}

TEST(Siblings, EqualOnesAreOneKernel) {
  Graph graph = Graph::parse(
      "%0 = input : f32[40, 30]\n%1 = input : f32[30]\n%2 = _to_copy(%0) {dtype=bf16} : bf16[40, 30]\n"
      "%3 = _to_copy(%1) {dtype=bf16} : bf16[30]\n%4 = relu(%2) : bf16[40, 30]\n"
      "%5 = _to_copy(%0) {dtype=bf16} : bf16[40, 30] <phase 1, again>\n%6 = mul(%4, %5) : bf16[40, 30] <phase 1>\n"
      "return %3, %6");
  Graph nested = nest_kernels(graph, kGathers);
  verify_fused(nested);
  const Node& casts = *nested.outputs()[0].node;
  ASSERT_TRUE(is_fused(casts, FusedKind::kSiblings)) << nested.text();
  EXPECT_EQ(casts.types.size(), 2u) << nested.text();
}

TEST(Siblings, AnOptimisersStepIsOneLaunch) {
  // Rates are numbers of the program.
  auto f = [](const TensorList& x) {
    TensorList out;
    for (size_t n = 0; n < 24; n += 2) {
      Tensor mean = x[n].lerp(x[n + 1], 0.1);
      out.insert(out.end(), {mean, x[n] - mean / (mean.square().sqrt() + 1e-8)});
    }
    return out;
  };
  TensorList inputs;
  for (int64_t n = 0; n < 12; ++n)
    for (int twice = 0; twice < 2; ++twice) inputs.push_back(n % 2 ? normal({3 + n}) : normal({200 + n, 300}));
  EXPECT_EQ(fuse_traced(f, inputs, 1e-4, true, kGathers).kernels, 1);
}

TEST(Siblings, CountersAreOneLaunch) {
  auto f = [](const TensorList& x) {
    TensorList out;
    for (auto& counter : x) out.push_back(counter + 1);
    return out;
  };
  EXPECT_EQ(fuse_traced(f, {scalar_tensor(3.0), scalar_tensor(4.0), normal({1})}, 1e-4, true, kGathers).kernels, 1);
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

TEST(Scatters, WhatIsScatteredIsComputedInPlace) {
  auto f = [](const TensorList& x) {
    return TensorList{index_copy(x[0], 1, x[2], x[1].exp() * 2), index_put(x[0], {Slice(), x[2]}, x[1] + 1)};
  };
  auto fused = fuse_traced(f, {normal({3, 7, 20}), normal({3, 2, 20}), tensor(std::vector<int64_t>{5, 2})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Scatters, AlongTheLastAxisKeepAKernelOfTheirOwn) {
  auto f = [](const TensorList& x) { return TensorList{index_copy(x[0], 1, x[2], x[1].exp())}; };
  auto fused = fuse_traced(f, {normal({3, 20}), normal({3, 2}), tensor(std::vector<int64_t>{5, 2})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

// A gradient of a weight: the product would take rows for columns.
TEST(Prologue, IsNotTakenThroughViewsThatChangeTheOrder) {
  auto turned = [](const TensorList& x) { return TensorList{mm(sigmoid(x[0].to(kFloat32)).t(), x[1])}; };
  auto sliced = [](const TensorList& x) {
    return TensorList{mm(sigmoid(x[0].to(kFloat32)).view({-1}).slice(0, 0, 30).view({5, 6}).t(), x[1])};
  };
  for (auto& sizes : {Shape{5, 6}, Shape{5, 5}}) {
    auto fused = fuse_traced(turned, {normal(sizes).to(kFloat64), normal({5, 5})});
    EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
  }
  auto fused = fuse_traced(sliced, {normal({5, 17}).to(kFloat64), normal({5, 5})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Scatters, WhatARowComesToIsScatteredByAKernelOfItsOwn) {
  auto f = [](const TensorList& x) { return TensorList{index_copy(x[0], 0, x[2], x[1].sum({-1}))}; };
  auto fused = fuse_traced(f, {normal({7, 5}), normal({3, 5, 19}), tensor(std::vector<int64_t>{5, 0, 2})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Scatters, AreNoPrologueOfAProduct) {
  auto f = [](const Tensor& x, const Tensor& at, const Tensor& rows, const Tensor& w) {
    return matmul(index_copy(x, 0, at, rows * 2), w);
  };
  Tensor x = normal({5, 20}), at = tensor(std::vector<int64_t>{3}), rows = normal({1, 20}), w = normal({20, 30});
  EXPECT_LT((compile(f)(x, at, rows, w) - f(x, at, rows, w)).abs().amax().item<double>(), 1e-4);
}

TEST(Scatters, WhatIsReadAfterwardsWaitsForAllRows) {
  auto f = [](const TensorList& x) {
    Tensor y = index_copy(x[0], 0, x[2], x[1] * 2);
    return TensorList{y + x[1], y};
  };
  auto fused = fuse_traced(f, {normal({4, 20}), normal({4, 20}), tensor(std::vector<int64_t>{3, 1, 0, 2})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Scatters, ATensorIsScatteredIntoItself) {
  auto turn = [](Tensor x) { return x.index_put_({tensor(std::vector<int64_t>{3, 2, 1, 0})}, x * 2); };
  Tensor x = normal({4, 20}), eager = turn(x.clone());
  Tensor compiled = compile(turn)(x);
  EXPECT_EQ((compiled - eager).abs().amax().item<double>(), 0);
}

TEST(Scatters, AnIndexOutOfRangeIsAnError) {
  auto f = compile([](const Tensor& cache, const Tensor& at, const Tensor& x) { return index_copy(cache, 0, at, x * 2); });
  EXPECT_THROW(f(zeros({4, 20}), tensor(std::vector<int64_t>{4}), normal({1, 20})), Error);
}

// A decode step of a Llama block: [norm, q, k, v] [rotations and the writes to the cache] [attention] [output, residual]
// [norm, gate, up, gating] [down, residual].
TEST(LlamaBlock, DecodesInSixKernels) {
  auto block = testing::llama_block(kFloat32);
  auto nested = nest_traced(block.run, block.inputs);
  EXPECT_LE(nested.kernels, 6) << nested.graph.text();
}

}  // namespace
}  // namespace sinter
