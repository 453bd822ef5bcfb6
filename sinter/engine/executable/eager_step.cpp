#include "sinter/engine/executable/eager_step.h"

#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/kernel.h"
#include "sinter/runtime/refusal.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// An op that no template takes after all brings memory of its own.
void execute_into(const Step& step, std::span<const TensorArg> inputs, const Tensor& out) {
  TensorList results = eager::execute(*step.op, inputs, step.attrs, &out);
  if (results[0].impl().buffer != out.impl().buffer) eager::copy(TensorArg(results[0]), out);
}

bool runs_as_eager(const Step& step) {
  using Kind = Step::Kind;
  return step.kind == Kind::kPointwise || step.kind == Kind::kCopy || step.kind == Kind::kWrite || step.kind == Kind::kKernel;
}

// Tensors of a plan have no memory; what looks at addresses is shown one that is aligned as memory is.
Tensor with_address(const Tensor& geometry) {
  auto impl = make_intrusive<TensorImpl>(geometry.impl());
  void* nowhere = reinterpret_cast<void*>(uintptr_t(1) << 20);
  impl->buffer = make_intrusive<Buffer>(nowhere, size_t(0), impl->device, [] {});
  return Tensor(std::move(impl));
}

// Steps of which this is the same run the same kernel.
std::string key_of(const Plan& plan, const Step& step) {
  std::string key = format("{} {} {}", int(step.kind), step.op->name, step.attrs.text());
  auto add = [&](int slot) {
    if (slot < 0) return void(key += " number");
    auto& t = plan.slots[size_t(slot)].geometry.impl();
    key += format(" {}{}*{}", t.dtype, t.sizes, t.strides);
  };
  for (auto& o : step.inputs) add(o.slot);
  for (int slot : step.results) add(slot);
  if (step.target >= 0) add(step.target);
  return key;
}

void prepare(const Plan& plan, const Step& step) {
  auto tensor = [&](int slot) { return slot < 0 ? Tensor() : with_address(plan.slots[size_t(slot)].geometry); };
  std::vector<TensorArg> inputs;
  for (auto& o : step.inputs) inputs.push_back(o.slot < 0 ? TensorArg(o.number) : TensorArg(tensor(o.slot)));
  Tensor out = tensor(step.results[0]), target = tensor(step.target);
  NoGradGuard no_history;
  TracerScope no_tracer(nullptr);
  runtime::StrictScope strict(plan.strict);
  try {
    // A kernel by hand has nothing to compile, or may call ops of its own: that is left to the first run.
    if (step.kind == Step::Kind::kKernel && eager::find_template(*step.op, plan.device)) return;
    NoLaunches dry;
    run_eager_step(step, inputs, out, target);
  } catch (const Error&) {
  }
}

}  // namespace

void run_eager_step(const Step& step, std::span<const TensorArg> inputs, const Tensor& out, const Tensor& target) {
  switch (step.kind) {
    case Step::Kind::kPointwise:
    case Step::Kind::kCopy:
      eager::run_pointwise(*step.op, inputs, step.attrs, &out);
      return;
    case Step::Kind::kWrite:
      if (!step.in_place) eager::copy(inputs[0], out);
      return eager::copy(inputs[1], target);
    case Step::Kind::kKernel:
      // A view that comes here has no alias of this shape: its own loops copy.
      if (step.op->kind == OpKind::kView)
        eager::run_loops(*step.op, inputs, step.attrs, &out);
      else
        execute_into(step, inputs, out);
      return;
    default:
      SINTER_INTERNAL_ASSERT(false, "{} is no eager step", step.op->name);
  }
}

std::vector<std::function<void()>> eager_preparations(const Plan& plan) {
  std::vector<std::function<void()>> tasks;
  std::set<std::string> seen;
  for (auto& step : plan.steps)
    if (runs_as_eager(step) && seen.insert(key_of(plan, step)).second)
      tasks.push_back([&plan, &step] { prepare(plan, step); });
  return tasks;
}

}  // namespace sinter
