#pragma once
// What PyTorch recorded of training (tools/record_training.py), and the problem it was recorded on.
#include "sinter/io/safetensors.h"
#include "tests/nn/common.h"

namespace sinter {

constexpr int kRecordedSteps = 100;

inline Tensor recorded(const std::string& name) {
  static const SafeTensorsFile file(std::string(SINTER_TEST_DATA) + "/recorded/training.safetensors");
  return file.tensor(name);
}

// A layer of four tanh between two matrices.
struct RecordedProblem {
  DType dtype;
  Tensor x = start("x"), y = start("y");
  Tensor w = start("w").requires_grad_(), v = start("v").requires_grad_(), b = start("b").requires_grad_();

  explicit RecordedProblem(DType dtype) : dtype(dtype) {}
  Tensor start(const char* name) const { return recorded(std::string("start/") + name).to(dtype).clone(); }
  TensorList params() const { return {w, v, b}; }
  Tensor loss() const { return (matmul(tanh(matmul(x, w) + b), v) - y).square().mean(); }
  Tensor step(optim::Optimizer& optimizer) const {
    optimizer.zero_grad();
    Tensor value = loss();
    value.backward();
    optimizer.step();
    return value.detach();
  }
};

// Within a tolerance of what was recorded after so many steps, where something was.
inline void expect_recorded(const TensorList& params, const std::string& name, int step, double tolerance) {
  if (step != 1 && step != 10 && step != kRecordedSteps) return;
  const char* names[] = {"w", "v", "b"};
  for (size_t i = 0; i < params.size(); ++i) {
    SCOPED_TRACE(format("{} after {} steps", names[i], step));
    expect_values(params[i], recorded(format("{}/{}/{}", name, step, names[i])).to_vector<double>(), tolerance);
  }
}

}  // namespace sinter
