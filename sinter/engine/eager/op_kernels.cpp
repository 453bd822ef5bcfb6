#include "sinter/engine/eager/op_kernels.h"

#include <array>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/passes/target_kernels.h"

namespace sinter::eager {

namespace {

using ByOp = std::unordered_map<const Op*, OpKernel>;

ByOp by_op(DeviceType device) {
  ByOp out;
  for (auto& kernel : engine_of(Device(device)).op_kernels()) {
    const Op* op = find_op(kernel.op);
    SINTER_INTERNAL_ASSERT(op, "there is a kernel for {}, which is no op", kernel.op);
    bool fresh = out.emplace(op, kernel).second;
    SINTER_INTERNAL_ASSERT(fresh, "there are two kernels for {}", kernel.op);
  }
  return out;
}

}  // namespace

const OpKernel* find_op_kernel(const Op& op, DeviceType device) {
  static const auto known = [] {
    std::array<ByOp, std::size(kDeviceTypes)> all;
    for (DeviceType type : kDeviceTypes) all[size_t(type)] = by_op(type);
    return all;
  }();
  auto& kernels = known[size_t(device)];
  auto it = kernels.find(&op);
  return it == kernels.end() ? nullptr : &it->second;
}

Template find_template(const Op& op, Device device) {
  auto* kernel = find_op_kernel(op, device.type());
  return kernel ? kernel->run : nullptr;
}

const char* template_name(const Op& op, Device device) {
  auto* kernel = find_op_kernel(op, device.type());
  return kernel ? kernel->name : nullptr;
}

bool has_own_kernel(const OpCall& call) {
  Device device;
  for (auto& type : call.inputs)
    if (!type.weak && type.device != Device()) device = type.device;
  return takes_whole(engine_of(device).target(), call);
}

}  // namespace sinter::eager
