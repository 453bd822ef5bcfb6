#include "sinter/engine/executable/prepack.h"

namespace sinter {

void pack_weights(Plan& plan, const TensorList& captured) {
  // Few rows stream a weight as it lies.
  constexpr int64_t kFewRows = 8;
  const int first = int(plan.input_slots.size() - captured.size());
  for (auto& step : plan.steps) {
    if (!step.fused || !step.fused->product || step.fused->product->m <= kFewRows) continue;
    for (auto& part : step.fused->product->parts) {
      auto& packed = step.packed.emplace_back();
      const Slot& slot = plan.slots[size_t(step.inputs[size_t(part.b_slot)].slot)];
      const Storage& storage = plan.storages[size_t(slot.storage)];
      if (storage.kind != Storage::Kind::kInput || storage.index < first) continue;
      const TensorImpl& source = captured[size_t(storage.index - first)].impl();
      auto view = make_intrusive<TensorImpl>(slot.geometry.impl());
      view->buffer = source.buffer;
      view->offset += source.offset;
      packed = pack_weight(Tensor(std::move(view)));
    }
  }
}

}  // namespace sinter
