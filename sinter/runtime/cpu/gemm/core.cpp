#include "sinter/runtime/cpu/gemm/core.h"

#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::runtime::gemm_detail {

#if defined(__x86_64__)

const GemmCore<float>* core_f32(CpuIsa isa) {
  return isa == CpuIsa::kAvx512   ? avx512_core_f32()
         : isa == CpuIsa::kAvx2   ? avx2_core_f32()
         : isa == CpuIsa::kScalar ? scalar_core_f32()
                                  : nullptr;
}
const GemmCore<double>* core_f64(CpuIsa isa) {
  return isa == CpuIsa::kAvx512   ? avx512_core_f64()
         : isa == CpuIsa::kAvx2   ? avx2_core_f64()
         : isa == CpuIsa::kScalar ? scalar_core_f64()
                                  : nullptr;
}

#else

const GemmCore<float>* core_f32(CpuIsa isa) {
  return isa == CpuIsa::kNeon ? neon_core_f32() : isa == CpuIsa::kScalar ? scalar_core_f32() : nullptr;
}
const GemmCore<double>* core_f64(CpuIsa isa) {
  return isa == CpuIsa::kNeon ? neon_core_f64() : isa == CpuIsa::kScalar ? scalar_core_f64() : nullptr;
}

#endif

}  // namespace sinter::runtime::gemm_detail
