#include "sinter/base/function_ref.h"

#include <gtest/gtest.h>

#include <string>

namespace sinter {
namespace {

int twice(int x) { return 2 * x; }

int apply(FunctionRef<int(int)> f, int x) { return f(x); }

TEST(FunctionRef, CallsLambdasFunctionsAndPointers) {
  int offset = 10;
  EXPECT_EQ(apply([&](int x) { return x + offset; }, 1), 11);
  EXPECT_EQ(apply(twice, 4), 8);
  FunctionRef<int(int)> held = &twice;
  EXPECT_EQ(held(5), 10);
}

TEST(FunctionRef, RefersToTheCallableAndDoesNotCopyIt) {
  int calls = 0;
  auto counter = [calls](int) mutable { return ++calls; };
  FunctionRef<int(int)> ref = counter;
  FunctionRef<int(int)> copy = ref;
  ref(0);
  EXPECT_EQ(copy(0), 2);
  EXPECT_EQ(counter(0), 3);
}

TEST(FunctionRef, ConvertsResultAndForwardsReferences) {
  FunctionRef<void(std::string&)> append = [](std::string& s) { return s += "x"; };
  std::string text = "a";
  append(text);
  EXPECT_EQ(text, "ax");
  const auto fixed = [] { return 3; };
  EXPECT_EQ(FunctionRef<double()>(fixed)(), 3.0);
  static_assert(!std::is_constructible_v<FunctionRef<int(int)>, std::string>);
}

}  // namespace
}  // namespace sinter
