// What libraries do behind a convolution, found in the bodies that fusion makes.
#include "sinter/engine/cuda/convolution_epilogue.h"

#include <gtest/gtest.h>

#include <functional>

#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/step/contraction_parts.h"
#include "sinter/graph/trace.h"
#include "sinter/loops/fused.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/passes/fuse.h"
#include "sinter/passes/pipeline.h"

namespace sinter {
namespace {

constexpr int64_t kChannels = 24;

// x, a weight, four vectors, and something of the result's shape.
std::vector<Shape> shapes() {
  Shape v{kChannels};
  return {{2, 8, 20, 20}, {kChannels, 8, 3, 3}, v, v, v, v, {2, kChannels, 20, 20}};
}

struct Found {
  FusedAttrs attrs;
  std::optional<ConvolutionEpilogue> epilogue;
};

// Of the only convolution.
Found find(DType dtype, const std::function<Tensor(const TensorList&)>& f) {
  std::vector<Type> types;
  for (auto& shape : shapes()) types.push_back({dtype, shape, Device()});
  Graph graph = run_passes(trace([&](const TensorList& x) { return TensorList{f(x)}; }, types));
  FuseOptions options;
  options.target = cpu_engine().target();
  Graph fused = fuse(graph, options);
  for (auto& node : fused.nodes()) {
    if (node.op != &fused_op()) continue;
    auto& attrs = node.attrs.as<FusedAttrs>();
    if (attrs.kind != FusedKind::kConvolution) continue;
    const ContractionParts parts = read_contraction(attrs);
    auto& epilogue = parts.epilogues.at(0).value().attrs();
    return {epilogue, find_epilogue(*epilogue.body)};
  }
  ADD_FAILURE() << "no fused convolution in\n" << fused.text();
  return {};
}

Tensor convolved(const TensorList& x) { return conv2d(x[0], x[1], {}, 1, 1); }
Tensor normed(const TensorList& x) { return batch_norm(convolved(x), x[2], x[3], x[4], x[5], false, 0.1, 1e-5); }

TEST(ConvolutionEpilogue, BatchNormResidualAndRelu) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    auto [attrs, epilogue] = find(dtype, [](auto& x) { return relu(normed(x) + x[6]); });
    ASSERT_TRUE(epilogue) << attrs.body->text();
    EXPECT_TRUE(epilogue->relu);
    ASSERT_GE(epilogue->residual, 0);
    EXPECT_EQ(attrs.body->inputs()[size_t(epilogue->residual)].type().shape, shapes()[6]);
    EXPECT_EQ(epilogue->channel_inputs.size(), 4u);
  }
}

TEST(ConvolutionEpilogue, NumbersAreThoseOfTheNorm) {
  auto [attrs, epilogue] = find(kFloat32, [](auto& x) { return normed(x) + 0.25; });
  ASSERT_TRUE(epilogue);
  EXPECT_FALSE(epilogue->relu);
  EXPECT_EQ(epilogue->residual, -1);
  // The order of a body's inputs is fusion's: the values of one vector differ from those of another by what they are.
  std::vector<Tensor> inputs(attrs.body->inputs().size());
  for (int i : epilogue->channel_inputs) inputs[size_t(i)] = rand({kChannels}) + 0.5;
  auto numbers = channel_numbers(*epilogue, *attrs.body, inputs, kChannels, Device());
  ASSERT_TRUE(numbers.scale.defined() && numbers.shift.defined());
  // An x of one number a channel goes through the changes one by one.
  Tensor x = rand({kChannels}), want = x;
  std::map<const Node*, Tensor> seen;
  for (int i : epilogue->channel_inputs) seen[attrs.body->inputs()[size_t(i)].node] = inputs[size_t(i)];
  std::function<Tensor(const Node*)> value = [&](const Node* n) -> Tensor {
    if (seen.contains(n)) return seen.at(n);
    if (n->op->kind == OpKind::kScalar) return full({1}, n->attrs.as<ScalarAttrs>().value);
    if (n->op->kind == OpKind::kView) return value(n->inputs[0].node);
    if (n->op->name == "add") return value(n->inputs[0].node) + value(n->inputs[1].node);
    if (n->op->name == "rsqrt") return rsqrt(value(n->inputs[0].node));
    ADD_FAILURE() << n->op->name;
    return {};
  };
  for (auto& change : epilogue->changes) {
    Tensor by = value(change.by.node).reshape({-1});
    using Kind = ConvolutionEpilogue::Change::Kind;
    want = change.kind == Kind::kAdd        ? want + by
           : change.kind == Kind::kSubtract ? want - by
           : change.kind == Kind::kMultiply ? want * by
                                            : want / by;
  }
  EXPECT_LT((x * numbers.scale + numbers.shift - want).abs().amax().item<double>(), 1e-5);
}

TEST(ConvolutionEpilogue, ReluAlone) {
  auto [attrs, epilogue] = find(kBFloat16, [](auto& x) { return relu(convolved(x)); });
  ASSERT_TRUE(epilogue);
  EXPECT_TRUE(epilogue->relu && epilogue->changes.empty() && epilogue->channel_inputs.empty());
}

TEST(ConvolutionEpilogue, OthersAreLeftToKernels) {
  for (auto& f : std::vector<std::function<Tensor(const TensorList&)>>{
           [](auto& x) { return silu(normed(x)); },
           [](auto& x) { return convolved(x) * x[6]; },
           [](auto& x) { return (relu(convolved(x)) + x[6]); },
           [](auto& x) { return (convolved(x) + x[6]) * x[2].view({kChannels, 1, 1}); },
           [](auto& x) { return x[2].view({kChannels, 1, 1}) - convolved(x); },
           [](auto& x) { Tensor y = convolved(x); return relu(y) + y; },
       }) {
    auto [attrs, epilogue] = find(kFloat32, f);
    EXPECT_FALSE(epilogue) << attrs.body->text();
  }
}

}  // namespace
}  // namespace sinter
