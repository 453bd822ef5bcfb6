#pragma once
// DLPack as programs exchange it call by call: tensors that are lent for the time of a call, and the managed form of DLPack 1.
#include <cstdint>

#include "sinter/tensor/dlpack.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

namespace dlpack {

struct DLPackVersion {
  uint32_t major, minor;
};

inline constexpr DLPackVersion kDLPackVersion = {1, 1};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

// A tensor on memory that is the caller's, who keeps it for as long as the tensor or a view of it is in use.
Tensor borrow(const DLTensor& lent);

// For another library, which calls its `deleter` once when done.
DLManagedTensorVersioned* to_versioned(const Tensor& tensor);

}  // namespace dlpack

}  // namespace sinter
