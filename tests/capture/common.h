#pragma once
// Shared by the tests of capture: comparison of tensors, messages of errors, what is written to stderr.
#include <gtest/gtest.h>

#include "sinter/base/log.h"
#include "sinter/capture/entry.h"
#include "sinter/sinter.h"
#include "sinter/tensor/tracer.h"
#include "tests/support/error_of.h"

namespace sinter {

// Numbers between -1 and 1 that differ from element to element, the same at every call.
inline Tensor wave(const Shape& shape, double shift = 0) {
  return sin(arange_of_size(shape.numel(), kFloat32) * 0.7 + shift).view(shape);
}

inline ::testing::AssertionResult close(const Tensor& got, const Tensor& want, double tolerance = 1e-5) {
  if (!got.defined() || !want.defined())
    return got.defined() == want.defined() ? ::testing::AssertionSuccess()
                                           : ::testing::AssertionFailure() << "only one of the tensors is defined";
  if (to_string(got.sizes()) != to_string(want.sizes()) || got.dtype() != want.dtype())
    return ::testing::AssertionFailure() << got.dtype() << got.sizes() << " is not " << want.dtype() << want.sizes();
  auto a = got.detach().to_vector<double>(), b = want.detach().to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]))))
      return ::testing::AssertionFailure() << "element " << i << " is " << a[i] << ", expected " << b[i];
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult same(const Tensor& got, const Tensor& want) { return close(got, want, 0); }

inline ::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// What f writes to stderr while these topics are logged.
template <class F>
std::string logged(const char* topics, F&& f) {
  ::testing::internal::CaptureStderr();
  set_logs(topics);
  f();
  set_logs("");
  return ::testing::internal::GetCapturedStderr();
}

// "guards_test.cpp:12" of this many lines before.
inline std::string line_before(int lines = 1, Where where = Where::current()) {
  std::string file = where.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(int(where.line()) - lines);
}

// Tests may be repeated in one process, a name is registered once.
inline void register_once(const std::string& name, const Backend& backend) {
  auto known = compiler::list_backends();
  if (std::find(known.begin(), known.end(), name) == known.end()) register_backend(name, backend);
}

inline int programs_of(const auto& compiled) { return int(compiled.function().entries().size()); }

}  // namespace sinter
