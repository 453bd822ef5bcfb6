#pragma once
// Iteration geometry: sizes and per-operand strides, collapsed to as few axes as the memory layout allows. What
// PyTorch calls a TensorIterator.
#include <array>
#include <cstdint>

#include "sinter/tensor/shape.h"

namespace sinter::eager {

inline constexpr int kMaxOperands = 6, kMaxAxes = 12;

struct Geometry {
  int operands = 0, axes = 0;
  std::array<int64_t, kMaxAxes> sizes;
  std::array<std::array<int64_t, kMaxAxes>, kMaxOperands> strides;

  int64_t elements() const {
    int64_t n = 1;
    for (int d = 0; d < axes; ++d) n *= sizes[size_t(d)];
    return n;
  }
  void add_axis(int64_t size) { sizes[size_t(axes++)] = size; }
};

// Drops axes of size 1, orders axes by the strides of operand `leader` (largest first) when `reorder`, and joins
// neighbours that every operand walks as one. The result has at least one axis.
void collapse(Geometry& g, int leader, bool reorder);

}  // namespace sinter::eager
