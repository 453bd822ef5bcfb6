#include "sinter/engine/eager/op_kernels.h"

#include <array>
#include <unordered_map>

#include "sinter/base/error.h"

namespace sinter::eager {

namespace {

constexpr size_t kDevices = 2;

// Filled while the library is loaded.
std::vector<std::pair<DeviceType, OpKernel>>& registered() {
  static std::vector<std::pair<DeviceType, OpKernel>> all;
  return all;
}

using ByOp = std::unordered_map<const Op*, OpKernel>;

std::array<ByOp, kDevices> by_device() {
  std::array<ByOp, kDevices> out;
  for (auto& [device, kernel] : registered()) {
    const Op* op = find_op(kernel.op);
    SINTER_INTERNAL_ASSERT(op, "a kernel is registered for {}, which is no op", kernel.op);
    bool fresh = out[size_t(device)].emplace(op, kernel).second;
    SINTER_INTERNAL_ASSERT(fresh, "two kernels are registered for {}", kernel.op);
  }
  return out;
}

}  // namespace

RegisterOpKernel::RegisterOpKernel(DeviceType device, OpKernel kernel) { registered().emplace_back(device, kernel); }

const OpKernel* find_op_kernel(const Op& op, DeviceType device) {
  static const auto known = by_device();
  auto it = known[size_t(device)].find(&op);
  return it == known[size_t(device)].end() ? nullptr : &it->second;
}

Template find_template(const Op& op, Device device) {
  auto* kernel = find_op_kernel(op, device.type);
  return kernel ? kernel->run : nullptr;
}

IntList template_strides(const Op& op, Device device, const IntList& sizes) {
  auto* kernel = find_op_kernel(op, device.type);
  return kernel && kernel->strides ? kernel->strides(sizes) : contiguous_strides(sizes);
}

const char* template_name(const Op& op, Device device) {
  auto* kernel = find_op_kernel(op, device.type);
  return kernel ? kernel->name : nullptr;
}

bool takes_whole(const OpCall& call) {
  Device device;
  for (auto& type : call.inputs)
    if (!type.weak && type.device != Device()) device = type.device;
  auto* kernel = find_op_kernel(call.op, device.type);
  return kernel && kernel->takes && kernel->takes(call);
}

}  // namespace sinter::eager
