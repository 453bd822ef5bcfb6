#include "sinter/engine/executable/planner.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan_geometry.h"

namespace sinter {

void Planner::add_computed(const Node& node, Step& step) {
  if (node.op == write_op_)
    add_write(node, step);
  else if (node.op == &fused_op())
    add_fused(node, step);
  else if (node.op->kind == OpKind::kPointwise)
    add_pointwise(node, step);
  else if (node.op->run_cpu || node.op->kind == OpKind::kOpaque)
    add_opaque(node, step);
  else
    add_kernel(node, step);
}

void Planner::add_pointwise(const Node& node, Step& step) {
  step.kind = Step::Kind::kPointwise;
  std::vector<const TensorImpl*> impls;
  for (auto& o : step.inputs) impls.push_back(o.slot < 0 ? nullptr : &geometry(o.slot));
  IntList sizes = node.types[0].shape.numbers();
  Tensor fresh = geometry_of(node.types[0].dtype, sizes, eager::pointwise_strides(impls, sizes), plan_->device);
  // Element by element: an operand in the same place may be read while it is overwritten, no other look at it.
  auto may_take = [&](int slot) {
    if (!is_writable(slot, node.id)) return false;
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](const Operand& o) {
      bool apart = o.slot < 0 || plan_->slots[size_t(o.slot)].storage != plan_->slots[size_t(slot)].storage;
      return apart || same_place(geometry(o.slot), geometry(slot));
    });
  };
  int taken = changed_input(node);
  if (taken >= 0 && !may_take(taken)) taken = -1;
  for (size_t i = 0; taken < 0 && i < step.inputs.size(); ++i) {
    int slot = step.inputs[i].slot;
    if (slot < 0 || storage_of(slot).kind == Storage::Kind::kInput || !may_take(slot)) continue;
    if (same_place(geometry(slot), fresh.impl()) && bytes_of(fresh.impl()) == storage_of(slot).block.bytes)
      taken = slot;
  }
  finish(node, step, fresh, taken);
}

void Planner::add_kernel(const Node& node, Step& step) {
  step.kind = Step::Kind::kKernel;
  IntList sizes = node.types[0].shape.numbers();
  const TensorImpl* first = step.inputs.empty() || step.inputs[0].slot < 0 ? nullptr : &geometry(step.inputs[0].slot);
  IntList strides = engine_of(plan_->device).result_strides(node, sizes, first, [&] { return beside(node); });
  Tensor fresh = geometry_of(node.types[0].dtype, sizes, strides, plan_->device);
  // A scatter may change its first operand instead of a copy; other kernels need operands that stay.
  int taken = node.op->kind == OpKind::kScatter ? step.inputs[0].slot : changed_input(node);
  if (taken >= 0) {
    size_t first = node.op->kind == OpKind::kScatter;
    bool apart = std::none_of(step.inputs.begin() + int64_t(first), step.inputs.end(), [&](const Operand& o) {
      return o.slot >= 0 && plan_->slots[size_t(o.slot)].storage == plan_->slots[size_t(taken)].storage;
    });
    auto& to = geometry(taken);
    const bool alike = to.strides == fresh.impl().strides || (to.contiguous && fresh.is_contiguous());
    if (!apart || !alike || to.dtype != fresh.dtype() || to.sizes != sizes || !is_writable(taken, node.id))
      taken = -1;
  }
  finish(node, step, fresh, taken);
}

const TensorImpl* Planner::beside(const Node& node) const {
  const IntList sizes = node.types[0].shape.numbers();
  for (auto& reader : graph_.nodes()) {
    if (std::none_of(reader.inputs.begin(), reader.inputs.end(), [&](const Value& v) { return v.node == &node; })) continue;
    for (auto& v : reader.inputs)
      if (v.node->op->kind == OpKind::kInput && operand(v).slot >= 0 && geometry(operand(v).slot).sizes == sizes)
        return &geometry(operand(v).slot);
  }
  return nullptr;
}

void Planner::add_opaque(const Node& node, Step& step) {
  step.kind = Step::Kind::kOpaque;
  for (size_t r = 0; r < node.types.size(); ++r) {
    IntList sizes = node.types[r].shape.numbers();
    Tensor geometry = geometry_of(node.types[r].dtype, sizes, contiguous_strides(sizes), plan_->device);
    // A recording is launched without anybody to bring results along: they are copied to a place of their own.
    auto kind = engine_of(plan_->device).queues() ? Storage::Kind::kArena : Storage::Kind::kLoose;
    step.results.push_back(add_slot(geometry, add_storage(kind, -1, bytes_of(geometry.impl()), node.id)));
    define(node.result(int(r)), step.results.back());
  }
}

void Planner::add_write(const Node& node, Step& step) {
  step.kind = Step::Kind::kWrite;
  auto& path = node.attrs.as<WriteAttrs>().path;
  const Tensor& base = plan_->slots[size_t(step.inputs[0].slot)].geometry;
  std::optional<Tensor> place;
  int taken = is_writable(step.inputs[0].slot, node.id) ? step.inputs[0].slot : -1;
  if (taken >= 0) place = apply_views(path, base);
  // A path was recorded on row-major values: a copy in that order always has it.
  Tensor fresh = geometry_of(base.dtype(), base.impl().sizes, contiguous_strides(base.impl().sizes), plan_->device);
  if (!place) {
    taken = -1;
    place = apply_views(path, fresh);
    SINTER_INTERNAL_ASSERT(place, "a path of views has no alias: {}", node.attrs.text());
    plan_->copied_bytes += bytes_of(fresh.impl());
  }
  plan_->copied_bytes += bytes_of(place->impl());
  finish(node, step, fresh, taken);
  step.target = add_slot(*place, plan_->slots[size_t(step.results[0])].storage);
}

std::optional<Tensor> Planner::apply_views(const ViewPath& path, const Tensor& base) {
  std::optional<Tensor> at = base;
  for (auto& view : path.steps)
    if (at) at = alias(*view.op, *at, view.attrs);
  return at;
}

void Planner::finish(const Node& node, Step& step, const Tensor& fresh, int taken) {
  step.in_place = taken >= 0;
  if (taken >= 0) note_change(taken);
  int slot = taken < 0 ? add_slot_of_its_own(fresh, node.id)
                       : add_slot(plan_->slots[size_t(taken)].geometry, plan_->slots[size_t(taken)].storage);
  step.results = {slot};
  define(node.result(), slot);
}

int Planner::changed_input(const Node& node, int result) const {
  auto it = belongs_into_.find({&node, result});
  return it == belongs_into_.end() ? -1 : plan_->input_slots[size_t(it->second)];
}

bool Planner::is_writable(int slot, int now) {
  const Storage& storage = storage_of(slot);
  if (storage.block.last > now || !is_injective(geometry(slot))) return false;
  return storage.kind != Storage::Kind::kInput || (options_.write_inputs_early && written_[size_t(storage.index)]);
}

void Planner::note_change(int slot) {
  const Storage& storage = storage_of(slot);
  auto& early = plan_->changed_early;
  if (storage.kind == Storage::Kind::kInput && std::find(early.begin(), early.end(), storage.index) == early.end())
    early.push_back(storage.index);
}

}  // namespace sinter
