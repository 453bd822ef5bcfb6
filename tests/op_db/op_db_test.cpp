// Samples of PyTorch's own test data base: what Sinter gives for each, and the gradients.
#include "tests/op_db/samples.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/op_db/known.h"

namespace sinter::testing {
namespace {

TEST(OpDb, EverySampleIsRightButThoseKnown) {
  // One of ten is compiled, too.
  const auto results = check_samples(SINTER_TEST_DATA "/op_db/op_db", {.compiled = 10});
  EXPECT_GT(results.size(), 900u);
  std::set<std::string> known, failed;
  for (auto& [reason, operators] : kKnownOperators) known.insert(operators.begin(), operators.end());
  for (auto& result : results) {
    if (result.verdict == Verdict::kRight) continue;
    failed.insert(result.op);
    EXPECT_TRUE(known.contains(result.op)) << result.sample << ": " << result.message;
  }
  for (auto& op : known) EXPECT_TRUE(failed.contains(op)) << op << " is right now: take it from known.h";
}

}  // namespace
}  // namespace sinter::testing
