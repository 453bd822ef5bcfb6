#pragma once
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/tensor/tensor.h"
#include "tests/support/error_of.h"

namespace sinter {

using Floats = std::vector<float>;

inline Tensor leaf(std::initializer_list<double> values, DType dtype = kFloat32) {
  return tensor(values, dtype).requires_grad_();
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' has no '" << part << "'";
}

}  // namespace sinter
