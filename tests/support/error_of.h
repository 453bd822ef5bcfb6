#pragma once
// The message of the Error that a call throws.
#include <string>

#include "sinter/base/error.h"

namespace sinter {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sinter
