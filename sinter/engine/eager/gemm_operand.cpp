#include "sinter/engine/eager/gemm_operand.h"

namespace sinter::eager {

std::optional<runtime::GemmType> gemm_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return runtime::GemmType::f32;
    case DType::kFloat64: return runtime::GemmType::f64;
    case DType::kBFloat16: return runtime::GemmType::bf16;
    case DType::kFloat16: return runtime::GemmType::f16;
    default: return std::nullopt;
  }
}

}  // namespace sinter::eager
