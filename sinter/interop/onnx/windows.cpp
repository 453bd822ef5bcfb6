#include "sinter/interop/onnx/windows.h"

#include "sinter/base/error.h"

namespace sinter::interop::onnx {

Shape Windows::pairs() const {
  Shape out;
  for (size_t d = kernel.size(); d-- > 0;) {
    out.push_back(low[d]);
    out.push_back(high[d]);
  }
  return out;
}

Windows windows_of(const char* op, const Shape& sizes, const IntList& kernel, MaybeInts strides, MaybeInts dilations,
                   MaybeInts pads, Text auto_pad) {
  const size_t rank = kernel.size();
  const IntList ones(rank, 1), zeros(rank, 0);
  Windows out{.kernel = kernel, .stride = strides.value_or(ones), .dilation = dilations.value_or(ones), .low = zeros, .high = zeros};
  check(sizes.rank() == int64_t(rank) + 2, "{}: the operand is {}, its windows are {}", op, sizes, kernel);
  check(out.stride.size() == rank && out.dilation.size() == rank, "{}: strides {} and dilations {} of windows {}", op, out.stride,
        out.dilation, kernel);
  for (size_t d = 0; d < rank; ++d)
    check(kernel[d] > 0 && out.stride[d] > 0 && out.dilation[d] > 0, "{}: strides {} and dilations {} of windows {}", op, out.stride,
          out.dilation, kernel);
  if (auto_pad == "NOTSET") {
    if (!pads) return out;
    check(pads->size() == 2 * rank, "{}: {} pads for {} dimensions", op, pads->size(), rank);
    out.low = pads->slice(0, rank);
    out.high = pads->slice(rank);
    return out;
  }
  if (auto_pad == "VALID") return out;
  check(auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", "{}: there is no auto_pad '{}'", op, auto_pad);
  for (size_t d = 0; d < rank; ++d) {
    // As many windows as strides begin; without strides the sizes do not matter.
    int64_t all = out.reach(d) - 1;
    if (out.stride[d] > 1) {
      const int64_t size = sizes[d + 2], count = (size + out.stride[d] - 1) / out.stride[d];
      all = std::max<int64_t>((count - 1) * out.stride[d] + out.reach(d) - size, 0);
    }
    (auto_pad == "SAME_UPPER" ? out.low : out.high)[d] = all / 2;
    (auto_pad == "SAME_UPPER" ? out.high : out.low)[d] = all - all / 2;
  }
  return out;
}

}  // namespace sinter::interop::onnx
