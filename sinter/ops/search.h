#pragma once
// nonzero, unique and searchsorted: the part of the sort family's list that search.cpp holds. Users include sort.h.
#include "sinter/ops/registry.h"

namespace sinter {

OpFamily search_ops();

}  // namespace sinter
