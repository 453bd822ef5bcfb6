// Which axis becomes vectors on a CPU, and how.
#include <algorithm>

#include "sinter/loops/schedule.h"

namespace sinter {

namespace {

constexpr int kStripVectors = 64;  // of columns: what a piece should have a multiple of
constexpr int kScalarRun = 256;    // one by one, small terms would be lost in a large sum

// Whether lanes along `axis` can run the sweep with every condition and index the same for all of them.
struct AxisFit {
  bool possible = false;
  int unit = 0, strided = 0;

  AxisFit() = default;
  AxisFit(const Sweep& sweep, const Dim& axis) : possible(true) {
    for (size_t id = 0; id < sweep.body.size(); ++id) {
      auto& instr = sweep.body[id];
      for (auto& c : instr.conditions)
        if (movement(c.value, axis) != Movement::kFixed) possible = false;
      Movement m = movement(instr.offset, axis);
      if (m == Movement::kIrregular) possible = false;
      if (instr.kind == InstrKind::kLoadIndex && !is_uniform(sweep, int(id), axis)) possible = false;
      if (instr.kind != InstrKind::kLoad) continue;
      unit += m == Movement::kUnit;
      strided += m == Movement::kStrided;
    }
  }
  // Lanes along a strided axis cost a gather per load.
  bool pays() const { return possible && unit > 0 && strided == 0; }
};

bool stores_move(const Sweep& sweep, const Dim& axis) {
  return std::all_of(sweep.stores.begin(), sweep.stores.end(), [&](auto& store) {
    Movement m = movement(store.offset, axis);
    return m == Movement::kUnit || m == Movement::kStrided;
  });
}

// What an op combines over axes of its own, which may be short: lanes only where memory lies along one.
VectorMode mode_of_reduction(const LoopNest& nest) {
  if (nest.inner.empty()) return VectorMode::kScalar;
  const Sweep& sweep = nest.sweeps[0];
  if (AxisFit(sweep, nest.inner.back().symbol).pays()) return VectorMode::kRows;
  if (nest.rows.empty() || sweep.searches()) return VectorMode::kScalar;
  const Dim axis = nest.rows.back().symbol;
  return AxisFit(sweep, axis).pays() && stores_move(nest.sweeps.back(), axis) ? VectorMode::kColumns
                                                                              : VectorMode::kScalar;
}

// Lanes need every access to move along the last inner axis by some stride. A condition may change along it where the loop
// can be cut; nothing else may differ from lane to lane.
bool lanes_fit(const LoopNest& nest) {
  if (nest.inner.empty()) return false;
  const Dim axis = nest.inner.back().symbol;
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    for (size_t id = 0; id < sweep.body.size(); ++id) {
      auto& instr = sweep.body[id];
      for (auto& c : instr.conditions)
        if (movement(c.value, axis) != Movement::kFixed && !is_interval(c, axis)) return false;
      if (instr.kind == InstrKind::kLoadIndex && !is_uniform(sweep, int(id), axis)) return false;
      if (movement(instr.offset, axis) == Movement::kIrregular) return false;
    }
    if (!stores_move(sweep, axis)) return false;
  }
  return true;
}

// A copy of one f32 operand with holes, as pads and triangles are: compilers make masked vectors of the plain loop, which cost
// less than pieces (measured: 0.6 of the time on rows of 58).
bool is_copy_with_holes(const LoopNest& nest) {
  if (!nest.is_map() || nest.sweeps[0].stores.size() != 1) return false;
  const Sweep& sweep = nest.sweeps[0];
  if (nest.operands[size_t(sweep.stores[0].operand)].dtype != kFloat32) return false;
  int loads = 0;
  bool holes = false;
  for (auto& instr : sweep.body) {
    if (instr.kind == InstrKind::kApply || instr.kind == InstrKind::kLoadIndex || instr.dtype != kFloat32) return false;
    loads += instr.kind == InstrKind::kLoad;
    for (auto& c : instr.conditions) holes = holes || moves(c, nest.inner.back().symbol);
  }
  return loads == 1 && holes;
}

VectorMode mode_of(const LoopNest& nest) {
  const bool in_order =
      std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& s) { return s.scans() || s.scatters(); });
  if (!lanes_allowed() || in_order) return VectorMode::kScalar;
  if (nest.reduces_own_axes()) return mode_of_reduction(nest);
  if (!lanes_fit(nest) || is_copy_with_holes(nest)) return VectorMode::kScalar;
  return nest.reduces() ? VectorMode::kRows : VectorMode::kMap;
}

// The places of the last axis at which some condition of the sweep changes.
std::vector<Dim> cuts_of(const LoopNest& nest, const Sweep& sweep) {
  std::vector<Dim> places;
  const Axis& last = nest.inner.back();
  auto add = [&](const Dim& place) {
    bool known = place.same_as(0) || place.same_as(last.extent);
    for (auto& other : places) known = known || other.same_as(place);
    if (!known) places.push_back(place);
  };
  for (auto& instr : sweep.body)
    for (auto& c : instr.conditions) {
      if (movement(c.value, last.symbol) == Movement::kFixed) continue;
      bool upward = c.value.coefficient_of(last.symbol)->same_as(1), bounded = !c.extent.same_as(kUnbounded);
      Dim rest = upward ? c.value - last.symbol : c.value + last.symbol;
      add(upward ? -rest : rest + 1);
      if (bounded) add(upward ? c.extent - rest : rest + 1 - c.extent);
    }
  return places;
}

bool are_common(const LoopNest& nest, const std::vector<Dim>& places) {
  auto is_parameter = [&](const std::string& name) {
    return std::any_of(nest.parameters.begin(), nest.parameters.end(), [&](auto& p) { return p.name == name; });
  };
  return std::all_of(places.begin(), places.end(), [&](auto& place) {
    auto names = place.symbols();
    return std::all_of(names.begin(), names.end(), is_parameter);
  });
}

bool any_strided(const Sweep& sweep, const Dim& axis) {
  auto strided = [&](const Dim& offset) { return movement(offset, axis) == Movement::kStrided; };
  return std::any_of(sweep.stores.begin(), sweep.stores.end(), [&](auto& store) { return strided(store.offset); }) ||
         std::any_of(sweep.body.begin(), sweep.body.end(),
                     [&](auto& instr) { return instr.kind == InstrKind::kLoad && strided(instr.offset); });
}

// Even and odd places of one result.
bool is_pair(const Store& even, const Store& odd, const Dim& axis) {
  auto step = even.offset.coefficient_of(axis);
  return even.operand == odd.operand && step && step->same_as(2) && (odd.offset - even.offset).same_as(1);
}

SweepSchedule lanes_of(const LoopNest& nest, const Sweep& sweep) {
  SweepSchedule out;
  if (sweep.once) return out;
  const Dim axis = nest.inner.back().symbol;
  out.cuts = cuts_of(nest, sweep);
  out.common_cuts = are_common(nest, out.cuts);
  out.single_tail = any_strided(sweep, axis);
  for (size_t i = 0; i + 1 < sweep.stores.size(); ++i)
    if (is_pair(sweep.stores[i], sweep.stores[i + 1], axis)) out.pairs.push_back(i++);
  return out;
}

SweepSchedule scalar_of(const LoopNest& nest, const Sweep& sweep) {
  SweepSchedule out;
  const bool adds_up = !sweep.reductions.empty() && !sweep.scans() && !sweep.searches() && !nest.inner.empty();
  if (!adds_up) return out;
  const Dim& extent = nest.inner.back().extent;
  if (!extent.is_number() || extent.number() > kScalarRun) out.run = kScalarRun;
  return out;
}

// The loads of f32 that lanes would gather, but that lie side by side along the last row axis, or may do so: then as many
// rows as lanes at a time can load whole vectors and transpose them.
void find_transposed(const LoopNest& nest, Schedule& out) {
  if (nest.rows.empty() || nest.inner.size() != 1 || nest.tiles || nest.reads_index() || !out.sweeps[0].cuts.empty())
    return;
  const Sweep& sweep = nest.sweeps[0];
  for (auto& store : sweep.stores)
    if (movement(store.offset, out.vector_axis) != Movement::kUnit) return;
  out.transposed_axis = nest.rows.back();
  for (size_t id = 0; id < sweep.body.size(); ++id) {
    const Instr& instr = sweep.body[id];
    if (instr.kind != InstrKind::kLoad || instr.dtype != kFloat32 || !instr.conditions.empty()) continue;
    const Dim& other = out.transposed_axis.symbol;
    Movement along = movement(instr.offset, other);
    bool beside =
        along == Movement::kUnit || (along == Movement::kStrided && !instr.offset.coefficient_of(other)->is_number());
    if (movement(instr.offset, out.vector_axis) == Movement::kStrided && beside) out.transposed.push_back(int(id));
  }
}

}  // namespace

Schedule schedule(const LoopNest& nest, const CpuFacts& facts) {
  Schedule out;
  out.mode = mode_of(nest);
  out.sweeps.resize(nest.sweeps.size());
  out.range = nest.rows;
  out.over_inner = nest.is_map() && nest.rows.empty() && nest.inner.size() == 1;
  if (out.over_inner) {
    out.range = nest.inner;
    out.piece_vectors = 1;
  }
  if (out.mode == VectorMode::kColumns) {
    out.vector_axis = nest.rows.back().symbol;
    if (nest.rows.size() > 1)
      out.range.pop_back();
    else
      out.piece_vectors = kStripVectors;
  } else {
    const bool lanes = out.mode != VectorMode::kScalar;
    if (lanes) out.vector_axis = nest.inner.back().symbol;
    for (size_t i = 0; i < nest.sweeps.size(); ++i)
      out.sweeps[i] = lanes ? lanes_of(nest, nest.sweeps[i]) : scalar_of(nest, nest.sweeps[i]);
  }
  if (out.mode == VectorMode::kMap && nest.is_map()) {
    find_transposed(nest, out);
    if (!out.transposed.empty()) out.piece_vectors = 1;
    const auto& stores = nest.sweeps[0].stores;
    out.stream = facts.stream && std::all_of(stores.begin(), stores.end(), [&](auto& store) {
                   return movement(store.offset, out.vector_axis) == Movement::kUnit;
                 });
  }
  out.work = out.over_inner ? Dim(1) : points_of(nest.inner);
  if (out.range.size() < nest.rows.size()) out.work *= nest.rows.back().extent;
  return out;
}

}  // namespace sinter
