#pragma once
// Pieces of the view family that other files of ops/ use: row-major positions, ranges, and the op `view` itself.
#include "sinter/ops/registry.h"

namespace sinter {

// Coordinates in a row-major tensor of this shape of its element number `position`.
Index unravel(const Dim& position, const Shape& shape);

// A diagonal: coordinates start1 + j and start2 + j along two dimensions, for j < length.
struct DiagonalRange {
  int64_t dim1, dim2, start1, start2;
  Dim length;
  static DiagonalRange of(const char* op, const Shape& shape, int64_t offset, int64_t dim1, int64_t dim2);
};

// 0 <= start <= stop <= size, from positions that count from the end when negative and are clamped.
struct SliceRange {
  Dim start, stop;
  static SliceRange of(const Dim& size, std::optional<Dim> start, std::optional<Dim> stop);
};

// 1-d i64: offset + sum of coordinate * stride, for every coordinate of `sizes` in row-major order.
Tensor strided_positions(const Shape& sizes, const IntList& strides, int64_t offset, const Tensor& like);
// One past the last element that these strides reach.
int64_t strided_span(std::span<const int64_t> sizes, std::span<const int64_t> strides);

// The op `view`, and the ops of slice.cpp, for the family's list.
const Op& reshape_op();
OpFamily slice_ops();

}  // namespace sinter
