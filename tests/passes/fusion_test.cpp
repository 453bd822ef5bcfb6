// How many kernels a program becomes, and that the fused graph means the same.
#include <gtest/gtest.h>

#include "sinter/ops/conv.h"
#include "sinter/ops/matmul.h"
#include "tests/passes/fuse_traced.h"

namespace sinter {
namespace {

TEST(Fusion, PointwiseChainIsOneKernel) {
  auto f = [](const TensorList& x) { return TensorList{relu((x[0] * 2 + x[1]).tanh()) * x[0]}; };
  EXPECT_EQ(fuse_traced(f, {normal({5, 33}), normal({5, 33})}).kernels, 1);
}

TEST(Fusion, LayerNormIsOneKernel) {
  auto f = [](const TensorList& x) { return TensorList{layer_norm(x[0], {37}, x[1], x[2])}; };
  auto fused = fuse_traced(f, {normal({6, 37}), normal({37}), normal({37})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, ResidualAddRmsNormAndScaleAreOneKernel) {
  auto f = [](const TensorList& x) {
    Tensor h = x[0] + x[1];
    return TensorList{h, h * (h.square().mean({-1}, true) + 1e-5).rsqrt() * x[2]};
  };
  auto fused = fuse_traced(f, {normal({4, 3, 40}), normal({4, 3, 40}), normal({40})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, SoftmaxIsOneKernel) {
  auto f = [](const TensorList& x) { return TensorList{x[0].softmax(-1)}; };
  auto fused = fuse_traced(f, {normal({7, 50})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, GeluMlpIsTwoKernels) {
  auto f = [](const TensorList& x) { return TensorList{matmul(gelu(matmul(x[0], x[1]) + x[2]), x[3]) + x[4]}; };
  auto fused = fuse_traced(f, {normal({6, 8}), normal({8, 20}), normal({20}), normal({20, 8}), normal({8})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, EpilogueCountsRowsAsItsReadersDo) {
  // The product has [2 * 5] rows; bias, positions and residual are added to [2, 5] of them.
  auto f = [](const TensorList& x) {
    Tensor h = matmul(x[0], x[1]);
    return TensorList{h, relu(h + x[2] + x[3]) + x[4], (h > 0).to(kInt64)};
  };
  auto fused = fuse_traced(f, {normal({2, 5, 8}), normal({8, 20}), normal({20}), normal({5, 20}), normal({2, 5, 20})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, EpilogueOfABatchedProduct) {
  auto f = [](const TensorList& x) { return TensorList{matmul(x[0], x[1]) * 0.5 + x[2]}; };
  auto fused = fuse_traced(f, {normal({3, 4, 6}), normal({3, 6, 17}), normal({4, 17})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, AProductDoesNotTakeInWhatItReads) {
  auto f = [](const TensorList& x) {
    Tensor a = x[0].exp();
    return TensorList{matmul(a, x[1]) + a};
  };
  auto fused = fuse_traced(f, {normal({6, 6}), normal({6, 6})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, OnlyATruthValueOfAProductIsNeeded) {
  auto f = [](const TensorList& x) { return TensorList{matmul(x[0], x[1]) > 0}; };
  EXPECT_EQ(fuse_traced(f, {normal({6, 7}), normal({7, 20})}).kernels, 1);
}

TEST(Fusion, CrossEntropyIsTwoKernels) {
  // Rows first: the logarithm of the sum and the picked class; then the mean over those that count.
  auto f = [](const TensorList& x) { return TensorList{cross_entropy(x[0], x[1])}; };
  auto fused = fuse_traced(f, {normal({20, 33}), randint(0, 33, {20})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, AMeanOfEverythingIsOneKernel) {
  auto f = [](const TensorList& x) { return TensorList{(x[0] * x[0]).mean().sqrt() + 1}; };
  auto fused = fuse_traced(f, {normal({20, 33})});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, AttentionBlockIsFourKernels) {
  // [norm] [q, k, v with biases] [attention] [output, bias, residual].
  auto f = [](const TensorList& x) {
    Tensor y = layer_norm(x[0], {32}, x[1], x[2]);
    auto heads = [&](const Tensor& t) { return t.view({2, 12, 4, 8}).transpose(1, 2); };
    Tensor q = heads(matmul(y, x[3]) + x[4]), k = heads(matmul(y, x[5]) + x[6]), v = heads(matmul(y, x[7]) + x[8]);
    Tensor a = scaled_dot_product_attention(q, k, v, {}, 0, true);
    return TensorList{x[0] + matmul(a.transpose(1, 2).reshape({2, 12, 32}), x[9]) + x[10]};
  };
  auto w = [] { return normal({32, 32}) * 0.2; };
  auto fused = fuse_traced(f, {normal({2, 12, 32}), normal({32}), normal({32}), w(), normal({32}), w(), normal({32}), w(),
                               normal({32}), w(), normal({32})});
  EXPECT_EQ(fused.kernels, 4) << fused.graph.text();
}

TEST(Fusion, AdamWUpdateIsOneKernel) {
  auto f = [](const TensorList& x) {
    Tensor m = x[2] * 0.9 + x[1] * 0.1, v = x[3] * 0.999 + x[1].square() * 0.001;
    Tensor w = x[0] * 0.999 - m / (v.sqrt() + 1e-8) * 1e-3;
    return TensorList{w, m, v};
  };
  auto fused = fuse_traced(f, {normal({130}), normal({130}), normal({130}), normal({130}).square()});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, RotaryEmbeddingReadsHalvesByIndex) {
  auto f = [](const TensorList& x) {
    Tensor a = x[0].slice(-1, 0, 8), b = x[0].slice(-1, 8, 16);
    return TensorList{a * x[1] - b * x[2], b * x[1] + a * x[2]};
  };
  auto fused = fuse_traced(f, {normal({2, 5, 16}), normal({5, 8}), normal({5, 8})});
  EXPECT_LE(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, ValuesUsedOutsideAreStored) {
  auto f = [](const TensorList& x) {
    Tensor a = x[0].exp(), b = a.sum({-1}, true), c = a / b;
    return TensorList{a, b, c, matmul(c, c.t())};
  };
  auto fused = fuse_traced(f, {normal({5, 9})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, AReductionAcrossRowsIsNotReadByAnotherRow) {
  // The row value of the transpose is another row's: two kernels.
  auto f = [](const TensorList& x) {
    Tensor s = x[0].sum({-1}, true);
    return TensorList{x[0] + s + s.t()};
  };
  auto fused = fuse_traced(f, {normal({6, 6})});
  EXPECT_GE(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, NoCycleThroughAMatmul) {
  auto f = [](const TensorList& x) {
    Tensor a = x[0].exp(), b = matmul(a, x[0]);
    return TensorList{a * b + a};
  };
  auto fused = fuse_traced(f, {normal({6, 6})});
  EXPECT_EQ(fused.kernels, 2) << fused.graph.text();
}

TEST(Fusion, HalfTypesRoundOnceAtTheStore) {
  auto f = [](const TensorList& x) { return TensorList{((x[0] + 1) * 3).to(kFloat32)}; };
  Tensor x = normal({3, 20}).to(kBFloat16);
  auto fused = fuse_traced(f, {x});
  EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
}

TEST(Fusion, ColumnReductionsAndArgmaxComputeWhatTheyRead) {
  auto f = [](const TensorList& x) { return TensorList{(x[0] * 2).sum(IntList{0}), (x[0] * 2).argmax(1)}; };
  auto fused = fuse_traced(f, {normal({5, 7})});
  EXPECT_EQ(fused.list, "fused fused ") << fused.graph.text();
}

// A pool combines as a product does, and is none.
TEST(Fusion, PoolsAreNoContractions) {
  auto f = [](const TensorList& x) { return TensorList{relu(max_pool2d(x[0] * 2, 2)) + 1}; };
  auto fused = fuse_traced(f, {normal({1, 2, 6, 6})});
  for (auto& node : fused.graph.nodes()) {
    EXPECT_FALSE(is_fused(node, FusedKind::kProduct) || is_fused(node, FusedKind::kConvolution)) << fused.graph.text();
  }
}

// How often the kernels compute the op.
int computations(const Graph& graph, const std::string& op) {
  int count = 0;
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    auto& attrs = node.attrs.as<FusedAttrs>();
    if (attrs.is_contraction()) continue;
    std::vector<Layout> layouts;
    for (auto& v : attrs.body->inputs()) layouts.push_back(contiguous_layout(v.type().shape));
    for (auto& v : attrs.body->outputs()) layouts.push_back(contiguous_layout(v.type().shape));
    std::string text = lower_fused(attrs, layouts).text();
    for (size_t at = 0; (at = text.find(" " + op + "(", at)) != std::string::npos; ++at) ++count;
  }
  return count;
}

TEST(Fusion, ExpensiveValuesAreKeptInTheResultBetweenSweeps) {
  auto f = [](const TensorList& x) { return TensorList{softmax(x[0], -1)}; };
  fuse_traced(f, {normal({5, 1})});
  for (int64_t columns : {3, 16, 77, 200})
    EXPECT_EQ(computations(fuse_traced(f, {normal({5, columns})}).graph, "exp"), 1) << columns;
  // The result takes the memory of the product, which is read only before it is overwritten.
  auto product = [](const TensorList& x) { return TensorList{softmax(mm(x[0], x[1]), -1)}; };
  fuse_traced(product, {normal({20, 8}), normal({8, 50})});
}

TEST(Fusion, NothingIsKeptWhereALaterSweepReadsAnOperandOfThatSize) {
  // The result may lie in that operand's memory.
  auto f = [](const TensorList& x) {
    Tensor y = mm(x[0], x[1]);
    return TensorList{softmax(y, -1) * y};
  };
  auto fused = fuse_traced(f, {normal({20, 8}), normal({8, 50})});
  EXPECT_EQ(computations(fused.graph, "exp"), 2) << fused.graph.text();
}

TEST(Fusion, AClassIsPickedBeforeTheLogSoftmaxIsWritten) {
  auto f = [](const TensorList& x) { return TensorList{nll_loss(log_softmax(x[0], 1), x[1])}; };
  Tensor target = from_data(std::vector<int64_t>{3, 0, 10, 7}, {4});
  auto fused = fuse_traced(f, {normal({4, 11}), target});
  for (auto& node : fused.graph.nodes()) {
    if (node.op != &fused_op()) continue;
    for (auto& type : node.types) EXPECT_LT(type.shape.numel().number(), 44) << fused.graph.text();
  }
}

TEST(Fusion, TransposedOperandsAreTurnedInRegisters) {
  auto f = [](const TensorList& x) { return TensorList{x[0] + x[1].transpose(-1, -2)}; };
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{16, 16}, {37, 53}, {64, 40}, {15, 100}, {100, 15}}) {
    fuse_traced(f, {normal({rows, columns}), normal({columns, rows})});
    fuse_traced(f, {normal({3, rows, columns}), normal({3, columns, rows})});
  }
}

TEST(Fusion, ARowOfOneElementIsReducedTwice) {
  auto f = [](const TensorList& x) {
    Tensor mean = (x[0] + 1).mean({-1}, true);
    return TensorList{mean, x[0] + mean.sum({-1}, true)};
  };
  fuse_traced(f, {normal({1})});
  fuse_traced(f, {normal({3, 1})});
}

}  // namespace
}  // namespace sinter
