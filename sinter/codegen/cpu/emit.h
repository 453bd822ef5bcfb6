#pragma once
// The CPU dialect: LoopNest → C++ text with explicit vectors, against the prelude in this folder.
#include <string>

#include "sinter/loops/fused.h"
#include "sinter/loops/loop_nest.h"
#include "sinter/loops/schedule.h"

namespace sinter::codegen {

// A kernel is `extern "C" void name(const long* a, long begin, long end)`. Slots of `a`: one per operand (a pointer, or a
// number as the bits of a double or i64), one per LoopNest::params(), and last a pointer to an error cell: an index out of
// range stores 1, the index and the extent there, and reads element 0 instead.
//
// [begin, end) runs over the parallel axes flattened; where `split_last` holds, without the last of them.
struct KernelText {
  std::string text;
  bool split_last = false;
  int lanes_per_step = 1;  // pieces of the range should be a multiple of this many vectors
  bool rows_in_lanes = false;  // pieces of the range should be a multiple of the lanes of a vector
};

KernelText emit_cpu(const LoopNest& nest, const Schedule& schedule, const std::string& name);
// A fused kernel: [begin, end) runs over its rows, or over the inner axis where there are none and nothing is reduced.
KernelText emit_cpu(const FusedNest& nest, const std::string& name);

// The text that every source of kernels starts with. `lanes` is the vector width in 32-bit elements: 16, 8 or 4.
const std::string& cpu_prelude(int lanes);

}  // namespace sinter::codegen
