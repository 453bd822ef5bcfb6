#pragma once
// What the shares of activation_memory would come to for a segment: how much its gradients keep, and what computing the rest
// again takes.
#include "sinter/capture/compiler.h"
#include "sinter/capture/segment.h"

namespace sinter::capture {

// Empty where the segment has no gradients.
std::vector<Explanation::Activations> activations_of(const Segment& segment);

}  // namespace sinter::capture
