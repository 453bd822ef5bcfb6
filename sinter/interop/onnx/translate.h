#pragma once
// An ONNX model as a program that can be run (interop/program.h): names become numbered values, functions become their bodies,
// inputs and attributes become arguments by the names of their operator's schema, and what the graphs inside If, Loop and Scan read
// from around them is handed to them.
#include <string>
#include <string_view>
#include <vector>

#include "sinter/interop/onnx/model.h"
#include "sinter/interop/onnx/tensors.h"
#include "sinter/interop/program.h"
#include "sinter/interop/schema.h"

namespace sinter::interop::onnx {

// The schema of an operator in this version of its set; null where there is none. Which lists there are is not known here.
using FindSchema = const Schema* (*)(std::string_view domain, std::string_view op, int64_t version);

// A tensor of the model that its nodes read. Nodes hold the same handle.
struct StoredTensor {
  ProgramInput::Kind kind = ProgramInput::Kind::kConstant;
  std::string name;
  Tensor tensor;
};

struct Translation {
  ExportedProgram program;
  std::vector<StoredTensor> tensors;
};

// `name` stands for the file in errors.
Translation translate(const Model& model, const TensorFiles& files, FindSchema find, const std::string& name);

}  // namespace sinter::interop::onnx
