#pragma once
// Small helpers on sizes and coordinates, shared by the families that rearrange or index elements.
#include "sinter/graph/element.h"
#include "sinter/tensor/shape.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// a <= b as far as the expressions tell; where symbols leave it open, what a tracer that knows their values answers, which
// becomes a guard. Rebuilding a graph with symbolic sizes needs no tracer: it is true then.
inline bool possibly_le(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.is_number()) return difference.number() <= 0;
  auto* tracer = Tracer::current();
  return !tracer || !tracer->answers() || a <= b;
}

// A copy of a Shape or Index with one entry replaced, removed or put in before position `at`.
template <class List>
List replaced(List list, int64_t at, const Dim& value) {
  list[size_t(at)] = value;
  return list;
}
template <class List>
List removed(const List& list, int64_t at) {
  List out;
  for (size_t d = 0; d < list.size(); ++d)
    if (int64_t(d) != at) out.push_back(list[d]);
  return out;
}
template <class List>
List inserted(const List& list, int64_t at, const Dim& value) {
  List out;
  for (size_t d = 0; d <= list.size(); ++d) {
    if (int64_t(d) == at) out.push_back(value);
    if (d < list.size()) out.push_back(list[d]);
  }
  return out;
}

// Dimensions wrapped, in the order given; a duplicate is an Error.
IntList wrap_dims(const char* op, const IntList& dims, int64_t rank);

// 0, 1, … along a dimension of x, of size 1 along the others.
Tensor positions_along(const Tensor& x, int64_t dim);

// Coordinates of an operand of `shape` that is broadcast, right-aligned, to coordinates `i`.
Index broadcast_index(const Shape& shape, std::span<const Dim> i);

}  // namespace sinter
