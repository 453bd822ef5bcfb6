#pragma once
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

using Floats = std::vector<float>;

inline Tensor leaf(std::initializer_list<double> values, DType dtype = kFloat32) {
  return tensor(values, dtype).requires_grad_();
}

// The message of the Error that f throws; empty when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' has no '" << part << "'";
}

}  // namespace sinter
