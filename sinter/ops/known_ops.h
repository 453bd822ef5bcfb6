#pragma once
// The ops that passes, lowering and the engine know by name: looked up here, once.
#include <optional>

#include "sinter/graph/graph.h"

namespace sinter {

struct KnownOps {
  // Arithmetic and logic.
  const Op &add, &sub, &mul, &div, &pow, &neg, &abs, &reciprocal, &relu;
  const Op &eq, &ne, &lt, &le, &logical_and, &logical_or, &logical_xor, &logical_not;
  const Op &bitwise_and, &bitwise_or, &bitwise_xor, &bitwise_not, &where;
  // Copies and conversions.
  const Op &clone, &cast, &cat, &repeat, &full, &arange, &constant_pad_nd;
  // Views.
  const Op &alias, &view, &permute, &expand, &squeeze, &unsqueeze, &slice, &select, &as_strided, &view_as_real, &view_as_complex;
  const Op &write, &gather, &sum, &mm, &bmm, &cond, &while_loop;

  // Whether exchanging the two operands gives the same bits. (maximum is none of these: -0.0 and 0.0 are equal to it.)
  bool is_commutative(const Op& op) const;
  // Whether the view keeps all elements in row-major order, so that only the shapes at both ends matter.
  bool is_reshape(const Op& op) const;
  // The same of a view with the shapes it has: also one that takes, or repeats, the whole. Others of as many elements (a
  // permutation, windows, a view by strides) may show them elsewhere, whatever their shapes.
  bool keeps_order(const Node& view) const;
};

const KnownOps& known_ops();

// Whether the node puts two values side by side along a new last dimension: the parts of complex numbers.
bool joins_pairs(const Node& node);

// The number that every element of the value has, if it is a plain number or a tensor made from one: in the value's own
// dtype, so that full(1.5) of i64 is 1.
std::optional<Scalar> constant_of(Value value);
// The one element of an array, rounded to the array's dtype.
Scalar to_scalar(const Array& array);

}  // namespace sinter
