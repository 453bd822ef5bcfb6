#include "sinter/engine/device/make_step.h"

#include "sinter/engine/device/device_engine.h"

namespace sinter {

std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                        std::span<const TensorImpl* const> outputs, Device device) {
  return engine_of(device).make_step(attrs, inputs, outputs);
}

}  // namespace sinter
