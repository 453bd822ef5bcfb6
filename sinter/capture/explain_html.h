#pragma once
// Explanations as a page to look at (Explanation::html): one file without scripts, fonts or pictures from elsewhere.
#include <span>
#include <string>

#include "sinter/capture/compiler.h"

namespace sinter::capture {

// One page of all of them. It can be read without scripts; the script that it has sorts and filters kernels.
std::string explanation_page(std::span<const Explanation> explanations);

// Under SINTER_DEBUG the page of this function, in its directory; nothing otherwise.
void write_debug_page(const Function& function);

}  // namespace sinter::capture
