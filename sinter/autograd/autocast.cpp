#include "sinter/autograd/autograd.h"
#include "sinter/ops/autocast.h"

namespace sinter {

AutocastGuard::AutocastGuard(DeviceType device, DType dtype, bool enabled)
    : device_(device), before_(autocast::dtype_on(device)) {
  autocast::set(device, enabled ? std::optional(dtype) : std::nullopt);
}

AutocastGuard::~AutocastGuard() {
  autocast::set(device_, before_);
  if (!autocast::is_on()) forget_low_weights();
}

}  // namespace sinter
