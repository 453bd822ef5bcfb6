// Draws from a stream of one's own, and the draws in place by their moments.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter {
namespace {

TEST(GeneratorDraws, AreIndependentOfTheDefaultStream) {
  manual_seed(5);
  Tensor expected = rand({4});
  manual_seed(5);
  Generator own(9);
  Tensor first = rand({4}, own), state = own.get_state(), second = randn({4}, own);
  EXPECT_TRUE(equal(rand({4}), expected));
  own.set_state(state);
  EXPECT_TRUE(equal(randn({4}, own), second));
  own.manual_seed(9);
  EXPECT_TRUE(equal(rand({4}, own), first));
  EXPECT_THROW(own.set_state(zeros({3}, kUInt8)), Error);
}

TEST(GeneratorDraws, InPlaceHaveTheirMoments) {
  manual_seed(1);
  auto mean_of = [](const Tensor& x) { return x.to(kFloat64).mean().item<double>(); };
  const Shape size{20000};
  EXPECT_NEAR(mean_of(empty(size).exponential_(2)), 0.5, 0.02);
  EXPECT_NEAR(mean_of(empty(size).geometric_(0.25)), 4, 0.15);
  EXPECT_NEAR(mean_of(log(empty(size).log_normal_(0.5, 1))), 0.5, 0.04);
  EXPECT_NEAR(median(empty(size).cauchy_(3, 1)).item<double>(), 3, 0.1);
  EXPECT_NEAR(mean_of(empty(size, kInt32).random_(2, 8)), 4.5, 0.1);
  EXPECT_NEAR(mean_of(empty(size, kUInt8).random_()), 127.5, 3);
  EXPECT_NEAR(mean_of(normal(full({20000}, 2.0), 0.5)), 2, 0.02);
}

}  // namespace
}  // namespace sinter
