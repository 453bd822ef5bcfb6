#pragma once
// Pools over the last one to three dimensions on the CPU. A ConvShape's `images` are planes, its channels and filters
// are 1; `out` may reach beyond the padding, as ceil_mode has it. Operands and results are row-major and of one type.
#include "sinter/runtime/cpu/conv/conv.h"

namespace sinter::runtime {

// The largest element of each window, NaN if there is one; padding never wins.
void max_pool(const ConvShape& shape, const void* x, GemmType type, void* out, CpuIsa isa = best_cpu_isa());
// Where it is, row-major in the plane; of several the first. In a window of nothing but -inf the first real element.
void max_pool_indices(const ConvShape& shape, const void* x, GemmType type, int64_t* out, CpuIsa isa = best_cpu_isa());

// The gradient of the maxima: out[images, in], each element the sum of grad[images, out] over the windows that hold it and whose
// index is its place. The kernel is a window's reach, dilation included.
void max_pool_grad(const ConvShape& shape, const void* grad, const int64_t* indices, GemmType type, void* out);

// The sum of each window, padding counting zero: out[images, out] from x[images, in].
void window_sum(const ConvShape& shape, const void* x, GemmType type, void* out, CpuIsa isa = best_cpu_isa());
// The reverse: out[images, in], each element the sum of the x[images, out] whose windows hold it.
void window_sum_transposed(const ConvShape& shape, const void* x, GemmType type, void* out,
                           CpuIsa isa = best_cpu_isa());

}  // namespace sinter::runtime
