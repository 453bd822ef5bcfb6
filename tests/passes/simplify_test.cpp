// Simplified graphs give the same bits on the values that algebra forgets: -0.0, NaN, infinities, the smallest numbers.
#include "sinter/passes/simplify.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "sinter/graph/interpreter.h"

namespace sinter {
namespace {

Array special_values() {
  using Limits = std::numeric_limits<float>;
  Array out(kFloat32, {10});
  out.f = {0.0,
           -0.0,
           Limits::quiet_NaN(),
           Limits::infinity(),
           -Limits::infinity(),
           Limits::denorm_min(),
           Limits::max(),
           -1.5,
           1,
           3};
  return out;
}

class Exact : public ::testing::TestWithParam<const char*> {};

TEST_P(Exact, OnSpecialValues) {
  std::string text =
      "%0 = input : f32[10]\n%1 = scalar {value=0} : weak i64[]\n%2 = scalar {value=1} : weak i64[]\n"
      "%3 = scalar {value=-0.0} : weak f64[]\n%4 = neg(%0) : f32[10]\n";
  Graph graph = Graph::parse(text + "%5 = " + GetParam() + " : f32[10]\nreturn %5\n");
  std::vector<Array> inputs{special_values()};
  Array want = interpret(graph, inputs)[0], got = interpret(simplify(graph), inputs)[0];
  for (size_t i = 0; i < want.f.size(); ++i)
    EXPECT_TRUE(std::bit_cast<int64_t>(got.f[i]) == std::bit_cast<int64_t>(want.f[i]) ||
                (std::isnan(got.f[i]) && std::isnan(want.f[i])))
        << inputs[0].f[i] << " gives " << got.f[i] << ", not " << want.f[i];
}

INSTANTIATE_TEST_SUITE_P(Simplify, Exact,
                         ::testing::Values("add(%0, %1)", "add(%0, %3)", "sub(%0, %1)", "sub(%0, %3)", "mul(%0, %2)",
                                           "mul(%0, %1)", "div(%0, %2)", "pow(%0, %2)", "neg(%4)", "abs(%4)",
                                           "sub(%0, %0)"));

}  // namespace
}  // namespace sinter
