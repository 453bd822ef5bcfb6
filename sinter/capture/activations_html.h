#pragma once
// The part of an explanation's page that tells what less activation memory would come to.
#include <string>
#include <vector>

#include "sinter/capture/compiler.h"

namespace sinter::capture {

// Memory kept for gradients against the time of computing more again, a point for each share; nothing without points.
std::string activations_html(const std::vector<Explanation::Activations>& points);

}  // namespace sinter::capture
