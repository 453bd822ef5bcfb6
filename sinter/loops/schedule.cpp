#include "sinter/loops/schedule.h"

#include <atomic>

namespace sinter {

Movement movement(const Dim& offset, const Dim& axis) {
  auto stride = offset.coefficient_of(axis);
  if (!stride) return Movement::kIrregular;
  if (stride->same_as(0)) return Movement::kFixed;
  return stride->same_as(1) ? Movement::kUnit : Movement::kStrided;
}

namespace {

struct AxisFit {
  bool possible = true;
  int unit = 0, strided = 0;
};

// Whether the instruction's value differs along the axis.
bool varies(const LoopNest& nest, int id, const Dim& axis) {
  auto& instr = nest.body[size_t(id)];
  if (movement(instr.offset, axis) != Movement::kFixed) return true;
  for (int a : instr.args)
    if (varies(nest, a, axis)) return true;
  return false;
}

// Whether lanes along `axis` can run the body: every access regular, every condition and index the same for all lanes.
AxisFit fit(const LoopNest& nest, const Dim& axis) {
  AxisFit out;
  for (auto& instr : nest.body) {
    for (auto& c : instr.conditions)
      if (movement(c.value, axis) != Movement::kFixed) out.possible = false;
    if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadIndex && instr.kind != InstrKind::kIndex) continue;
    Movement m = movement(instr.offset, axis);
    if (m == Movement::kIrregular) out.possible = false;
    if (instr.kind == InstrKind::kLoadIndex && m != Movement::kFixed) out.possible = false;
    if (instr.kind == InstrKind::kLoadIndex)
      for (int a : instr.args)
        if (varies(nest, a, axis)) out.possible = false;
    if (instr.kind == InstrKind::kLoad) {
      out.unit += m == Movement::kUnit;
      out.strided += m == Movement::kStrided;
    }
  }
  return out;
}

}  // namespace

namespace {
std::atomic<int> forbidding_lanes{0};
}

NoLanes::NoLanes() { ++forbidding_lanes; }
NoLanes::~NoLanes() { --forbidding_lanes; }
bool lanes_allowed() { return forbidding_lanes.load(std::memory_order_relaxed) == 0; }

Schedule schedule(const LoopNest& nest, bool stream) {
  if (!lanes_allowed()) return {};
  bool arg = nest.combine == Combine::kArgMax || nest.combine == Combine::kArgMin;
  if (nest.kind == NestKind::kMap && !nest.parallel.empty()) {
    Dim axis = nest.parallel.back().symbol;
    auto f = fit(nest, axis);
    Movement store = movement(nest.offset, axis);
    if (f.possible && store != Movement::kIrregular && store != Movement::kFixed)
      return {VectorMode::kMap, axis, stream && store == Movement::kUnit};
  }
  if (nest.kind == NestKind::kReduce) {
    AxisFit rows, columns;
    rows.possible = columns.possible = false;
    if (!nest.sequential.empty()) rows = fit(nest, nest.sequential.back().symbol);
    if (!nest.parallel.empty()) {
      columns = fit(nest, nest.parallel.back().symbol);
      Movement store = movement(nest.offset, nest.parallel.back().symbol);
      columns.possible = columns.possible && store != Movement::kIrregular && store != Movement::kFixed;
    }
    // Unit-stride loads decide; lanes along a strided axis cost a gather per load.
    if (rows.possible && rows.unit > 0 && rows.strided == 0) return {VectorMode::kRows, nest.sequential.back().symbol, false};
    if (!arg && columns.possible && columns.unit > 0 && columns.strided == 0) return {VectorMode::kColumns, nest.parallel.back().symbol, false};
  }
  return {};
}

std::string to_string(const Schedule& s) {
  switch (s.mode) {
    case VectorMode::kScalar: return "scalar";
    case VectorMode::kMap: return "map lanes " + to_string(s.vector_axis) + (s.stream ? " streaming" : "");
    case VectorMode::kColumns: return "columns lanes " + to_string(s.vector_axis);
    case VectorMode::kRows: break;
  }
  return "rows lanes " + to_string(s.vector_axis);
}

}  // namespace sinter
