#include "sinter/codegen/cuda/prelude.h"

#include "sinter/codegen/gpu/emit.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

const std::string& cuda_prelude() {
  static const std::string text = gpu_prelude(kCudaTarget, embedded::cuda_dialect);
  return text;
}

}  // namespace sinter::codegen
