#pragma once
// An op whose own kernel a toolchain refuses: there is nothing smaller, so the referee computes it, on the host.
#include "sinter/engine/eager/eager.h"
#include "sinter/runtime/refusal.h"

namespace sinter::eager {

// As run_pointwise and the others take it. Far slower than any kernel, of which a warning tells; under SINTER_STRICT, and while
// a CUDA graph is recorded, an Error with the op and its operands.
Tensor run_by_referee(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out,
                      const runtime::Refused& refusal);

template <class Run>
Tensor or_by_referee(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out,
                     Run&& run) {
  try {
    return run();
  } catch (const runtime::Refused& refusal) {
    return run_by_referee(op, inputs, attrs, out, refusal);
  }
}

}  // namespace sinter::eager
