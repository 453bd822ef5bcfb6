#pragma once
// Numbers that only the program knows (`item()`, a symbolic size) are tensors of one element while it is captured. A number
// takes less part in promotion than a tensor does: what an op gives of them must be what it gives when they are numbers.
#include "sinter/graph/op.h"

namespace sinter {

class LazyNumbers {
 public:
  // Gives such operands the type in which the op computes with plain numbers, where its results would be of other types.
  LazyNumbers(const Op& op, std::vector<TensorArg>& operands, const Attrs& attrs);
  // Gives the results their types.
  void finish(TensorList& results) const;

 private:
  std::vector<DType> dtypes_;  // of results; empty: as they are
};

}  // namespace sinter
