#pragma once
// Convolutions and pools as the runtime's kernels take them.
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/conv/conv.h"

namespace sinter::eager {

// Of the op `convolution`, at known sizes. A transposed one is a convolution from its result to its input.
runtime::ConvShape conv_shape(const ConvolutionAttrs& attrs, const IntList& x, const IntList& weight,
                              const IntList& out);
// The geometry of a tensor of a type that GEMM cores take; without an address.
runtime::ConvOperand conv_operand(const TensorImpl& t);
// Whether a weight lies without gaps, the channels of each tap side by side, as a channels-last one does.
bool is_taps_first(const IntList& sizes, const IntList& strides);
// Runs either direction; `weight` is row-major or taps first, `out` row-major.
void run_convolution(const ConvolutionAttrs& attrs, const runtime::ConvShape& shape, const runtime::ConvOperand& x,
                     const void* weight, runtime::GemmType weight_type, bool taps_first, void* out, runtime::GemmType out_type,
                     const runtime::Epilogue* epilogue = nullptr);

}  // namespace sinter::eager
