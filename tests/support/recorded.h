#pragma once
// The calls whose results PyTorch has recorded in tests/data/recorded/ops.safetensors. The tool that asks PyTorch and
// the test that compares both take them from here.
#include "tests/support/samples.h"

namespace sinter::testing {

struct RecordedCase {
  std::string name;  // "add/f32/0"; result i is recorded as "add/f32/0/i"
  Sample sample;
};

// Every f32 sample of the op; of the i64 and bool ones the first, or all where the op refuses f32; for a few ops of two
// operands also calls of mixed dtypes.
std::vector<RecordedCase> recorded_cases(const Op& op);

// Changes when a case or a value of an operand does: a recording that carries another digest is stale.
std::string digest_of(const std::vector<RecordedCase>& cases);

}  // namespace sinter::testing
