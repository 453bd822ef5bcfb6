#include "sinter/loops/instr_builder.h"

namespace sinter {

int add_instr(Sweep& sweep, Instr&& instr) {
  sweep.body.push_back(std::move(instr));
  return int(sweep.body.size()) - 1;
}

int add_constant(Sweep& sweep, const Scalar& value, DType dtype) {
  return add_instr(sweep, {.kind = InstrKind::kConstant, .dtype = dtype, .value = value});
}

int add_apply(Sweep& sweep, const Op& op, DType operands, DType result, SmallVector<int, 4> args) {
  Instr instr{.kind = InstrKind::kApply, .dtype = result, .op = &op};
  instr.compute = pointwise_compute_dtype(op.pointwise->typing, operands, result);
  instr.args = std::move(args);
  return add_instr(sweep, std::move(instr));
}

int add_select(Sweep& sweep, const Conditions& conditions, int yes, int no) {
  Instr instr{.kind = InstrKind::kSelect, .dtype = sweep.body[size_t(yes)].dtype, .conditions = conditions};
  instr.args = {yes, no};
  return add_instr(sweep, std::move(instr));
}

void store_row(LoopNest& nest, const RowReduction& r, Store store) {
  Sweep once;
  once.once = true;
  store.value = add_instr(once, {.kind = InstrKind::kOuter, .dtype = r.dtype, .operand = r.outer});
  once.stores.push_back(store);
  nest.sweeps.push_back(std::move(once));
}

std::optional<bool> decided(const Condition& c) {
  if (!c.value.is_number()) return std::nullopt;
  int64_t value = c.value.number();
  if (value < 0 || value % c.multiple != 0) return false;
  if (!c.extent.is_number()) return std::nullopt;
  return value < c.extent.number();
}

Elem InstrBuilder::apply(const Op& op, DType dtype, std::initializer_list<Elem> args) {
  SmallVector<int, 4> ids;
  for (auto& a : args) ids.push_back(a.id);
  Typing typing = op.pointwise->typing;
  DType result = typing == Typing::kCompare || typing == Typing::kBool ? kBool : dtype;
  return {add_apply(sweep_, op, dtype, result, std::move(ids))};
}

Elem InstrBuilder::number(const Dim& value) {
  return {add_instr(sweep_, {.kind = InstrKind::kIndex, .dtype = kInt64, .offset = value})};
}

}  // namespace sinter
