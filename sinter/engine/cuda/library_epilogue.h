#pragma once
// What follows a product, where the library does it: its sums begin with a tensor of the result's shape, or with a row that
// is added to each, and end as they are or cut off at zero.
#include <optional>
#include <span>

#include "sinter/engine/step/contraction_parts.h"

namespace sinter {

struct LibraryEpilogue {
  int added = -1;  // positions among the node's operands; -1: there is none
  int bias = -1;
  bool relu = false;
};

// Nothing where the body does more than that, or its operands lie otherwise. `n`: the columns of the product.
std::optional<LibraryEpilogue> library_epilogue(const ContractionParts::Inner& follow, int64_t n,
                                                std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs);

}  // namespace sinter
