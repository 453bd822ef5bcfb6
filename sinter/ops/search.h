#pragma once
// What the sort family shares with those who take its ops whole: attributes, and the part of its list that search.cpp holds.
// Users include sort.h.
#include "sinter/graph/attrs.h"
#include "sinter/ops/registry.h"

namespace sinter {

struct SortAttrs {
  int64_t dim = -1;
  bool descending = false;
  SINTER_FIELDS(dim, descending)
};

struct TopkAttrs {
  Dim k = 1;
  int64_t dim = -1;
  bool largest = true;
  SINTER_FIELDS(k, dim, largest)
};
// How many elements are taken along the dimension. A single number is its own first, whatever k is.
inline int64_t count_of(const TopkAttrs& a, int64_t rank) { return rank > 0 ? a.k.number() : 1; }

struct SearchAttrs {
  bool right = false;
  SINTER_FIELDS(right)
};

OpFamily search_ops();

}  // namespace sinter
