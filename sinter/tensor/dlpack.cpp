#include "sinter/tensor/dlpack.h"

#include "sinter/base/error.h"
#include "sinter/tensor/dlpack_exchange.h"
#include "sinter/tensor/tracer.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

using namespace dlpack;

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80,
              "the layout of the DLPack ABI");

DLDataType to_type(DType d) {
  auto bits = uint8_t(8 * item_size(d));
  if (d == kBool) return {kDLBool, bits, 1};
  if (d == kUInt8) return {kDLUInt, bits, 1};
  if (d == kBFloat16) return {kDLBfloat, bits, 1};
  if (is_complex(d)) return {kDLComplex, bits, 1};
  return {is_floating(d) ? kDLFloat : kDLInt, bits, 1};
}

DType from_type(DLDataType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DLDataType ours = to_type(DType(i));
    if (ours.code == type.code && ours.bits == type.bits && type.lanes == 1) return DType(i);
  }
  throw_error(format("from_dlpack: elements of type code {}, {} bits, {} lanes are not supported", type.code, type.bits,
                     type.lanes));
}

DeviceCode code_of(DeviceType type) { return type == kCPU ? kDLCPU : type == kCUDA ? kDLCUDA : kDLROCM; }

Device from_device(DLDevice device) {
  check(device.device_id >= 0 && device.device_id < 128, "from_dlpack: device number {} is out of range",
        device.device_id);
  for (DeviceType type : kDeviceTypes)
    if (code_of(type) == device.device_type) return Device(type, type == kCPU ? 0 : device.device_id);
  throw_error(format("from_dlpack: device type {} is not supported", int(device.device_type)));
}

// What an exported tensor keeps alive.
template <class Managed>
struct Export {
  Tensor tensor;
  IntList sizes, strides;
  Managed managed;
};

template <class Managed>
Managed* exported(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  check(!impl.traced, "to_dlpack: the tensor is a value of a graph being captured and has no memory");
  auto* out = new Export<Managed>{tensor, impl.sizes, impl.strides, {}};
  out->managed.dl_tensor = {impl.buffer->data(),
                            {code_of(impl.device.type()), impl.device.index()},
                            int32_t(impl.sizes.size()),
                            to_type(impl.dtype),
                            out->sizes.data(),
                            out->strides.data(),
                            uint64_t(impl.offset * item_size(impl.dtype))};
  out->managed.manager_ctx = out;
  out->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  return &out->managed;
}

// Elements between the first and the last, both included.
int64_t span_of(const IntList& sizes, const IntList& strides) {
  int64_t span = 1;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    check(strides[d] >= 0, "from_dlpack: a stride is negative: {}", strides);
    int64_t length = 0;
    overflow |=
        __builtin_mul_overflow(sizes[d] - 1, strides[d], &length) || __builtin_add_overflow(span, length, &span);
  }
  check(!overflow && span < int64_t(1) << 59, "from_dlpack: sizes {} with strides {} overflow the address space", sizes,
        strides);
  return span;
}

// A tensor on the memory of `t`; `release` is called when it is not used any more.
Tensor view_of(const DLTensor& t, std::function<void()> release) {
  check(t.ndim >= 0 && t.ndim <= 64, "from_dlpack: {} dimensions are not supported", t.ndim);
  check(t.ndim == 0 || t.shape, "from_dlpack: the sizes are missing");
  DType dtype = from_type(t.dtype);
  Device device = from_device(t.device);
  IntList sizes(std::span<const int64_t>(t.shape, size_t(t.ndim)));
  int64_t numel = checked_numel("from_dlpack", sizes);
  IntList strides =
      t.strides ? IntList(std::span<const int64_t>(t.strides, size_t(t.ndim))) : contiguous_strides(sizes);
  int64_t item = item_size(dtype), elements = numel == 0 ? 0 : span_of(sizes, strides);
  auto* data = static_cast<char*>(t.data) + (t.data ? t.byte_offset : 0);
  check(data || numel == 0, "from_dlpack: the data pointer is null, the shape is {}", sizes);
  const int64_t alignment = item_size(real_dtype(dtype));
  check(uintptr_t(data) % uintptr_t(alignment) == 0, "from_dlpack: the data is not aligned to the {} bytes of {}", alignment,
        real_dtype(dtype));

  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = dtype;
  impl->device = device;
  impl->numel = numel;
  impl->contiguous = has_format(sizes, strides, MemoryFormat::kContiguous);
  impl->sizes = std::move(sizes);
  impl->strides = std::move(strides);
  impl->buffer = make_intrusive<Buffer>(data, size_t(elements * item), device, std::move(release));
  return Tensor(std::move(impl));
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& given) {
  auto* tracer = Tracer::current();
  Tensor tensor = given;
  if (tracer && tracer->answers())
    tensor = Tensor(IntrusivePtr<TensorImpl>::share(const_cast<TensorImpl*>(&tracer->memory_of(given, "to_dlpack"))));
  return exported<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* dlpack::to_versioned(const Tensor& tensor) {
  auto* out = exported<DLManagedTensorVersioned>(tensor);
  out->version = kDLPackVersion;
  out->flags = 0;
  return out;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  check(managed != nullptr, "from_dlpack: the pointer is null");
  std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* m) {
    if (m->deleter) m->deleter(m);
  });
  return view_of(managed->dl_tensor, [owner] {});
}

Tensor dlpack::borrow(const DLTensor& lent) { return view_of(lent, {}); }

}  // namespace sinter
