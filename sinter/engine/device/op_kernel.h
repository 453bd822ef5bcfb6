#pragma once
// An op that a kernel by hand, or a library, takes whole: each kind of device has a list of them (DeviceEngine::op_kernels).
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "sinter/graph/op.h"

namespace sinter {

// Runs it, into `out` where that is given, when there is a kernel for these operands.
using Template = bool (*)(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out,
                          TensorList& outputs);

struct OpKernel {
  std::string_view op;
  Template run;
  const char* name;  // for people: "gemm", "attention"
};

inline std::vector<OpKernel> joined(std::initializer_list<std::span<const OpKernel>> lists) {
  std::vector<OpKernel> out;
  for (auto& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace sinter
