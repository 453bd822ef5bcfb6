// Views, copies and gathers inside fused kernels: how many kernels a program becomes, and that it means the same.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/loops/fused.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pad.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/passes/fuse_traced.h"

namespace sinter {
namespace {

void expect_kernels(int count, const Function& f, const TensorList& inputs, double tolerance = 1e-4) {
  auto fused = fuse_traced(f, inputs, tolerance);
  EXPECT_EQ(fused.kernels, count) << fused.graph.text();
}

TensorList halves_rotary(const TensorList& x) {
  auto halves = x[0].chunk(2, -1);
  return {x[0] * x[1] + cat({-halves[1], halves[0]}, -1) * x[2]};
}

TensorList interleaved_rotary(const TensorList& x) {
  Shape sizes = x[0].sizes(), apart = sizes;
  apart[apart.size() - 1] = sizes[sizes.size() - 1] / 2;
  apart.push_back(2);
  Tensor pairs = x[0].view(apart);
  Tensor turned = stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).view(sizes);
  return {x[0] * x[1] + turned * x[2]};
}

TEST(FusionMaps, RotaryEmbeddingIsOneKernel) {
  for (int64_t width : {2, 10, 16, 40, 64, 130}) {
    TensorList in{normal({2, 3, 5, width}), normal({5, width}), normal({5, width})};
    expect_kernels(1, halves_rotary, in);
    expect_kernels(1, interleaved_rotary, in);
    TensorList half;
    for (auto& t : in) half.push_back(t.to(kBFloat16));
    expect_kernels(1, halves_rotary, half, 2e-2);
    expect_kernels(1, interleaved_rotary, half, 2e-2);
  }
}

TEST(FusionMaps, RotaryKernelsKeepToTheirLanes) {
  for (auto& program : {halves_rotary, interleaved_rotary}) {
    auto fused = fuse_traced(program, {normal({2, 5, 64}), normal({5, 64}), normal({5, 64})});
    for (auto& node : fused.graph.nodes()) {
      if (node.op != &fused_op()) continue;
      auto& attrs = node.attrs.as<FusedAttrs>();
      std::vector<Layout> layouts;
      for (auto& v : attrs.body->inputs()) layouts.push_back(contiguous_layout(v.type().shape));
      for (auto& v : attrs.body->outputs()) layouts.push_back(contiguous_layout(v.type().shape));
      LoopNest nest = lower_fused(attrs, layouts);
      for (auto& instr : nest.sweeps[0].body) {
        EXPECT_TRUE(instr.offset.coefficient_of(nest.inner.back().symbol)) << nest.text();
        for (auto& c : instr.conditions) EXPECT_TRUE(c.value.coefficient_of(nest.inner.back().symbol)) << nest.text();
      }
    }
  }
}

TEST(FusionMaps, ANormalizedValueIsTurnedInItsRow) {
  // As in models that normalise queries and keys before they rotate them.
  auto f = [](const TensorList& x) {
    Tensor h = x[0] * (x[0].square().mean({-1}, true) + 1e-5).rsqrt() * x[3];
    return halves_rotary({h, x[1], x[2]});
  };
  expect_kernels(1, f, {normal({2, 3, 5, 34}), normal({5, 34}), normal({5, 34}), normal({34})});
}

TEST(FusionMaps, TheResultDoesNotOverwriteWhatOthersStillRead) {
  // A product is a temporary of the size of the result.
  auto f = [](const TensorList& x) {
    Tensor h = mm(x[0], x[1]);
    return TensorList{h + roll(h, {3}, {1}) + flip(h, {0})};
  };
  fuse_traced(f, {normal({20, 8}), normal({8, 50})});
  auto rotate = [](const TensorList& x) { return halves_rotary({mm(x[0], x[1]), x[2], x[3]}); };
  fuse_traced(rotate, {normal({20, 8}), normal({8, 50}), normal({20, 50}), normal({20, 50})});
}

TEST(FusionMaps, CatOfComputedPieces) {
  for (int64_t dim : {0, 1, 2}) {
    auto f = [dim](const TensorList& x) { return TensorList{relu(cat({x[0] * 2, -x[1], x[2].exp()}, dim) + 1)}; };
    Shape a{3, 4, 21}, b = a, c = a;
    b[size_t(dim)] = 7;
    c[size_t(dim)] = 1;
    expect_kernels(1, f, {normal(a), normal(b), normal(c)});
    TensorList half{normal(a).to(kBFloat16), normal(b).to(kBFloat16), normal(c).to(kBFloat16)};
    expect_kernels(1, f, half, 2e-2);
  }
}

TEST(FusionMaps, PadOfAComputedValue) {
  auto f = [](const TensorList& x) { return TensorList{constant_pad_nd(x[0] * 2, {3, 20, 1, 0}, 1.5) + x[1]}; };
  expect_kernels(1, f, {normal({4, 37}), normal({5, 60})});
  auto crop = [](const TensorList& x) { return TensorList{constant_pad_nd(x[0].exp(), {-3, 2, 0, -1}, -1.0)}; };
  expect_kernels(1, crop, {normal({4, 37})});
}

TEST(FusionMaps, PaddedRowsAreReduced) {
  auto f = [](const TensorList& x) { return TensorList{softmax(constant_pad_nd(x[0] * 2, {3, 20}, -5.0), -1)}; };
  expect_kernels(1, f, {normal({4, 37})});
}

TEST(FusionMaps, ReadersThroughReshapesAndPermutes) {
  auto reshaped = [](const TensorList& x) { return TensorList{(x[0] + 1).view({3, 4, 20}) * x[1] + x[2]}; };
  expect_kernels(1, reshaped, {normal({12, 20}), normal({4, 20}), normal({3, 4, 20})});
  auto split = [](const TensorList& x) { return TensorList{(x[0] + 1).view({12, 5, 4}).permute({0, 2, 1}) * x[1]}; };
  expect_kernels(1, split, {normal({12, 20}), normal({4, 5})});
  auto transposed = [](const TensorList& x) { return TensorList{x[0] * 2 + (x[1] + 1).t()}; };
  expect_kernels(1, transposed, {normal({33, 20}), normal({20, 33})});
  auto flipped = [](const TensorList& x) { return TensorList{flip(x[0] * 2, {0, 1}) + x[0]}; };
  expect_kernels(1, flipped, {normal({7, 40})});
}

TEST(FusionMaps, ExpensiveValuesAreNotComputedOverAndOver) {
  auto f = [](const TensorList& x) {
    Tensor e = x[0].exp();
    return TensorList{e.slice(1, 0, 30) + e.slice(1, 2, 32) * e.slice(1, 1, 31) + e.slice(1, 3, 33)};
  };
  expect_kernels(2, f, {normal({400, 33})});
  auto cheap = [](const TensorList& x) {
    Tensor e = x[0] * 2;
    return TensorList{e.slice(1, 0, 31) + e.slice(1, 2, 33)};
  };
  expect_kernels(1, cheap, {normal({400, 33})});
}

TEST(FusionMaps, ManyShiftsDoNotGrowWithoutBound) {
  auto f = [](const TensorList& x) {
    Tensor h = x[0];
    for (int i = 0; i < 12; ++i) h = h + roll(h * 1.01, {i + 1}, {0});
    return TensorList{h};
  };
  EXPECT_GE(fuse_traced(f, {normal({64, 33})}, 1e-3).kernels, 2);
}

TEST(FusionMaps, ValuesThatAMatmulNeedsAreStoredOnce) {
  auto f = [](const TensorList& x) {
    Tensor h = x[0] * 2;
    return TensorList{mm(h, x[1]), h.slice(1, 0, 8) + 1};
  };
  fuse_traced(f, {normal({6, 16}), normal({16, 5})});
}

TEST(FusionMaps, EmbeddingAddLayerNormIsOneKernel) {
  auto f = [](const TensorList& x) {
    return TensorList{layer_norm(embedding(x[0], x[1]) + x[2], {37}, x[3], x[4])};
  };
  Tensor tokens = from_data(std::vector<int64_t>{3, 0, 10, 7, -1, 2}, {2, 3});
  expect_kernels(1, f, {normal({11, 37}), tokens, normal({3, 37}), normal({37}), normal({37})});
}

TEST(FusionMaps, AnIndexOutOfRangeIsAnErrorThatNamesTheOp) {
  auto f = [](const TensorList& x) { return TensorList{embedding(x[0], x[1]) * 2 + 1}; };
  Tensor table = normal({5, 20}), tokens = from_data(std::vector<int64_t>{1, 5}, {2});
  std::vector<Type> types{{kFloat32, {5, 20}, Device()}, {kInt64, {2}, Device()}};
  Graph graph = run_passes(trace(f, types));
  auto program = compile_program({.graph = std::move(graph), .symbols = {}, .writes = {}, .name = "test"});
  TensorList results(1);
  std::vector<TensorArg> operands{table, tokens};
  try {
    program->run(operands, {}, results);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("embedding: index 5 is out of range for size 5"), std::string::npos) << e.what();
  }
}

TEST(FusionMaps, IndexSelectAndGatherAreReadByIndex) {
  Tensor rows = from_data(std::vector<int64_t>{3, 0, 2}, {3});
  auto select = [](const TensorList& x) { return TensorList{relu(index_select(x[0] * 2, 0, x[1]) + x[2])}; };
  expect_kernels(1, select, {normal({5, 40}), rows, normal({3, 40})});
  auto shifted = [](const TensorList& x) { return TensorList{relu(index_select(x[0], 0, x[1] + 1) + x[2])}; };
  expect_kernels(1, shifted, {normal({5, 40}), rows, normal({3, 40})});
}

TEST(FusionMaps, CrossEntropyIsAtMostThreeKernels) {
  auto f = [](const TensorList& x) { return TensorList{nll_loss(log_softmax(x[0], 1), x[1])}; };
  Tensor target = from_data(std::vector<int64_t>{3, 0, 10, 7}, {4});
  EXPECT_LE(fuse_traced(f, {normal({4, 11}), target}).kernels, 3);
}

TEST(FusionMaps, CreatedValuesNeedNoMemory) {
  auto f = [](const TensorList& x) { return TensorList{x[0] + arange(33) * 0.5 + full({4, 33}, 2.0)}; };
  expect_kernels(1, f, {normal({4, 33})});
  auto mask = [](const TensorList& x) { return TensorList{softmax(x[0] + triu(full({20, 20}, -1e9), 1), -1)}; };
  expect_kernels(1, mask, {normal({3, 20, 20})});
}

TEST(FusionMaps, ReductionsOverOtherDimensionsComputeWhatTheyRead) {
  for (auto& dims : {IntList{0}, IntList{1}, IntList{0, 1}, IntList{0, 2}}) {
    for (bool keepdim : {false, true}) {
      auto f = [&](const TensorList& x) { return TensorList{(x[0] * x[1] + 1).sum(dims, keepdim)}; };
      expect_kernels(1, f, {normal({5, 7, 37}), normal({37})});
      expect_kernels(1, f, {normal({5, 7, 37}).to(kBFloat16), normal({37}).to(kBFloat16)}, 4e-2);
    }
  }
  auto longest = [](const TensorList& x) { return TensorList{(x[0].abs() - x[1]).amax({0})}; };
  expect_kernels(1, longest, {normal({1500, 70}), normal({70})});
}

TEST(FusionMaps, SearchesAndScansComputeWhatTheyRead) {
  for (int64_t dim : {0, 1, 2}) {
    auto search = [dim](const TensorList& x) {
      return TensorList{(x[0] * 2 - x[1]).argmax(dim), (x[0] + x[1]).argmin(dim, true)};
    };
    expect_kernels(2, search, {normal({4, 5, 37}), normal({4, 5, 37})});
    auto scan = [dim](const TensorList& x) { return TensorList{cumsum(x[0] * x[1], dim)}; };
    expect_kernels(1, scan, {normal({4, 5, 37}), normal({37})});
  }
}

TEST(FusionMaps, TheGradientOfABiasReadsWhatItSums) {
  auto f = [](const TensorList& x) { return TensorList{(x[0] * (x[1] > 0)).sum(IntList{0})}; };
  expect_kernels(1, f, {normal({60, 33}), normal({60, 33})});
}

TEST(FusionMaps, SizesMayBeSymbols) {
  Dim rows = Dim::symbol("s0");
  Type table{kFloat32, {rows, 34}, Device()};
  std::vector<Type> types{{kFloat32, {2, rows, 34}, Device()}, table, table};
  Graph graph = run_passes(trace([](const TensorList& x) { return halves_rotary(x); }, types));
  Graph fused = fuse(graph);
  int count = 0;
  for (auto& node : fused.nodes()) count += node.op == &fused_op();
  EXPECT_EQ(count, 1) << fused.text();
  auto program = compile_program({.graph = std::move(graph), .symbols = {"s0"}, .writes = {}, .name = "test"});
  for (int64_t size : {5, 9}) {
    TensorList in{normal({2, size, 34}), normal({size, 34}), normal({size, 34})}, results(1);
    std::vector<TensorArg> operands(in.begin(), in.end());
    program->run(operands, IntList{size}, results);
    Tensor want = halves_rotary(in)[0];
    EXPECT_LT((results[0] - want).abs().amax().item().to_double(), 1e-5);
  }
}

TEST(FusionMaps, SmallKernelsOfOneDomainRunAsOne) {
  auto f = [](const TensorList& x) { return TensorList{x[0].exp() * 2, x[1] + 1, (x[2] * x[2]).sum({-1})}; };
  expect_kernels(1, f, {normal({6, 33}), normal({6, 33}), normal({6, 33})});
  expect_kernels(3, f, {normal({200, 330}), normal({200, 330}), normal({200, 330})});
}

TEST(FusionMaps, DropoutDrawsInItsKernel) {
  auto f = [](const TensorList& x) {
    Tensor keep = rand(x[0].sizes()) > 0.5;
    return TensorList{where(keep, x[0] * 3, x[1]) + 1};
  };
  expect_kernels(1, f, {normal({20, 37}), normal({20, 37})});
}

}  // namespace
}  // namespace sinter
