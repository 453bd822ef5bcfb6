#include "sinter/engine/executable/planner.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/loops/fused.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

void Planner::add_fused(const Node& node, Step& step) {
  step.kind = Step::Kind::kFused;
  auto& attrs = node.attrs.as<FusedAttrs>();
  std::set<int> taken_storages;
  if (attrs.kind == FusedKind::kSiblings) {
    auto& inputs = attrs.body->inputs();
    std::vector<int> readers(inputs.size(), 0);
    std::vector<std::pair<const Node*, std::vector<size_t>>> kernels;
    for (auto& inner : attrs.body->nodes()) {
      if (inner.op != &fused_op()) continue;
      auto& own = kernels.emplace_back(&inner, std::vector<size_t>()).second;
      for (auto& v : inner.inputs) own.push_back(size_t(std::find(inputs.begin(), inputs.end(), v) - inputs.begin()));
      for (size_t i : std::set<size_t>(own.begin(), own.end())) ++readers[i];
    }
    // Results come in the order of the kernels inside.
    int result = 0;
    for (auto& [inner, own] : kernels)
      for (size_t r = 0; r < inner->types.size(); ++r)
        add_fused_result(node, step, result++, inner->attrs.as<FusedAttrs>(), int(r), own, readers, taken_storages);
  } else {
    std::vector<size_t> own(step.inputs.size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = i;
    std::vector<int> readers(own.size(), 1);
    for (size_t r = 0; r < node.types.size(); ++r)
      add_fused_result(node, step, int(r), attrs, int(r), own, readers, taken_storages);
  }
  std::vector<const TensorImpl*> operands, outputs;
  for (auto& o : step.inputs) operands.push_back(o.slot < 0 ? nullptr : &geometry(o.slot));
  for (int slot : step.results) outputs.push_back(&geometry(slot));
  to_compile_.push_back({plan_->steps.size(), &node, std::move(operands), std::move(outputs)});
}

void Planner::add_fused_result(const Node& node, Step& step, int result, const FusedAttrs& attrs, int r,
                               const std::vector<size_t>& own, const std::vector<int>& readers,
                               std::set<int>& taken_storages) {
  if (const Node* last = attrs.body->outputs()[size_t(r)].node; last->op->kind == OpKind::kScatter)
    return add_scattered(node, step, result, *attrs.body, *last, own, readers, taken_storages);
  // A product writes partial sums where its result will be; other templates read operands more than once, too.
  const bool by_template = attrs.has_template();
  std::vector<bool> elsewhere = by_template ? std::vector<bool>(own.size(), true) : read_elsewhere(*attrs.body);
  std::vector<const TensorImpl*> followed;
  for (size_t n = 0; n < own.size(); ++n) {
    int slot = step.inputs[own[n]].slot;
    followed.push_back(slot < 0 || elsewhere[n] ? nullptr : &geometry(slot));
  }
  IntList sizes = node.types[size_t(result)].shape.numbers();
  // Rows of a GPU need not lie along memory: neighbours may be those of other rows.
  const bool follows = !attrs.inner || (engine_of(plan_->device).target().gpu && attrs.domain.numbers() == sizes);
  IntList strides = by_template ? engine_of(plan_->device).result_strides(template_op_in(attrs), sizes, nullptr, [] { return nullptr; })
                    : follows   ? eager::pointwise_strides(followed, sizes)
                                : contiguous_strides(sizes);
  // What becomes the new value of an input lies as that does, if that has no gaps.
  if (int into = changed_input(node, result);
      into >= 0 && !by_template && !attrs.inner && geometry(into).sizes == sizes)
    if (auto& of = geometry(into).strides; preserved_strides(sizes, of) == of) strides = of;
  Tensor fresh = geometry_of(node.types[size_t(result)].dtype, sizes, strides, plan_->device);
  // Elements are computed where they are stored, so an operand in the very same place may be overwritten; by a template none.
  auto may_take = [&](int slot) {
    int storage = plan_->slots[size_t(slot)].storage;
    if (taken_storages.contains(storage) || !is_writable(slot, node.id) ||
        !same_place_apart_from_start(slot, fresh.impl()))
      return false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Operand& o = step.inputs[i];
      if (o.slot < 0 || plan_->slots[size_t(o.slot)].storage != storage) continue;
      size_t n = size_t(std::find(own.begin(), own.end(), i) - own.begin());
      if (n == own.size() || readers[i] > 1 || elsewhere[n] || !same_place(geometry(o.slot), geometry(slot)))
        return false;
    }
    return true;
  };
  int taken = -1;
  if (by_template || node.types[size_t(result)].shape.same_as(attrs.domain)) {
    taken = changed_input(node, result);
    if (taken >= 0 && !may_take(taken)) taken = -1;
    for (size_t i : own) {
      int slot = step.inputs[i].slot;
      if (taken >= 0 || slot < 0 || storage_of(slot).kind == Storage::Kind::kInput || !may_take(slot)) continue;
      if (bytes_of(fresh.impl()) == storage_of(slot).block.bytes) taken = slot;
    }
  }
  int slot;
  if (taken >= 0) {
    step.in_place = true;
    note_change(taken);
    taken_storages.insert(plan_->slots[size_t(taken)].storage);
    slot = add_slot(plan_->slots[size_t(taken)].geometry, plan_->slots[size_t(taken)].storage);
  } else {
    slot = add_slot_of_its_own(fresh, node.id);
  }
  step.results.push_back(slot);
  define(node.result(result), slot);
}

void Planner::add_scattered(const Node& node, Step& step, int result, const Graph& body, const Node& scatter,
                            const std::vector<size_t>& own, const std::vector<int>& readers,
                            std::set<int>& taken_storages) {
  auto& inputs = body.inputs();
  size_t at = size_t(std::find(inputs.begin(), inputs.end(), scatter.inputs[0]) - inputs.begin());
  SINTER_INTERNAL_ASSERT(at < inputs.size(), "a fused scatter changes what it computes itself");
  const Operand& self = step.inputs[own[at]];
  int storage = plan_->slots[size_t(self.slot)].storage;
  bool apart = !taken_storages.contains(storage) && is_writable(self.slot, node.id) && readers[own[at]] == 1;
  for (auto& n : body.nodes())
    for (size_t i = 0; i < n.inputs.size(); ++i)
      apart = apart && (n.inputs[i] != scatter.inputs[0] || (&n == &scatter && i == 0));
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (i != own[at] && step.inputs[i].slot >= 0)
      apart = apart && plan_->slots[size_t(step.inputs[i].slot)].storage != storage;
  int slot;
  if (apart) {
    step.in_place = true;
    note_change(self.slot);
    taken_storages.insert(storage);
    slot = add_slot(plan_->slots[size_t(self.slot)].geometry, storage);
  } else {
    slot = add_slot_of_its_own(row_major(self.slot), node.id);
    add_copy(self, slot);
  }
  step.results.push_back(slot);
  define(node.result(result), slot);
}

bool Planner::same_place_apart_from_start(int slot, const TensorImpl& fresh) const {
  auto& to = geometry(slot);
  return to.dtype == fresh.dtype && to.sizes == fresh.sizes && to.strides == fresh.strides;
}

}  // namespace sinter
