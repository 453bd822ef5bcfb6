#pragma once
// What PyTorch recorded of layers (tools/record_layers.py), and comparison with it.
#include "sinter/io/safetensors.h"
#include "tests/nn/common.h"

namespace sinter {

inline Tensor recorded_layer(const std::string& name) {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/layers.safetensors");
  return file.tensor(name);
}

inline Tensor ramp64(const Shape& shape, double low, double high) {
  return linspace(low, high, shape.numel(), kFloat64).view(shape);
}

inline void expect_layer(const std::string& name, const Tensor& actual, double tolerance = 1e-6) {
  SCOPED_TRACE(name);
  ASSERT_TRUE(actual.defined());
  Tensor expected = recorded_layer(name);
  EXPECT_EQ(to_string(actual.sizes()), to_string(expected.sizes()));
  // What was recorded is rounded to f32.
  auto values = expected.to_vector<double>();
  double largest = 1;
  for (double v : values) largest = std::max(largest, std::abs(v));
  expect_values(actual, values, tolerance * largest);
}

// Results, and gradients of what they weigh together: of the inputs and of a module's parameters.
inline void expect_differentiated(const std::string& name, const TensorList& results, const TensorList& inputs,
                                  const nn::Module* module) {
  Tensor loss = zeros({}, kFloat64);
  for (size_t i = 0; i < results.size(); ++i) {
    expect_layer(format("{}/out{}", name, i), results[i]);
    loss = loss + (results[i] * sin(ramp64(results[i].sizes(), 0, 5 + double(i)))).sum();
  }
  loss.backward();
  for (size_t i = 0; i < inputs.size(); ++i) expect_layer(format("{}/grad/in{}", name, i), inputs[i].grad());
  if (!module) return;
  for (auto& [key, parameter] : module->named_parameters()) expect_layer(name + "/grad/" + key, parameter.grad());
}

}  // namespace sinter
