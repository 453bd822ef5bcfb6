#include "sinter/engine/kernel_text.h"

#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

thread_local KernelTexts* collecting = nullptr;

}  // namespace

KernelTexts::KernelTexts() { collecting = this; }
KernelTexts::~KernelTexts() { collecting = nullptr; }
KernelTexts* KernelTexts::current() { return collecting; }

std::vector<KernelText> texts_of(const Plan& plan, const Step& step) {
  if (step.kind != Step::Kind::kFused) return {};
  auto geometry = [&](int slot) { return &plan.slots[size_t(slot)].geometry.impl(); };
  std::vector<const TensorImpl*> inputs, outputs;
  for (auto& operand : step.inputs) inputs.push_back(operand.slot < 0 ? nullptr : geometry(operand.slot));
  for (int result : step.results) outputs.push_back(geometry(result));
  TracerScope none(nullptr);
  KernelTexts texts;
  engine_of(plan.device).make_step(step.attrs.as<FusedAttrs>(), inputs, outputs);  // nothing is compiled
  return texts.take();
}

}  // namespace sinter
