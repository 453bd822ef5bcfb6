#pragma once
// The pads, as the part of the layout family's list that pad.cpp holds. Users include layout.h.
#include "sinter/ops/registry.h"

namespace sinter {

OpFamily pad_ops();

}  // namespace sinter
