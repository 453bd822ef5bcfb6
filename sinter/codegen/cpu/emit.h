#pragma once
// The CPU dialect: a scheduled LoopNest → C++ text with explicit vectors, against the prelude in this folder.
#include <string>

#include "sinter/loops/schedule.h"

namespace sinter::codegen {

struct KernelText {
  std::string text;
};

// A kernel is `extern "C" void name(const long* a, long begin, long end)`. Slots of `a`: one per operand (a pointer, or a
// number as the bits of a double or i64), one per parameter of the nest, and last a pointer to an error cell: an index out of
// range stores 1, the index and the extent there, and reads element 0 instead. [begin, end) runs over the range of the
// schedule, its axes flattened.
//
// A nest with `tiles` is called on each finished piece of a contraction's result instead:
// `void name(const long* a, void* const* tiles, long row, long col, long rows, long cols, long stride)`.
KernelText emit_cpu(const LoopNest& nest, const Schedule& schedule, const std::string& name);

// The text that every source of kernels starts with. `lanes` is the vector width in 32-bit elements: 16, 8 or 4.
const std::string& cpu_prelude(int lanes);

}  // namespace sinter::codegen
