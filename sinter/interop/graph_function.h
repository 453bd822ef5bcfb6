#pragma once
// A program all of whose inputs are its caller's: what PyTorch's compiler hands to a backend, as the JSON of an exported program
// without weights. Numbers among the inputs and results are part of it.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/fields.h"
#include "sinter/interop/program.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

class GraphFunction {
 public:
  // An Error names every function that Sinter has not. `name` stands for the program in errors.
  GraphFunction(std::string_view json, const std::string& name);
  ~GraphFunction();

  struct Input {
    enum class Kind : uint8_t { kTensor, kInteger, kReal };
    Kind kind = Kind::kTensor;
    bool is_implied = false;              // an integer that the size of a tensor tells
    std::vector<int64_t> dynamic = {};    // of a tensor: the dimensions whose sizes may change
  };
  struct Output {
    ProgramOutput::Holds holds = ProgramOutput::Holds::kTensor;
    int input = -1;  // the input that it is, untouched
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }

  // Of the outputs those that are no inputs, by what they are.
  struct Results {
    TensorList tensors;
    std::vector<Dim> integers;
    std::vector<Scalar> reals;
    SINTER_FIELDS(tensors, integers, reals)
  };
  // The inputs by what they are, without the integers that are implied. What the program writes to its inputs is written.
  Results run(const TensorList& tensors, const std::vector<Dim>& integers, const std::vector<Scalar>& reals) const;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace sinter::interop
