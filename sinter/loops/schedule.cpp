#include "sinter/loops/schedule.h"

#include <algorithm>
#include <atomic>

#include "sinter/base/format.h"

namespace sinter {

Movement movement(const Dim& offset, const Dim& axis) {
  auto stride = offset.coefficient_of(axis);
  if (!stride) return Movement::kIrregular;
  if (stride->same_as(0)) return Movement::kFixed;
  return stride->same_as(1) ? Movement::kUnit : Movement::kStrided;
}

bool is_uniform(const Sweep& sweep, int id, const Dim& axis) {
  const Instr& instr = sweep.body[size_t(id)];
  switch (instr.kind) {
    case InstrKind::kTile: return false;
    case InstrKind::kConstant:
    case InstrKind::kOuter: return true;
    default: break;
  }
  if (movement(instr.offset, axis) != Movement::kFixed) return false;
  return std::all_of(instr.args.begin(), instr.args.end(), [&](int a) { return is_uniform(sweep, a, axis); });
}

bool is_interval(const Condition& c, const Dim& axis) {
  auto step = c.value.coefficient_of(axis);
  return step && (step->same_as(1) || step->same_as(-1)) && c.multiple == 1 && !c.extent.depends_on(axis);
}

bool moves(const Condition& c, const Dim& axis) {
  return movement(c.value, axis) != Movement::kFixed || c.extent.depends_on(axis);
}

Dim points_of(const std::vector<Axis>& axes) {
  Dim out = 1;
  for (auto& axis : axes) out = out * axis.extent;
  return out;
}

Dim Schedule::points() const { return points_of(range); }

namespace {

std::atomic<int> forbidding_lanes{0};

std::string lanes_text(const Schedule& s) {
  std::string out;
  switch (s.mode) {
    case VectorMode::kScalar: return "scalar";
    case VectorMode::kMap: out = "map"; break;
    case VectorMode::kRows: out = "rows"; break;
    case VectorMode::kColumns: out = "columns"; break;
  }
  return out + " lanes " + to_string(s.vector_axis);
}

std::string spread_text(const Schedule& s) {
  std::string lanes = s.lanes > 1 ? format(", {} at a time", s.lanes) : "";
  switch (s.part) {
    case KernelPart::kElement: return "one element of a contraction";
    case KernelPart::kRun: return "neighbours of a contraction" + lanes;
    case KernelPart::kRows: return "rows of another kernel" + lanes;
    case KernelPart::kKernel: break;
  }
  switch (s.spread) {
    case Spread::kElements: return "elements" + lanes;
    case Spread::kPoints: return "points";
    case Spread::kRows: return "rows" + lanes + (s.along ? ", along memory" : "");
    case Spread::kColumns: return "columns" + lanes;
    case Spread::kTiles: break;
  }
  return "squares";
}

std::string sweep_text(const SweepSchedule& sweep) {
  std::string out;
  for (auto& place : sweep.cuts) out += (out.empty() ? " cut at " : ", ") + to_string(place);
  if (!sweep.pairs.empty()) out += " storing pairs";
  if (sweep.single_tail) out += " with a tail one by one";
  if (sweep.run) out += format(" adding up {} at a time", sweep.run);
  if (sweep.unroll) out += format(" unrolled {} times", sweep.unroll);
  return out;
}

}  // namespace

std::string to_string(const Schedule& s) {
  std::string out = s.gpu ? spread_text(s) : lanes_text(s);
  if (s.stream) out += " streaming";
  for (size_t i = 0; i < s.transposed.size(); ++i)
    out += (i ? ", %" : format(" transposed along {}: %", s.transposed_axis.symbol)) + std::to_string(s.transposed[i]);
  if (s.items) out += format(", {} under way", s.items);
  for (auto& held : s.held) out += format(", {} vectors held of in{}[{}]", s.held_vectors, held.operand, held.offset);
  for (size_t i = 0; i < s.sweeps.size(); ++i)
    if (std::string text = sweep_text(s.sweeps[i]); !text.empty()) out += format("; sweep {}{}", i, text);
  return out;
}

NoLanes::NoLanes() { ++forbidding_lanes; }
NoLanes::~NoLanes() { --forbidding_lanes; }
bool lanes_allowed() { return forbidding_lanes.load(std::memory_order_relaxed) == 0; }

}  // namespace sinter
