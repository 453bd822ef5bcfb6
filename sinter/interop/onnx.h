#pragma once
// Models in the ONNX format (.onnx), as modules:
//
//   auto model = load_onnx("model.onnx");
//   TensorList results = model(x);
//
// Not part of sinter/sinter.h.
#include <string>

#include "sinter/base/api.h"
#include "sinter/interop/exported.h"

namespace sinter SINTER_API {

// The model of a file. Its weights are parameters by their names in the file: floating tensors of one dimension or more that nodes
// read, but for running statistics, which are buffers. They are views of the file, or of one beside it that holds external data,
// where they lie there as memory wants them (in a .onnx itself most do not, and are copied); the files stay mapped while one of
// them is in use, and what is written to weights does not change them. Operators mean what the version of their set says, 13 to
// 22 and what is newer as far as Sinter has it. An Error names those that Sinter has not, with how often each occurs, before
// anything runs. Random draws, and Dropout while training, differ from those of other runtimes.
ExportedModel load_onnx(const std::string& path);

}  // namespace SINTER_API
