#pragma once
// Ops that a kernel by hand, or a library, takes whole: for each kind of device a list (DeviceEngine::op_kernels).
#include "sinter/engine/eager/eager.h"

namespace sinter::eager {

struct OpKernel {
  std::string_view op;
  Template run;
  const char* name;  // for people: "gemm", "attention"
};

std::vector<OpKernel> joined(std::initializer_list<std::span<const OpKernel>> lists);

// Null where there is none.
const OpKernel* find_op_kernel(const Op& op, DeviceType device);

}  // namespace sinter::eager
