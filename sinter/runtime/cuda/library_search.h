#pragma once
// Where the vendor's libraries are found: they are opened when first wanted, never linked.
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/dynamic_library.h"

namespace sinter::runtime {

// Folders in which CUDA's libraries are commonly installed and which exist here, likeliest first: $CUDA_HOME,
// $CUDA_PATH, /usr/local/cuda, the other toolkits beside it (newest first), the packages that come with a Python
// installation.
std::vector<std::string> cuda_library_folders();

// The first of the file names that can be opened: by the system's own search, else from one of those folders. When
// there is none, `problem` says so in a sentence that names the library, what was tried and what to do.
std::optional<DynamicLibrary> open_cuda_library(const std::string& library, std::initializer_list<const char*> names,
                                                std::string& problem);

}  // namespace sinter::runtime
