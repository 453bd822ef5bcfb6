#pragma once
// Suites that say nothing under ThreadSanitizer: what weighs seconds, which are the sanitizer's there, and what forks and then
// starts threads, which it cannot follow.
#include <gtest/gtest.h>

namespace sinter::testing {

class WithoutThreadSanitizer : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "not under ThreadSanitizer";
#endif
  }
};

}  // namespace sinter::testing
