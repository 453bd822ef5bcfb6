#pragma once
// The instruction sets that this machine has kernels for.
#include <vector>

#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime {

inline std::vector<CpuIsa> available_isas() {
  std::vector<CpuIsa> isas;
  for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512})
    if (cpu_supports(isa)) isas.push_back(isa);
  return isas;
}

}  // namespace sinter::runtime
