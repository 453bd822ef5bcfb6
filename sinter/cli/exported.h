#pragma once
// Programs of torch.export.save and models in the ONNX format in the place of a checkpoint.
#include <string>

#include "sinter/interop/exported.h"

namespace sinter::cli {

// Whether the name of a model is that of such a file.
bool is_exported(const std::string& model);
// The model of such a file, on a device.
ExportedModel load_exported_model(const std::string& path, Device device);
// Parameters, inputs, and the functions that it calls with how often, those that Sinter has not among them.
void print_exported_info(const std::string& path, bool json);

}  // namespace sinter::cli
