// A convolution, a batch norm and a ReLU, forward and backward, as a GPU with cuDNN runs them: how many kernels, and what
// each of them reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/engine/cuda/engine.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter {
namespace {

// A target such as an engine makes with cuDNN.
Target target() {
  Target out = cuda_engine(cuda()).target();
  out.convolutions = {.dtypes = {kFloat32, kBFloat16, kFloat16}, .grouped = true};
  return out;
}

struct Kernels {
  Graph graph;
  int convolutions = 0, gradients = 0, weight_gradients = 0, others = 0;
};

// `f` on operands of these types, and the gradients of its result with respect to all of them.
Kernels kernels_of(const std::function<Tensor(const TensorList&)>& f, const std::vector<std::string>& types) {
  GraphTracer tracer;
  std::vector<Value> values;
  {
    TracerScope scope(&tracer);
    TensorList leaves;
    for (auto& text : types) leaves.push_back(tracer.add_input(parse_type(text)).requires_grad_());
    Tensor y = f(leaves);
    values.push_back(tracer.value_of(y));
    Tensor flow = tracer.tensor_of(tracer.graph().add_input(values.back().type()));
    for (auto& g : autograd::grad({y}, leaves, {flow})) values.push_back(tracer.value_of(g));
    tracer.graph().set_outputs(values);
  }
  Kernels out{run_passes(std::move(tracer.graph()), planning_pipeline(target()))};
  for (auto& node : out.graph.nodes()) {
    auto kind = node.op->kind;
    if (kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView) continue;
    const bool fused = node.op == &fused_op();
    if (node.op->name == "convolution_weight_grad")
      ++out.weight_gradients;
    else if (node.op->name == "convolution")
      ++out.gradients;
    else if (fused && node.attrs.as<FusedAttrs>().kind == FusedKind::kConvolution)
      ++out.convolutions;
    else
      ++out.others;
  }
  return out;
}

TEST(TrainingBlock, ConvolutionBatchNormAndRelu) {
  auto block = [](const TensorList& x) {
    return relu(batch_norm(conv2d(x[0], x[1], {}, 1, 1), {}, {}, x[2].to(kFloat32), x[3].to(kFloat32), true));
  };
  auto found = kernels_of(block, {"bf16[64, 64, 56, 56]", "bf16[64, 64, 3, 3]", "f32[64]", "f32[64]"});
  EXPECT_EQ(found.convolutions, 1);
  EXPECT_EQ(found.gradients, 1);
  EXPECT_EQ(found.weight_gradients, 1);
  // Forward: the two sums, what they come to, and the result; backward the same, of which the sums run with the result.
  EXPECT_EQ(found.others, 5);
  // Nothing of the image's size is kept in more than two bytes.
  for (auto& node : found.graph.nodes())
    for (auto& type : node.types)
      EXPECT_FALSE(type.dtype == kFloat32 && type.shape.numel().number() >= 64 * 64 * 56 * 56) << node.op->name;
}

// How often what has this many elements is read by the kernels that the gradient of a batch norm behind a ReLU ends up as, and
// the shapes that the sums of parts have.
std::pair<int, std::set<std::string>> readings_and_parts(const std::string& shape) {
  Graph graph = run_passes(Graph::parse("%0 = input : bf16" + shape + "\n%1 = input : bf16" + shape + "\n%2 = input : bool" +
                                        shape + "\n%3 = input : f32[1024]\n%4 = scalar : weak i64[]\n%5 = where(%2, %1, %4) : bf16" +
                                        shape + "\n%6 = batch_norm_backward(%0, %5, %3, %3) : (bf16" + shape +
                                        ", f32[1024], f32[1024])\nreturn %6.0, %6.1, %6.2, %5"),
                           planning_pipeline(target()));
  const int64_t numel = graph.inputs()[0].type().shape.numel().number();
  std::pair<int, std::set<std::string>> out;
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    for (auto& v : node.inputs) out.first += v.type().shape.numel().number() == numel;
    for (auto& type : node.types)
      if (type.shape.numel().number() > 1024 && type.dtype == kFloat32) out.second.insert(to_string(type.shape));
  }
  return out;
}

TEST(TrainingBlock, BothSumsOfAGradientReadItOnce) {
  // The sums: image, gradient and mask; the result: image and gradient.
  EXPECT_EQ(readings_and_parts("[64, 1024, 14, 14]").first, 5);
  EXPECT_EQ(readings_and_parts("[4, 1024, 56, 56]").first, 5);
}

TEST(TrainingBlock, PartsAreAsFewAsKeepAGpuBusy) {
  EXPECT_EQ(readings_and_parts("[64, 1024, 28, 28]").second, std::set<std::string>{"[64, 1024]"});
  EXPECT_EQ(readings_and_parts("[4, 1024, 56, 56]").second, std::set<std::string>{"[4, 1024, 56]"});
}

}  // namespace
}  // namespace sinter
