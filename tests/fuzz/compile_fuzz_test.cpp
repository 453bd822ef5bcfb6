// Random programs behave under compile() as they do eagerly. SINTER_FUZZ_SEED, SINTER_FUZZ_PROGRAMS and
// SINTER_FUZZ_SECONDS choose which programs and how many; a failure prints a C++ program to keep.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {
namespace {

// Two suites, so that two cores share the time.
TEST(CompileFuzz, Programs) { EXPECT_EQ(fuzz({.gradients = false}, {}), 0); }
TEST(CompileFuzzGradients, Programs) { EXPECT_EQ(fuzz({.gradients = true}, {}), 0); }

}  // namespace
}  // namespace sinter::fuzz
