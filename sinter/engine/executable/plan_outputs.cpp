#include "sinter/engine/executable/planner.h"

#include <algorithm>

#include "sinter/engine/executable/plan_geometry.h"

namespace sinter {

void Planner::settle(Value value) {
  int into = changed_input(*value.node, value.index);
  // What a view shows others may see.
  if (into < 0 || value.node->op->kind == OpKind::kView || last_read(value) >= 0) return;
  if (std::ranges::count(graph_.outputs(), value) > 1) return;
  const int slot = operand(value).slot, now = value.node->id;
  if (slot < 0 || storage_of(slot).kind != Storage::Kind::kArena || !is_writable(into, now)) return;
  note_change(into);
  add_copy({.slot = slot}, into);
  storage_of(slot).block.last = now;
  operands_[size_t(now)][size_t(value.index)] = {.slot = into};
}

void Planner::add_outputs() {
  for (auto& v : graph_.outputs()) make_view(*v.node, end_);
  size_t count = graph_.outputs().size();
  plan_->outputs.resize(count);
  for (size_t j = 0; j < count; ++j)
    if (program_.written_into(j) < 0) add_fresh_output(j);
  // Inputs change once everything that reads them has been computed and saved.
  std::vector<size_t> late;
  for (size_t j = 0; j < count; ++j) {
    int i = program_.written_into(j);
    if (i < 0) continue;
    plan_->outputs[j] = {.kind = PlannedOutput::Kind::kWritten, .input = i};
    plan_->changed_inputs.push_back(i);
    const Operand& value = operand(graph_.outputs()[j]);
    int to = plan_->input_slots[size_t(i)];
    bool there = value.slot >= 0 && plan_->slots[size_t(value.slot)].storage == plan_->slots[size_t(to)].storage &&
                 same_place(geometry(value.slot), geometry(to));
    if (!there) late.push_back(j);
  }
  std::vector<Operand> values;
  for (size_t j : late) {
    Operand value = operand(graph_.outputs()[j]);
    if (late.size() > 1 && value.slot >= 0 && storage_of(value.slot).kind == Storage::Kind::kInput) {
      int saved = add_slot_of_its_own(row_major(value.slot), end_);
      add_copy(value, saved);
      value = {.slot = saved};
    }
    values.push_back(value);
  }
  for (size_t n = 0; n < late.size(); ++n) add_copy(values[n], plan_->input_slots[size_t(program_.writes[late[n]])]);
}

void Planner::add_fresh_output(size_t j) {
  const Operand& value = operand(graph_.outputs()[j]);
  if (value.slot < 0) {
    plan_->outputs[j] = {.kind = PlannedOutput::Kind::kNumber, .number = value};
    return;
  }
  plan_->outputs[j].slot = value.slot;
  Storage& storage = storage_of(value.slot);
  bool whole = bytes_of(geometry(value.slot)) == storage.block.bytes && is_injective(geometry(value.slot));
  if (whole && storage.index < 0) {
    // Computed, and no other output's: its memory is made for the caller.
    if (storage.kind == Storage::Kind::kArena) storage.kind = Storage::Kind::kOutput;
    storage.index = int(j);
    return;
  }
  int storage_of_copy = add_storage(Storage::Kind::kOutput, int(j), bytes_of(geometry(value.slot)), end_);
  plan_->outputs[j].slot = add_slot(row_major(value.slot), storage_of_copy);
  add_copy(value, plan_->outputs[j].slot);
}

}  // namespace sinter
