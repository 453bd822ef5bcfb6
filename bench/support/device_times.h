#pragma once
// Times on a GPU, by its own clock.
#include <functional>

#include "bench/support/report.h"
#include "sinter/tensor/tensor.h"

namespace sinter::bench {

// One pass of a program on the first GPU.
using Pass = std::function<Tensor()>;

// Milliseconds between two events around each pass; the host runs ahead where it can.
Json device_times(const Pass& pass, int repeats);

}  // namespace sinter::bench
