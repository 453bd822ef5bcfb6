#pragma once
// A chain of computations, compiled as one program and compared with the referee. What is allowed to differ follows from the
// tolerances of the ops: each stage's error is let into the stages behind it.
#include <functional>
#include <string>
#include <vector>

#include "tests/support/samples.h"

namespace sinter::pairs {

struct Input {
  Array values;
  testing::MemoryLayout layout = testing::MemoryLayout::kContiguous;
};

// From the result of the stage before (undefined in the first) and the inputs of the chain.
using Stage = std::function<Tensor(const Tensor& before, const TensorList& inputs)>;

struct Chain {
  std::vector<Input> inputs;
  std::vector<Stage> stages;
};

struct Outcome {
  bool applies = true;  // false: an op does not take such operands, or a value between leaves its dtype
  std::string wrong;    // empty: the compiled result is right
};

// Traces, compiles and runs the chain on a device.
Outcome check(Chain chain, Device device);

}  // namespace sinter::pairs
