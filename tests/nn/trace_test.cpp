// Layers under capture: sizes stay symbolic, parameters become inputs, the referee agrees with eager.
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "tests/nn/common.h"

namespace sinter {
namespace {

// Traces f on an input of this type, and checks the graph on `x` against eager.
template <class F>
Graph check_trace(F f, const char* type, const Tensor& x, size_t parameters) {
  GraphTracer tracer;
  Type input = parse_type(type);
  for (int64_t d = 0; d < input.rank(); ++d)
    if (!input.shape[size_t(d)].is_number()) tracer.set_hint(to_string(input.shape[size_t(d)]), x.size(d));
  {
    TracerScope scope(&tracer);
    NoGradGuard no_grad;
    Tensor traced = tracer.add_input(input);
    Tensor y = f(traced);
    tracer.graph().set_outputs({tracer.value_of(y)});
  }
  EXPECT_EQ(tracer.captured().size(), parameters);
  tracer.graph().verify();
  std::vector<Array> arrays{to_array(x)};
  for (auto& captured : tracer.captured()) arrays.push_back(to_array(captured.detach()));
  expect_values(to_tensor(interpret(tracer.graph(), arrays)[0]), f(x).detach().template to_vector<double>(), 1e-5);
  return std::move(tracer.graph());
}

TEST(TracedLayers, EncoderKeepsBatchAndLengthSymbolic) {
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).batch_first(true));
  layer->eval();
  auto f = [&](const Tensor& x) { return layer(x, nn::AttentionArgs().is_causal(true)); };
  Graph graph = check_trace(f, "f32[s0, s1, 8]", randn({3, 5, 8}), layer->parameters().size());
  EXPECT_EQ(to_string(graph.outputs()[0].type()), "f32[s0, s1, 8]");
}

TEST(TracedLayers, ConvolutionalNetInOneGraph) {
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(1)), nn::BatchNorm2d(4), nn::ReLU(),
                     nn::MaxPool2d(2), nn::GroupNorm(2, 4), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(4, 3));
  net->eval();
  // Beside the parameters the running mean and variance are inputs.
  Graph graph = check_trace(net, "f32[s0, 2, 6, 6]", randn({2, 2, 6, 6}), net->parameters().size() + 2);
  EXPECT_EQ(to_string(graph.outputs()[0].type()), "f32[s0, 3]");
}

}  // namespace
}  // namespace sinter
