// A part of the node cases of the onnx wheel (tests/data/onnx/cases.pb, by tools/record_onnx_cases.py). All of them are run by
// tools/onnx_cases.
#include "tests/interop/onnx/cases.h"

#include <gtest/gtest.h>

namespace sinter::testing {
namespace {

void check_all(bool compiled) {
  const auto known = read_known_cases(SINTER_TEST_DATA "/onnx/known_cases.txt");
  int right = 0;
  check_cases(SINTER_TEST_DATA "/onnx/cases.pb", "", compiled, [&](const CaseResult& result) {
    const bool is_right = result.verdict == CaseVerdict::kRight;
    // The bits of a tensor as another type are looked at eagerly alone.
    if (compiled && result.name.starts_with("test_bitcast")) return;
    EXPECT_EQ(is_right, !known.contains(result.name)) << result.name << ": " << result.message;
    right += is_right;
  });
  EXPECT_GT(right, 150);
}

TEST(OnnxCases, AreRightEagerly) { check_all(false); }
TEST(OnnxCases, AreRightCompiled) { check_all(true); }

}  // namespace
}  // namespace sinter::testing
