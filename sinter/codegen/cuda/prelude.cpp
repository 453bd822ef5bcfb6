#include "sinter/codegen/cuda/prelude.h"

#include "sinter_embedded.h"

namespace sinter::codegen {

const std::string& cuda_prelude() {
  static const std::string text = std::string(embedded::gpu_types) + embedded::gpu_math + embedded::gpu_kernel;
  return text;
}

}  // namespace sinter::codegen
