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

struct SearchAttrs {
  bool right = false;
  SINTER_FIELDS(right)
};

OpFamily search_ops();

}  // namespace sinter
