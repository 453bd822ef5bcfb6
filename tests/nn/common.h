#pragma once
// Shared by the tests of nn: deterministic values, and comparison with lists of numbers.
#include <gtest/gtest.h>

#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {

// Evenly spaced from low to high.
inline Tensor ramp(const Shape& shape, double low, double high) {
  return linspace(low, high, shape.numel()).view(shape);
}

// Every parameter 0.5 cos of a ramp from -3 to 4: what the recorded PyTorch values were made with.
inline void fill_parameters(nn::Module& module) {
  NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) parameter.copy_(cos(ramp(parameter.sizes(), -3, 4)) * 0.5);
}

inline void expect_values(const Tensor& actual, const std::vector<double>& expected, double tolerance = 2e-6) {
  auto values = actual.detach().to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << actual;
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

inline void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  EXPECT_EQ(a.detach().to_vector<double>(), b.detach().to_vector<double>());
}

}  // namespace sinter
