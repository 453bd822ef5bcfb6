#pragma once
// The text form of an op applied to something: "x[2, 3], i64[4]<3, 0.5 | dim=1". Ops list their test samples in it, and
// `sinter show` takes it from the command line.
#include <optional>
#include <string_view>
#include <vector>

#include "sinter/graph/attrs.h"

namespace sinter {

struct SampleText {
  struct Operand {
    bool scalar = false;
    Scalar number = 0;           // when scalar
    std::optional<DType> dtype;  // none for `x`: the dtype under test
    IntList sizes;
    int64_t below = 0;  // integers in [0, below) when given
  };
  std::vector<Operand> operands;
  FieldTexts attributes;
};

// An Error names the part that was not understood.
SampleText parse_sample(std::string_view text);

}  // namespace sinter
