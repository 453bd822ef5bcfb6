#pragma once
// Programs given as text, and ways to run them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sinter/engine/executable.h"

namespace sinter::testing {

// A program made ready, with places for its outputs.
class Runner {
 public:
  Runner(std::string_view text, const std::string& backend = "sinter", std::vector<std::string> symbols = {},
         std::vector<int> writes = {});

  TensorList operator()(const std::vector<TensorArg>& inputs, const std::vector<int64_t>& sizes = {}) const;
  Executable& executable() const { return *executable_; }
  std::string text() const { return executable_->text(); }

 private:
  size_t outputs_;
  std::shared_ptr<Executable> executable_;
};

// `f` as a function of its first tensor alone; the others are its parameters.
template <class F>
auto with_parameters(const F& f, const TensorList& parameters) {
  return [f, parameters](const Tensor& x) {
    TensorList all{x};
    all.insert(all.end(), parameters.begin(), parameters.end());
    return f(all);
  };
}

// Numbers between -1 and 1 that differ from element to element, the same at every call.
Tensor values(const Shape& shape, double shift = 0);

// Whether both have the same shape and nearly the same values.
::testing::AssertionResult is_close(const Tensor& got, const Tensor& want, double tolerance = 1e-4);

}  // namespace sinter::testing
