// Random programs behave under compile() as they do eagerly. SINTER_FUZZ_SEED, SINTER_FUZZ_PROGRAMS, SINTER_FUZZ_SECONDS
// and SINTER_FUZZ_GRADIENTS choose which programs and how many; a failure prints a C++ program to keep.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {
namespace {

// Two suites, so that two cores share the time.
TEST(CompileFuzz1, Programs) { EXPECT_EQ(fuzz(0, {.programs = 300}), 0); }
TEST(CompileFuzz2, Programs) { EXPECT_EQ(fuzz(1, {.programs = 300}), 0); }

}  // namespace
}  // namespace sinter::fuzz
