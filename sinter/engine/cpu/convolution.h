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
// Runs either direction; `weight` and `out` are row-major.
void run_convolution(const ConvolutionAttrs& attrs, const runtime::ConvShape& shape, const runtime::ConvOperand& x,
                     const void* weight, runtime::GemmType weight_type, void* out, runtime::GemmType out_type,
                     const runtime::Epilogue* epilogue = nullptr);


}  // namespace sinter::eager
