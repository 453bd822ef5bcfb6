#pragma once
// A program that a reader has made of a file, with its tensors: what ExportedModel is made of, whichever the format.
#include <string>
#include <vector>

#include "sinter/interop/program.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

// A tensor of the file, under the name it has as a parameter or buffer.
struct ImportedTensor {
  ProgramInput::Kind kind = ProgramInput::Kind::kConstant;
  std::string name;
  bool persistent = true, requires_grad = false;
  Tensor tensor;
};

struct ImportedProgram {
  const char* reader = "load_exported";  // in errors
  std::string file;                      // its path
  ExportedProgram program;
  std::vector<ImportedTensor> tensors;
};

// Reads a file of either format, by the end of its name: .onnx, else .pt2. Functions that Sinter has not are no Error here.
ImportedProgram read_program_file(const std::string& path);
// The same of torch.export.save alone.
ImportedProgram read_exported(const std::string& path);

}  // namespace sinter::interop
