// The same as compile_fuzz_test.cpp with ten thousand programs: `make fuzz`.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {
namespace {

constexpr Limits kLong{.programs = 10000, .seconds = 7000};

TEST(CompileFuzzLong1, Programs) { EXPECT_EQ(fuzz(0, kLong), 0); }
TEST(CompileFuzzLong2, Programs) { EXPECT_EQ(fuzz(1, kLong), 0); }

}  // namespace
}  // namespace sinter::fuzz
