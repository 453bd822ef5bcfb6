#pragma once
// What the tests of the GPU's runtime share: messages of errors, and sizes.
#include <string>

#include "tests/support/error_of.h"

namespace sinter::runtime {

inline constexpr size_t kMiB = 1 << 20;

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace sinter::runtime
