#pragma once
// A program made ready to be called, eagerly or compiled, and what one can see of a call.
#include "tests/fuzz/program.h"

namespace sinter::fuzz {

struct Seen {
  std::string name;
  bool defined = false, requires_grad = false;
  DType dtype = kFloat32;
  IntList sizes, strides;
  std::vector<double> values;
};

struct Observation {
  bool failed = false, backward_failed = false, broken = false;  // broken: by a fault of the library's own
  std::string error;
  std::vector<Seen> tensors;
  std::string sharing;  // which of the tensors see the same memory, and from where
  std::string numbers;  // where the random generator stands, the rates of the optimiser, the modes of the layers
};

// Its captured tensors are the same before every call; its layers and its optimiser go on from call to call.
class Subject {
 public:
  // Eager without options.
  Subject(const Program& program, const CompileOptions* options, double disturbance = 0);
  Observation operator()(const Round& round);

 private:
  void restore(const Round& round);
  void clear_gradients();
  void step();
  std::string numbers() const;

  const Program& program_;
  Data captured_;
  State state_;
  std::function<TensorList(const TensorList&, const Scalar&)> call_;
};

}  // namespace sinter::fuzz
