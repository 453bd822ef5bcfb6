#pragma once
// Which nests a thread takes in vectors of neighbours, and what has to hold for one vector.
#include "sinter/codegen/value_text.h"
#include "sinter/loops/fused.h"

namespace sinter::codegen {

// Vectors need neighbours in memory along the last inner axis. A condition may change along it where it is an interval of
// its places; everything else must be the same for all lanes.
bool lanes_fit(const FusedNest& nest);
// Lanes: eight where most of what is moved has two bytes or less, so that an access has 16.
int lane_width(const FusedNest& nest);

// " && …": every access in vectors has an address that allows it. `taken`: only those whose conditions hold count, where
// all lanes are alike.
std::string fits_text(const FusedNest& nest, const Sweep& s, bool taken);
// " && …": every condition has one outcome for all lanes; empty where no condition changes along them.
std::string alike_text(const FusedNest& nest, const Sweep& s);

}  // namespace sinter::codegen
