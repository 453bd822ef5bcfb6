#pragma once
// Where windows of convolutions and pools lie: ONNX tells pads on both sides, or how they follow from the sizes.
#include "sinter/interop/onnx/operands.h"

namespace sinter::interop::onnx {

struct Windows {
  IntList kernel, stride, dilation;
  IntList low, high;  // pads of each spatial dimension

  int64_t rank() const { return int64_t(kernel.size()); }
  bool is_symmetric() const { return low == high; }
  // As pad() takes them: pairs from the last dimension on.
  Shape pairs() const;
  int64_t reach(size_t d) const { return dilation[d] * (kernel[d] - 1) + 1; }
};

// `sizes` are those of the operand; spatial dimensions are behind the first two.
Windows windows_of(const char* op, const Shape& sizes, const IntList& kernel, MaybeInts strides, MaybeInts dilations,
                   MaybeInts pads, Text auto_pad);

}  // namespace sinter::interop::onnx
