#include "sinter/codegen/cuda/lanes.h"

#include <algorithm>

namespace sinter::codegen {

namespace {

Dim axis_of(const FusedNest& nest) { return nest.inner.back().symbol; }

bool moves(const Condition& c, const Dim& axis) {
  return movement(c.value, axis) != Movement::kFixed || c.extent.depends_on(axis);
}
bool moves(const Conditions& conditions, const Dim& axis) {
  return std::any_of(conditions.begin(), conditions.end(), [&](auto& c) { return moves(c, axis); });
}

// Whether what lies inside is one run of neighbours, and neighbours are one apart.
bool is_interval(const Condition& c, const Dim& axis) {
  auto step = c.value.coefficient_of(axis);
  return step && (step->same_as(1) || step->same_as(-1)) && c.multiple == 1 && !c.extent.depends_on(axis);
}

void add(std::vector<std::string>& all, const std::string& test) {
  if (std::find(all.begin(), all.end(), test) == all.end()) all.push_back(test);
}

std::string joined(const std::vector<std::string>& tests) {
  std::string out;
  for (auto& test : tests) out += " && " + test;
  return out;
}

}  // namespace

bool lanes_fit(const FusedNest& nest) {
  if (nest.inner.empty()) return false;
  const Dim axis = axis_of(nest);
  for (auto& s : nest.sweeps) {
    if (s.once) continue;
    const LoopNest shape = nest.as_nest(s);
    const BodyWriter body(shape, axis, LaneMode::kFull);
    for (size_t id = 0; id < s.body.size(); ++id) {
      auto& instr = s.body[id];
      Movement m = movement(instr.offset, axis);
      for (auto& c : instr.conditions)
        if (moves(c, axis) && (instr.kind == InstrKind::kLoadIndex || !is_interval(c, axis))) return false;
      if (instr.kind == InstrKind::kLoadIndex && (m != Movement::kFixed || !body.uniform(int(id)))) return false;
      // Rows test addresses before they walk the inner axes.
      if (instr.kind == InstrKind::kLoadIndex && nest.inner.size() > 1) return false;
      if (instr.kind == InstrKind::kLoad && m != Movement::kFixed && m != Movement::kUnit) return false;
      if (instr.kind == InstrKind::kIndex && m == Movement::kIrregular) return false;
    }
    for (auto& store : s.stores)
      if (movement(store.offset, axis) != Movement::kUnit) return false;
  }
  return true;
}

int lane_width(const FusedNest& nest) {
  int narrow = 0, all = 0;
  auto count = [&](const Dim& offset, DType dtype) {
    if (movement(offset, axis_of(nest)) != Movement::kUnit) return;
    narrow += item_size(dtype) <= 2;
    ++all;
  };
  for (auto& s : nest.sweeps) {
    if (s.once) continue;
    for (auto& instr : s.body)
      if (instr.kind == InstrKind::kLoad) count(instr.offset, nest.operands[size_t(instr.operand)].dtype);
    for (auto& store : s.stores) count(store.offset, nest.operands[size_t(store.operand)].dtype);
  }
  return 2 * narrow >= all && all > 0 ? 8 : 4;
}

std::string fits_text(const FusedNest& nest, const Sweep& s, bool taken) {
  const LoopNest shape = nest.as_nest(s);
  const Dim axis = axis_of(nest);
  std::vector<std::string> all;
  for (auto& instr : s.body) {
    if (instr.kind == InstrKind::kTile)
      add(all,
          format("fits<{}>(tile{}_, {})", memory_text(compute_dtype(instr.dtype)), instr.operand, index_text(axis)));
    if (instr.kind != InstrKind::kLoad || movement(instr.offset, axis) != Movement::kUnit) continue;
    std::string test =
        format("fits<{}>({}, {})", memory_text(instr.dtype), operand_text(shape, instr.operand), index_text(instr.offset));
    if (taken && moves(instr.conditions, axis)) test = format("(!({}) || {})", conditions_text(instr.conditions), test);
    add(all, test);
  }
  for (auto& store : s.stores)
    add(all, format("fits<{}>(out{}_, {})", memory_text(nest.operands[size_t(store.operand)].dtype), store.operand,
                    index_text(store.offset)));
  return joined(all);
}

std::string alike_text(const FusedNest& nest, const Sweep& s) {
  std::vector<std::string> all;
  const Dim axis = axis_of(nest);
  for (auto& instr : s.body)
    for (auto& c : instr.conditions) {
      if (!moves(c, axis)) continue;
      std::string low = index_text(c.value);
      if (c.value.coefficient_of(axis)->same_as(-1)) low += " - (kLanes - 1)";
      add(all, c.extent.same_as(kUnbounded) ? format("alike({})", low) : format("alike({}, {})", low, index_text(c.extent)));
    }
  return joined(all);
}

}  // namespace sinter::codegen
