#pragma once
// Operators whose samples are not right or not taken, by the reason. The list may only shrink.
#include <string>
#include <vector>

namespace sinter::testing {

struct KnownOperators {
  const char* reason;
  std::vector<std::string> operators;
};

inline const std::vector<KnownOperators> kKnownOperators = {
    {"PyTorch's gradients of the part that is replaced and of the rest are interchanged", {"as_strided_scatter"}},
    {"PyTorch gives gradients to the triangle that is not read", {"cholesky_inverse"}},
    {"6e-16 where PyTorch, which subtracts from 1, gives 0", {"special.ndtr"}},
};

}  // namespace sinter::testing
