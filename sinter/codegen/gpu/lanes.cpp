#include "sinter/codegen/gpu/lanes.h"

#include <algorithm>

namespace sinter::codegen {

namespace {

Dim axis_of(const LoopNest& nest) { return nest.inner.back().symbol; }

bool any_moves(const Conditions& conditions, const Dim& axis) {
  return std::any_of(conditions.begin(), conditions.end(), [&](auto& c) { return moves(c, axis); });
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

std::string fits_text(const LoopNest& nest, const Sweep& s, bool taken) {
  const Dim axis = axis_of(nest);
  std::vector<std::string> all;
  for (auto& instr : s.body) {
    if (instr.kind == InstrKind::kTile)
      add(all,
          format("fits<{}>(tile{}_, {})", memory_text(compute_dtype(instr.dtype)), instr.operand, index_text(axis)));
    if (instr.kind != InstrKind::kLoad || movement(instr.offset, axis) != Movement::kUnit) continue;
    std::string test = format("fits<{}>({}, {})", memory_text(instr.dtype), operand_text(nest, instr.operand),
                              index_text(instr.offset));
    if (taken && any_moves(instr.conditions, axis))
      test = format("(!({}) || {})", conditions_text(instr.conditions), test);
    add(all, test);
  }
  for (auto& store : s.stores)
    add(all, format("fits<{}>({}, {})", memory_text(nest.operands[size_t(store.operand)].dtype),
                    operand_text(nest, store.operand), index_text(store.offset)));
  return joined(all);
}

std::string alike_text(const LoopNest& nest, const Sweep& s) {
  std::vector<std::string> all;
  const Dim axis = axis_of(nest);
  for (auto& instr : s.body)
    for (auto& c : instr.conditions) {
      if (!moves(c, axis)) continue;
      std::string low = index_text(c.value);
      if (c.value.coefficient_of(axis)->same_as(-1)) low += " - (kLanes - 1)";
      add(all,
          c.extent.same_as(kUnbounded) ? format("alike({})", low) : format("alike({}, {})", low, index_text(c.extent)));
    }
  return joined(all);
}

}  // namespace sinter::codegen
