#pragma once
// Ops that a kernel by hand, or a library, takes whole: for each kind of device a list (DeviceEngine::op_kernels).
#include "sinter/engine/eager/eager.h"

namespace sinter::eager {

struct OpKernel {
  std::string_view op;
  Template run;
  const char* name;  // for people: "gemm", "attention"
  // Of composites: whether it takes all operands of these types, whatever their memory looks like.
  bool (*takes)(const OpCall& call) = nullptr;
  // Of the result, where they are better than row-major ones.
  IntList (*strides)(const IntList& sizes) = nullptr;
  Preparation prepare = nullptr;
};

std::vector<OpKernel> joined(std::initializer_list<std::span<const OpKernel>> lists);

// Null where there is none.
const OpKernel* find_op_kernel(const Op& op, DeviceType device);

}  // namespace sinter::eager
