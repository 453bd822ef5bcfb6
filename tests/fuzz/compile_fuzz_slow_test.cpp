// The same as compile_fuzz_test.cpp with ten thousand programs: `make fuzz`.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {
namespace {

constexpr Limits kLong{.programs = 5000, .seconds = 3600};

TEST(CompileFuzzLong, Programs) { EXPECT_EQ(fuzz({.gradients = false}, kLong), 0); }
TEST(CompileFuzzLongGradients, Programs) { EXPECT_EQ(fuzz({.gradients = true}, kLong), 0); }

}  // namespace
}  // namespace sinter::fuzz
