#pragma once
// Programs of torch.export.save in the place of a checkpoint.
#include <string>

namespace sinter::cli {

// Whether the name of a model is that of such a file.
bool is_exported(const std::string& model);
// Parameters, inputs, and the functions that it calls with how often, those that Sinter has not among them.
void print_exported_info(const std::string& path, bool json);

}  // namespace sinter::cli
