#pragma once
// Gradients against finite differences, both by the double-precision interpreter: no kernel takes part.
#include <functional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "sinter/graph/interpreter.h"

namespace sinter {

struct GradcheckOptions {
  double step = 1e-6;           // of the central difference
  double relative = 1e-5;       // allowed error, relative to the larger of the two values
  double absolute = 1e-6;       // added to it
  bool second_order = false;    // also checks the gradient of the gradient
  bool allow_constant = false;  // accepts a function none of whose results depends on a floating input
};

using TensorFunction = std::function<TensorList(const TensorList&)>;

// Compares the recorded gradient of every floating result with respect to every floating input, against a random
// cotangent. The inputs must lie where f is smooth.
::testing::AssertionResult gradcheck(const TensorFunction& f, std::span<const Array> inputs,
                                     const GradcheckOptions& options = {});
::testing::AssertionResult gradcheck(const TensorFunction& f, const TensorList& inputs,
                                     const GradcheckOptions& options = {});

// The same for one op on these operands (eager tensors and numbers).
::testing::AssertionResult gradcheck_op(const Op& op, const std::vector<TensorArg>& operands, const Attrs& attrs = {},
                                        const GradcheckOptions& options = {});

}  // namespace sinter
