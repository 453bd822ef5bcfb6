#pragma once
// Programs of PyTorch's torch.export.save (.pt2), as modules:
//
//   auto model = load_exported("model.pt2");
//   TensorList results = model(x);
//
// Not part of sinter/sinter.h.
#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/nn/module.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {
struct ImportedProgram;
}

namespace sinter SINTER_API {

// What was exported: its parameters and buffers by PyTorch's names, and its forward. It does what the program did when it was
// exported, training or not; train() and eval() change nothing. Compiled, it is captured like any other module. load_onnx
// (interop/onnx.h) gives one as well.
class ExportedModelImpl : public nn::Module {
 public:
  explicit ExportedModelImpl(interop::ImportedProgram program);
  ~ExportedModelImpl() override;

  // The results, flattened, of inputs in the order of the program's own; those that were no tensors when it was exported are left
  // out. An Error when a size is not one that it was exported for. Numbers among the results are 0-d tensors, and None is an
  // undefined one. Inputs that the program writes to are written to.
  TensorList forward(const TensorList& inputs);
  template <std::same_as<Tensor>... T>
  TensorList forward(const Tensor& first, const T&... rest) {
    return forward(TensorList{first, rest...});
  }

  std::vector<std::string> input_names() const;
  // How many tensors forward() gives.
  size_t result_count() const;
  // Zeros of the sizes that the inputs had when the program was exported.
  TensorList example_inputs() const;
  std::string name() const override { return "ExportedModel"; }
  // The inputs: "x: float32[s77, 16], s77 from 2 to 64".
  std::string extra_repr() const override;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
};
SINTER_MODULE(ExportedModel);

// The model of a file. Its weights are views of the file, which stays mapped while one of them is in use; what is written to them
// changes neither the file nor other readers of it.
ExportedModel load_exported(const std::string& path);

}  // namespace SINTER_API
