#pragma once
// Convolutions of one to three spatial dimensions on the CPU, above the GEMM cores and cores of their own, compiled
// ahead of time per instruction set and chosen at run time.
//
// f32, bf16 and f16 compute in f32 and round once at the store; f64 goes with f64 alone. Results depend on the shapes,
// the types and the instruction set, never on the number of threads. Denormals count as zero. A result is row-major and
// overlaps no operand. An epilogue sees the result as a matrix: a row is a plane, numbered image * (channels of the
// result) + channel, a column the row-major number of a spatial position.
#include <cstdint>

#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime {

// Fewer spatial dimensions are the last ones, behind dimensions of size 1, stride 1 and padding 0.
struct ConvShape {
  int64_t images = 1, groups = 1;
  int64_t channels = 1, filters = 1;  // of one group
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
};

// Strides count elements: batch, channels, three spatial dimensions. Any memory layout is read where it lies.
struct ConvOperand {
  const void* data;
  int64_t strides[5];
  GemmType type = GemmType::f32;
};

struct ConvOptions {
  const Epilogue* epilogue = nullptr;
  bool taps_first = false;  // the weight is no row-major one: of a filter, the channels of a tap lie side by side (channels last)
  CpuIsa isa = best_cpu_isa();
};

// out[images, groups * filters, out] from x[images, groups * channels, in] and the row-major
// weight[groups * filters, channels, kernel].
void convolution(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
                 GemmType out_type, const ConvOptions& options = {});

// The reverse: out[images, groups * channels, in] from x[images, groups * filters, out], each element of x added to
// everything that it would have been computed from. A transposed convolution, or the gradient of the input.
void convolution_transposed(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type,
                            void* out, GemmType out_type, const ConvOptions& options = {});

// The gradient of the weight: out[groups * filters, channels, kernel] from the input and the gradient of the result.
void convolution_weight_grad(const ConvShape& shape, const ConvOperand& x, const ConvOperand& grad, void* out,
                             GemmType out_type, const ConvOptions& options = {});

}  // namespace sinter::runtime
