#pragma once
// The kinds of reader that a value can have in a program.
#include <optional>
#include <string>
#include <vector>

#include "tests/pairs/stages.h"

namespace sinter::pairs {

struct Consumer {
  std::string name;
  // What it reads beside a value of this dtype and these sizes, drawn from `seed`; nothing where it does not take such a
  // value. Sizes that only the data knows are -1.
  std::function<std::optional<std::vector<Array>>(DType dtype, const IntList& sizes, uint64_t seed)> others;
  std::function<Tensor(const Tensor& value, const TensorList& others)> apply;
};

// All kinds: pointwise of each shape, reductions, products on either side, scatters and gathers, copies, casts to each dtype.
const std::vector<Consumer>& consumers();

// Numbers of the samples' domain, small integers, or indices below `below`.
Array numbers(DType dtype, const IntList& sizes, uint64_t seed, int64_t below = 0);

}  // namespace sinter::pairs
