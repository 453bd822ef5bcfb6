#pragma once
// A file in the ONNX format as a program, whether Sinter has its operators or not.
#include <string>

#include "sinter/interop/imported.h"

namespace sinter::interop::onnx {

ImportedProgram read_file(const std::string& path);

}  // namespace sinter::interop::onnx
