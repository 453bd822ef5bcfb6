#pragma once
// Exchange of tensors with other libraries by DLPack, without copying. The structs have the layout of the stable DLPack
// ABI (up to version 0.8); a DLManagedTensor* may be passed to or taken from any library that speaks it, after a cast.
#include <cstdint>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

namespace dlpack {

enum DeviceCode : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLROCM = 10 };
enum TypeCode : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null for row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

}  // namespace dlpack

using dlpack::DLManagedTensor;

// A view for another library, which calls its `deleter` once when done; the memory lives at least until then.
DLManagedTensor* to_dlpack(const Tensor& tensor);

// A tensor on the memory of another library. Takes over `managed`: its deleter runs when the last view of the memory is
// gone, or at once when this throws because the element type, the device or the layout is not supported.
Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace sinter
