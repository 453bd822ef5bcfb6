// How a nest is spread over a GPU, and what a thread takes at a time.
#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/format.h"
#include "sinter/loops/schedule.h"

namespace sinter {

namespace {

constexpr int kElementThreads = 256;
constexpr int kSearchItems = 8;     // elements of a search that a thread loads at a time
constexpr int kSearchBytes = 128;   // or, in vectors, of what it has to compare
constexpr int kScanItems = 4;       // neighbours that a thread scans by itself
constexpr size_t kMostTransposed = 4;   // loads: a square each in shared memory
constexpr int64_t kMostHeld = 192;  // bytes of a row in a thread's registers
constexpr size_t kSmallBody = 8;    // instructions of a loop that is worth unrolling

Dim last_axis(const LoopNest& nest) { return nest.inner.back().symbol; }

// Whether some condition changes along the last axis.
bool any_moves(const LoopNest& nest) {
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body)
      for (auto& c : instr.conditions)
        if (!sweep.once && moves(c, last_axis(nest))) return true;
  return false;
}

// Vectors need neighbours in memory along the last inner axis. A condition may change along it where it is an interval of
// its places; everything else must be the same for all lanes.
bool lanes_fit(const LoopNest& nest) {
  if (nest.inner.empty()) return false;
  const Dim axis = last_axis(nest);
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    for (size_t id = 0; id < sweep.body.size(); ++id) {
      auto& instr = sweep.body[id];
      const bool index = instr.kind == InstrKind::kLoadIndex;
      Movement m = movement(instr.offset, axis);
      for (auto& c : instr.conditions)
        if (moves(c, axis) && (index || !is_interval(c, axis))) return false;
      if (index && !is_uniform(sweep, int(id), axis)) return false;
      // Rows test addresses before they walk the inner axes.
      if (index && nest.inner.size() > 1) return false;
      if (instr.kind == InstrKind::kLoad && m != Movement::kFixed && m != Movement::kUnit) return false;
      if (m == Movement::kIrregular) return false;
    }
    for (auto& store : sweep.stores)
      if (movement(store.offset, axis) != Movement::kUnit) return false;
  }
  return true;
}

// Eight where most of what is moved along the axis has two bytes or less, so that an access has 16.
int lane_width(const LoopNest& nest, const Dim& axis) {
  int narrow = 0, all = 0;
  auto count = [&](const Dim& offset, int operand) {
    if (movement(offset, axis) != Movement::kUnit) return;
    narrow += item_size(nest.operands[size_t(operand)].dtype) <= 2;
    ++all;
  };
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoad) count(instr.offset, instr.operand);
    for (auto& store : sweep.stores) count(store.offset, store.operand);
  }
  return 2 * narrow >= all && all > 0 ? 8 : 4;
}

void take_lanes(const LoopNest& nest, VectorMode mode, Schedule& out) {
  out.mode = mode;
  out.vector_axis = last_axis(nest);
  out.lanes = lane_width(nest, out.vector_axis);
}

// The axes of a map but for the last one.
std::vector<Axis> outer_axes(const LoopNest& nest) {
  std::vector<Axis> outer = nest.rows;
  outer.insert(outer.end(), nest.inner.begin(), nest.inner.end() - 1);
  return outer;
}

// Whether a load strides along the last axis and lies along another one; `told`: although the nest does not say so.
bool is_transposed(const LoopNest& nest, const Instr& instr, const Dim& other, bool told) {
  if (instr.kind != InstrKind::kLoad || !instr.conditions.empty()) return false;
  Movement m = movement(instr.offset, other);
  if (movement(instr.offset, last_axis(nest)) != Movement::kStrided) return false;
  if (m != Movement::kUnit && !(told && m == Movement::kStrided)) return false;
  for (auto& before : nest.sweeps[0].body)
    if (before.kind == InstrKind::kLoadIndex && instr.offset.depends_on(before.symbol)) return false;
  return true;
}

// Loads that lie along an axis other than the last: the innermost such axis, and all of its loads.
void find_transposed(const LoopNest& nest, int told, Schedule& out) {
  const Sweep& sweep = nest.sweeps[0];
  for (auto& store : sweep.stores)
    if (movement(store.offset, last_axis(nest)) != Movement::kUnit) return;
  auto outer = outer_axes(nest);
  for (size_t n = outer.size(); n-- > 0 && out.transposed.empty();) {
    for (size_t id = 0; id < sweep.body.size() && out.transposed.size() < kMostTransposed; ++id)
      if (is_transposed(nest, sweep.body[id], outer[n].symbol, told == int(n))) out.transposed.push_back(int(id));
    if (out.transposed.empty()) continue;
    out.transposed_axis = outer[n];
    out.spread = Spread::kTiles;
    outer.erase(outer.begin() + long(n));
    out.range = outer;
    auto squares = [](const Dim& extent) { return (extent + (kSquare - 1)) / kSquare; };
    out.work = squares(out.transposed_axis.extent) * squares(nest.inner.back().extent);
  }
}

void spread_map(const LoopNest& nest, const GpuFacts& facts, Schedule& out) {
  out.spread = Spread::kElements;
  out.range = outer_axes(nest);
  out.range.push_back(nest.inner.back());
  out.bounds = kElementThreads;
  if (facts.lanes && lanes_fit(nest))
    take_lanes(nest, VectorMode::kMap, out);
  else if (!nest.tiles)
    find_transposed(nest, facts.transposed_along, out);
}

// Replacing goes over the axes that may collide in their order, in one thread; combining does not, by atomics.
void spread_scatter(const LoopNest& nest, Schedule& out) {
  const bool ordered = nest.sweeps[0].stores[0].combine == Combine::kReplace;
  out.spread = Spread::kPoints;
  out.range = nest.rows;
  if (ordered)
    out.work = points_of(nest.inner);
  else
    out.range.insert(out.range.end(), nest.inner.begin(), nest.inner.end());
}

// Whether threads side by side read side by side when they share a row, or when each has a row of its own. Where rows are
// walked more than once, or scanned, threads share them.
void spread_rows(const LoopNest& nest, Schedule& out) {
  bool by_row = false, by_column = false, shared = nest.rows.empty();
  int walks = 0;
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    shared = shared || sweep.reductions.empty() || sweep.scans() || ++walks > 1;
    auto look = [&](const Dim& offset) {
      by_row = by_row || (!nest.inner.empty() && movement(offset, last_axis(nest)) == Movement::kUnit);
      by_column = by_column || (!nest.rows.empty() && movement(offset, nest.rows.back().symbol) == Movement::kUnit);
    };
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoad) look(instr.offset);
    for (auto& store : sweep.stores) look(store.offset);
  }
  out.spread = by_column && !by_row && !shared && out.part == KernelPart::kKernel ? Spread::kColumns : Spread::kRows;
  const bool scans = !nest.sweeps.empty() && nest.sweeps[0].scans();
  out.along = out.spread == Spread::kRows && (by_row || (!scans && !nest.reduces_own_axes()));
  out.range = nest.rows;
  out.work = points_of(nest.inner);
}

// Whether a thread can take a vector of rows that are neighbours along an axis: all that is moved lies along it or is the same
// for all of them, and steps along the inner axes are strides.
bool columns_fit(const LoopNest& nest, const Dim& axis) {
  bool unit = false;
  auto fits = [&](const Dim& offset) {
    const Movement m = movement(offset, axis);
    unit = unit || m == Movement::kUnit;
    for (auto& inner : nest.inner)
      if (movement(offset, inner.symbol) == Movement::kIrregular) return false;
    return m == Movement::kUnit || m == Movement::kFixed;
  };
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    for (auto& instr : sweep.body) {
      if (instr.kind == InstrKind::kLoadIndex || !fits(instr.offset)) return false;
      for (auto& c : instr.conditions)
        if (moves(c, axis)) return false;
    }
    for (auto& store : sweep.stores)
      if (!fits(store.offset)) return false;
  }
  return unit;
}

// The rows in another order, so that neighbours in memory are neighbours: the axis that most of what is loaded lies along is
// counted in vectors, and comes last. False where there is none.
bool take_columns(const LoopNest& nest, Schedule& out) {
  if (nest.inner.empty() || nest.reads_index()) return false;
  for (size_t d = nest.rows.size(); d-- > 0;) {
    const Axis& along = nest.rows[d];
    if (!columns_fit(nest, along.symbol)) continue;
    out.spread = Spread::kColumns;
    out.mode = VectorMode::kColumns;
    out.vector_axis = along.symbol;
    out.lanes = lane_width(nest, along.symbol);
    out.range = nest.rows;
    out.range.erase(out.range.begin() + int64_t(d));
    out.range.push_back({Dim::symbol("vector"), (along.extent + (out.lanes - 1)) / out.lanes});
    out.work = points_of(nest.inner);
    return true;
  }
  return false;
}

bool can_hold(const LoopNest& nest, const Instr& instr) {
  return instr.kind == InstrKind::kLoad && instr.conditions.empty() && !nest.operands[size_t(instr.operand)].output &&
         movement(instr.offset, last_axis(nest)) == Movement::kUnit;
}

// What several sweeps load along a row; the first sweep that loads it holds it.
void find_held(const LoopNest& nest, int vectors, Schedule& out) {
  if (vectors <= 0 || nest.inner.size() != 1 || any_moves(nest)) return;
  std::map<std::string, std::pair<HeldLoad, std::set<size_t>>> loads;
  for (size_t n = 0; n < nest.sweeps.size(); ++n)
    for (auto& instr : nest.sweeps[n].body) {
      if (nest.sweeps[n].once || !can_hold(nest, instr)) continue;
      HeldLoad load{instr.operand, instr.dtype, instr.offset, n};
      auto& known =
          loads.try_emplace(format("{} {} {}", instr.operand, instr.dtype, instr.offset), load, std::set<size_t>())
              .first->second;
      known.second.insert(n);
    }
  int64_t bytes = 0;
  for (auto& [place, load] : loads) {
    int64_t own = vectors * out.lanes * item_size(load.first.dtype);
    if (load.second.size() < 2 || bytes + own > kMostHeld) continue;
    bytes += own;
    out.held.push_back(load.first);
  }
  out.held_vectors = vectors;
}

void schedule_rows(const LoopNest& nest, const GpuFacts& facts, Schedule& out) {
  const bool search = !nest.sweeps.empty() && nest.sweeps[0].searches();
  if (facts.lanes && facts.column_lanes && !search && out.part == KernelPart::kKernel && take_columns(nest, out)) {
    for (size_t n = 0; n < nest.sweeps.size(); ++n)
      if (!nest.sweeps[n].once) out.sweeps[n].unroll = 2;
    return;
  }
  spread_rows(nest, out);
  if (search && out.spread == Spread::kRows) out.most = out.bounds = facts.target.block_threads;
  // A search looks at vectors of one axis that lies in memory, all of them alike.
  const bool searchable = out.along && nest.inner.size() == 1 && !nest.reads_index() && !any_moves(nest);
  if (facts.lanes && !facts.short_rows && out.spread == Spread::kRows && lanes_fit(nest) && (!search || searchable))
    take_lanes(nest, VectorMode::kRows, out);
  const bool vectors = out.mode == VectorMode::kRows;
  if (search) {
    out.items = kSearchItems;
    if (vectors)
      out.vector_items = kSearchBytes / (out.lanes * int(item_size(nest.sweeps[0].reductions[0].accumulator)));
    return;
  }
  out.over_inner = nest.is_map() && nest.rows.empty();
  if (out.over_inner) out.range = nest.inner;
  if (vectors && !out.over_inner) find_held(nest, facts.held_vectors, out);
  for (size_t n = 0; n < nest.sweeps.size(); ++n) {
    auto& sweep = nest.sweeps[n];
    if (!sweep.reductions.empty() && sweep.stores.empty() && sweep.body.size() <= kSmallBody)
      out.sweeps[n].unroll = vectors ? 2 : 4;
  }
}

}  // namespace

Schedule schedule(const LoopNest& nest, const GpuFacts& facts) {
  Schedule out;
  out.gpu = true;
  out.warp = facts.target.lane_width;
  out.part = facts.part;
  out.wide = facts.wide;
  out.memory = facts.memory;
  out.sweeps.resize(nest.sweeps.size());
  if (facts.part == KernelPart::kElement || facts.part == KernelPart::kRun) {
    if (facts.part == KernelPart::kRun && facts.lanes && lanes_fit(nest)) take_lanes(nest, VectorMode::kMap, out);
  } else if (facts.part == KernelPart::kKernel && nest.is_map()) {
    spread_map(nest, facts, out);
  } else if (!nest.sweeps.empty() && nest.sweeps[0].scatters()) {
    spread_scatter(nest, out);
  } else if (!nest.sweeps.empty() && nest.sweeps[0].scans()) {
    spread_rows(nest, out);
    out.lanes = out.items = kScanItems;
  } else {
    schedule_rows(nest, facts, out);
  }
  return out;
}

}  // namespace sinter
