#include "sinter/runtime/cpu/ceilings.h"

#include <gtest/gtest.h>

namespace sinter::runtime {
namespace {

TEST(Ceilings, AreMeasuredOnce) {
  auto& first = measured_ceilings();
  EXPECT_EQ(&first, &measured_ceilings());
  ASSERT_FALSE(first.tiers.empty());
  for (size_t i = 0; i < first.tiers.size(); ++i) {
    EXPECT_GT(first.tiers[i].read, 1e8);
    EXPECT_GT(first.tiers[i].copy, 1e8);
    EXPECT_GT(first.tiers[i].bytes, i ? first.tiers[i - 1].bytes : 0);
  }
}

TEST(Ceilings, TheFloorIsTheSlowerOfMemoryAndArithmetic) {
  Ceilings c{.tiers = {{1000, 40e9, 40e9}, {100000, 10e9, 8e9}}, .flops = 100e9, .threads = 1};
  EXPECT_DOUBLE_EQ(c.seconds(10e9, 0, 0, 1e9), 1.0);
  EXPECT_DOUBLE_EQ(c.seconds(4e9, 4e9, 0, 1e9), 1.0);   // a copy of 8 GB at 8 GB/s
  EXPECT_DOUBLE_EQ(c.seconds(10e9, 0, 0, 500), 0.25);   // from the cache
  EXPECT_DOUBLE_EQ(c.seconds(10e9, 0, 300e9, 1e9), 3.0);
}

}  // namespace
}  // namespace sinter::runtime
