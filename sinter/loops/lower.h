#pragma once
// Lowering: one application of an op → LoopNest, by running the op's definition with symbols for coordinates. fused.h does
// the same for a group of them.
#include "sinter/loops/loop_nest.h"

namespace sinter {

// Where the elements of an operand lie: one stride (number or symbol) a dimension, in elements.
struct Layout {
  bool scalar = false;  // a plain number, passed by value
  SmallVector<Dim, 6> strides;

  Dim offset_of(const Index& at) const;
};

// Row-major strides of a shape with symbolic sizes.
Layout contiguous_layout(const Shape& shape);

// What a combination adds up in, given the dtypes of a value and of the result.
DType accumulator_dtype(Combine combine, DType value, DType result);

// The nest of `call`, whose result has type `result`. `layouts` are those of the inputs, then of the output; `named` has what
// their symbols and those of sizes stand for.
// Only ops that are loops can be lowered: pointwise, view, loop, reduce, scatter, scan.
LoopNest lower(const OpCall& call, const Type& result, std::span<const Layout> layouts, const Parameters& named = {});

}  // namespace sinter
