#pragma once
// A weight that does not change, rearranged once for the GEMM cores and shared by all plans that read it.
#include <memory>

#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

struct PackedWeight {
  runtime::PackedB packed;
  BufferPtr source;
  uint32_t version;

  // Whether the weight still is what was packed: a promise not to change it may be broken.
  bool is_current() const { return source->version.load(std::memory_order_relaxed) == version; }
};

// Of a [k, n] view. Null for types that the cores do not take.
std::shared_ptr<const PackedWeight> pack_weight(const Tensor& weight);

}  // namespace sinter
