#pragma once
// What has to hold for one vector of neighbours.
#include "sinter/codegen/value_text.h"

namespace sinter::codegen {

// " && …": every access in vectors has an address that allows it. `taken`: only those whose conditions hold count, where
// all lanes are alike.
std::string fits_text(const LoopNest& nest, const Sweep& s, bool taken);
// " && …": every condition has one outcome for all lanes; empty where no condition changes along them.
std::string alike_text(const LoopNest& nest, const Sweep& s);

}  // namespace sinter::codegen
