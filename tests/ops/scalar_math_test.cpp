// The host's side of the scalar functions, where it must agree with the generated code on special values.
#include "sinter/ops/scalar_math.h"

#include <gtest/gtest.h>

#include "sinter/graph/graph.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter {
namespace {

TEST(ScalarMath, SignOfNanIsZeroInBothWorlds) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(scalar_math::sign(nan), 0);
  EXPECT_EQ(sign(full({20}, nan)).to_vector<float>(), std::vector<float>(20, 0));
}

// Read off the body, so that an op says it once: a function that is not known to be cheap is not.
TEST(ScalarMath, BodiesTellWhatIsExpensive) {
  auto expensive = [](const char* name) { return find_op(name)->pointwise->expensive; };
  for (auto* name : {"exp", "asinh", "gelu", "silu", "elu", "logsigmoid", "pow", "xlogy"}) EXPECT_TRUE(expensive(name)) << name;
  for (auto* name : {"add", "relu", "sqrt", "div", "where", "hardswish", "isinf", "clone"}) EXPECT_FALSE(expensive(name)) << name;
}

}  // namespace
}  // namespace sinter
