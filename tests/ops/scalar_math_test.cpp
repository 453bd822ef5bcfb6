// The host's side of the scalar functions, where it must agree with the generated code on special values.
#include "sinter/ops/scalar_math.h"

#include <gtest/gtest.h>

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter {
namespace {

TEST(ScalarMath, SignOfNanIsZeroInBothWorlds) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(scalar_math::sign(nan), 0);
  EXPECT_EQ(sign(full({20}, nan)).to_vector<float>(), std::vector<float>(20, 0));
}

}  // namespace
}  // namespace sinter
