#pragma once
// What the tests of the GPU's runtime share: messages of errors, and sizes.
#include <string>

#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"

namespace sinter::runtime {

inline constexpr size_t kMiB = 1 << 20;

// The message of what the work throws; empty when it does not.
inline std::string error_of(FunctionRef<void()> work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace sinter::runtime
