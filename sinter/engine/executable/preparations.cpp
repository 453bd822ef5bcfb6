#include "sinter/engine/executable/preparations.h"

#include <set>

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"

namespace sinter {

namespace {

// Tensors of a plan have no memory; what looks at addresses is shown one that is aligned as memory is.
Tensor with_address(const Tensor& geometry) {
  auto impl = make_intrusive<TensorImpl>(geometry.impl());
  void* nowhere = reinterpret_cast<void*>(uintptr_t(1) << 20);
  impl->buffer = make_intrusive<Buffer>(nowhere, size_t(0), impl->device, [] {});
  return Tensor(std::move(impl));
}

// Steps of which this is the same run the same kernel.
std::string key_of(const Plan& plan, const Step& step) {
  std::string key = format("{} {}", step.op->name, step.attrs.text());
  auto add = [&](int slot) {
    auto& t = plan.slots[size_t(slot)].geometry.impl();
    key += format(" {}{}*{}", t.dtype, t.sizes, t.strides);
  };
  for (auto& o : step.inputs) o.slot < 0 ? void(key += " number") : add(o.slot);
  for (int slot : step.results) add(slot);
  return key;
}

}  // namespace

std::vector<std::function<void()>> preparations(const Plan& plan) {
  std::vector<std::function<void()>> tasks;
  std::set<std::string> seen;
  for (auto& step : plan.steps) {
    if (step.kind != Step::Kind::kKernel || !seen.insert(key_of(plan, step)).second) continue;
    tasks.push_back([&plan, &step] {
      std::vector<TensorArg> inputs;
      for (auto& o : step.inputs)
        inputs.push_back(o.slot < 0 ? TensorArg(o.number) : TensorArg(with_address(plan.slots[size_t(o.slot)].geometry)));
      try {
        eager::prepare(*step.op, inputs, step.attrs, with_address(plan.slots[size_t(step.results[0])].geometry));
      } catch (const Error&) {
      }
    });
  }
  return tasks;
}

}  // namespace sinter
