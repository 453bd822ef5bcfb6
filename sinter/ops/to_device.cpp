#include "sinter/ops/to_device.h"

#include "sinter/graph/interpreter.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

struct ToDeviceAttrs {
  Device device;
  bool non_blocking = false;
  SINTER_FIELDS(device, non_blocking)
};

struct ToDevice : Opaque {
  static constexpr auto name = "to_device";
  using Attributes = ToDeviceAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    Type type = call.inputs[0];
    type.device = call.as<ToDeviceAttrs>().device;
    return {type};
  }
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor from = inputs[0].contiguous();
    auto& to = attrs.as<ToDeviceAttrs>();
    Tensor out = empty(from.sizes(), from.options().device(to.device));
    size_t bytes = size_t(from.impl().numel * item_size(from.dtype()));
    if (bytes) copy_bytes(out.data_ptr(), out.device(), from.data_ptr(), from.device(), bytes, to.non_blocking);
    return {out};
  }
  static void interpret(InterpretCall& c) { c.outputs[0] = *c.inputs[0]; }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return to_device(c.grad(), c[0].tensor().device()); });
  }
  static TensorList on_complex(const ComplexCall& c) {
    return {view_as_complex(call<ToDevice>({view_as_real(c[0])}, c.attrs))};
  }
  SINTER_SAMPLES("x[2, 3] | device=cpu", "i64[4] | device=cpu", "x[] | device=cpu")
};

}  // namespace

Tensor to_device(const TensorArg& x, Device device, bool non_blocking) {
  UserPosition here(x.where());
  if (x.tensor().device() == device) return x.tensor();
  check_available(device);
  return call<ToDevice>({x}, ToDeviceAttrs{device, non_blocking});
}

Tensor Tensor::pin_memory(Device device, Where where) const {
  UserPosition here(where);
  check(this->device().is_cpu(), "pin_memory: the tensor is on {}; only host memory is page-locked", this->device());
  if (Tracer::current()) return *this;
  Allocator* allocator = pinned_allocator_for(device);
  const size_t bytes = size_t(impl().numel * element_size());
  if (!allocator || bytes == 0) return *this;
  void* data = allocator->allocate(bytes);
  Tensor pinned = from_blob(data, sizes(), dtype(), [=] { allocator->release(data, bytes); });
  copy_packed(*this, data);
  return pinned;
}

OpFamily device_ops() {
  static const Op* const ops[] = {&op_of<ToDevice>};
  return ops;
}

}  // namespace sinter
