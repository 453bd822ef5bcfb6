#pragma once
// EXPECT_ERROR(statement, "part of the message"…): the statement throws sinter::Error, the message has every part, and
// where() is the line of the statement. EXPECT_ERROR_TEXT leaves the position out: for entry points that cannot know it.
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What went wrong with the expectation; empty when nothing did.
template <class F>
std::string error_mismatch(F&& f, std::initializer_list<const char*> parts, const std::source_location* where) {
  try {
    f();
  } catch (const Error& e) {
    std::string problems;
    for (auto* part : parts)
      if (e.message().find(part) == std::string::npos) problems += "\n  it does not say: " + std::string(part);
    if (where && e.where() != to_string(*where)) problems += "\n  where() is '" + e.where() + "'";
    if (!where && !e.where().empty() && e.where().find("tests/errors/") == std::string::npos)
      problems += "\n  where() is not the user's: '" + e.where() + "'";
    return problems.empty() ? "" : "the Error is: " + e.message() + problems;
  } catch (const std::exception& e) {
    return std::string("not an Error: ") + e.what();
  }
  return "nothing was thrown";
}

// The elements, NaN equal to NaN, infinities and signed zeros told apart.
inline std::vector<double> values_of(const Tensor& t) { return t.to_vector<double>(); }
inline bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) ? std::isnan(b[i]) : a[i] == b[i])) return false;
  return true;
}
inline ::testing::AssertionResult has_values(const Tensor& t, const std::vector<double>& expected) {
  if (same_values(values_of(t), expected)) return ::testing::AssertionSuccess();
  auto result = ::testing::AssertionFailure() << to_string(t) << "\nexpected";
  for (double v : expected) result << ' ' << v;
  return result;
}

}  // namespace sinter

#define EXPECT_ERROR(statement, ...)                                                                              \
  do {                                                                                                            \
    auto expected_at = std::source_location::current();                                                          \
    EXPECT_EQ(::sinter::error_mismatch([&] { (void)(statement); }, {__VA_ARGS__}, &expected_at), "") << #statement; \
  } while (false)
#define EXPECT_ERROR_TEXT(statement, ...)                                                                    \
  EXPECT_EQ(::sinter::error_mismatch([&] { (void)(statement); }, {__VA_ARGS__}, nullptr), "") << #statement
