#pragma once
// What the Error that a call throws says; the test fails where it throws none.
#include <gtest/gtest.h>

#include <string>

#include "sinter/base/error.h"

namespace sinter {

// With its position, where it has one.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

// The message alone.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace sinter
