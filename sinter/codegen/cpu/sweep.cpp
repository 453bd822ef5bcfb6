// A sweep over the inner axes of a row: element by element, or in lanes along the last one.
#include "sinter/codegen/cpu/writer.h"

namespace sinter::codegen {

namespace {

constexpr int kAccumulators = 4;  // of one reduction: enough to hide the latency of an add

}  // namespace

void CpuWriter::sweep(size_t n, const std::string& lo, const std::string& hi) {
  const Sweep& s = nest_.sweeps[n];
  if (s.once) return once(s);
  if (s.searches()) return search(s);
  Bodies bodies{body(s, LaneMode::kScalar), body(s, LaneMode::kFull), body(s, LaneMode::kPartial)};
  lines((in_lanes_ ? bodies.full : bodies.scalar).write(inside(), false));
  begin_reductions(n);
  open_loops(outer_inner());
  if (!schedule_.sweeps[n].cuts.empty()) {
    std::string name = format("cuts{}_", n);
    if (!schedule_.sweeps[n].common_cuts) write_cuts(n, lo, hi);
    bodies.full.decide_at(Dim::symbol("cut"));
    bodies.partial.decide_at(Dim::symbol("cut"));
    open(format("for (i64 piece_ = 0; piece_ <= {}; ++piece_) {", schedule_.sweeps[n].cuts.size()));
    line(format("const i64 cut_ = {}[piece_], stop_ = {}[piece_ + 1];", name, name));
    line("if (cut_ >= stop_) continue;");
    walk_lanes(n, bodies, "cut_", "stop_");
    close();
  } else if (in_lanes_) {
    walk_lanes(n, bodies, lo, hi);
  } else if (int run = schedule_.sweeps[n].run) {
    walk_runs(s, bodies.scalar, run);
  } else {
    walk(s, bodies.scalar, lo, hi);
  }
  close_loops(outer_inner());
  end_reductions(n);
}

void CpuWriter::once(const Sweep& s) {
  BodyWriter scalar(nest_, s, Dim(), LaneMode::kScalar);
  lines(scalar.write({}, false));
  for (auto& store : s.stores) store_one(store, scalar);
}

// Cuts that are the same for all rows are found once.
void CpuWriter::common_cuts(const std::string& lo, const std::string& hi) {
  for (size_t n = 0; n < nest_.sweeps.size(); ++n)
    if (!schedule_.sweeps[n].cuts.empty() && schedule_.sweeps[n].common_cuts) write_cuts(n, lo, hi);
}

void CpuWriter::write_cuts(size_t n, const std::string& lo, const std::string& hi) {
  auto& places = schedule_.sweeps[n].cuts;
  std::string list = format("(i64)({})", lo);
  for (auto& place : places)
    list += format(", minimum(maximum((i64)({}), (i64)({})), (i64)({}))", index_text(place), lo, hi);
  line(format("i64 cuts{}_[] = {{}, (i64)({})};", n, list, hi));
  line(format("sort_cuts(cuts{}_, {});", n, places.size() + 2));
}

// One element, into accumulators of this name.
void CpuWriter::step(const Sweep& s, BodyWriter& scalar, const char* accumulators) {
  lines(scalar.write(inside(), true));
  for (auto& r : s.reductions)
    accumulate(r, format("{}{}_", accumulators, r.outer), scalar.value(r.value, r.accumulator));
  for (auto& store : s.stores) store.running >= 0 ? store_running(s, store) : store_one(store, scalar);
}

void CpuWriter::walk(const Sweep& s, BodyWriter& scalar, const std::string& lo, const std::string& hi) {
  if (nest_.inner.empty()) return step(s, scalar, "acc");
  std::string k = last_text();
  open(format("for (i64 {} = {}; {} < {}; ++{}) {", k, lo, k, hi, k));
  step(s, scalar, "acc");
  close();
}

// Runs of the innermost axis are added up apart.
void CpuWriter::walk_runs(const Sweep& s, BodyWriter& scalar, int run) {
  std::string k = last_text(), extent = inner_extent();
  open(format("for (i64 start_ = 0; start_ < {}; start_ += {}) {", extent, run));
  line(format("const i64 stop_ = minimum((i64)({}), start_ + {});", extent, run));
  for (auto& r : s.reductions)
    line(format("{} run{}_ = {};", type_text(r.accumulator, false), r.outer, identity_text(r.combine, r.accumulator)));
  open(format("for (i64 {} = start_; {} < stop_; ++{}) {", k, k, k));
  step(s, scalar, "run");
  close();
  for (auto& r : s.reductions) accumulate(r, format("acc{}_", r.outer), format("run{}_", r.outer));
  close();
}

void CpuWriter::walk_lanes(size_t n, Bodies& bodies, const std::string& lo, const std::string& hi) {
  const Sweep& s = nest_.sweeps[n];
  std::string k = last_text();
  line(format("i64 {} = {};", k, lo));
  if (!s.reductions.empty()) {
    open(format("for (; {} + {} * kLanes <= {}; ) {", k, kAccumulators, hi));
    for (int u = 0; u < kAccumulators; ++u) {
      open("{");
      full_step(n, bodies.full, u);
      close();
      line(format("{} += kLanes;", k));
    }
    close();
  }
  open(format("for (; {} + kLanes <= {}; {} += kLanes) {", k, hi, k));
  full_step(n, bodies.full, 0);
  close();
  if (schedule_.sweeps[n].single_tail) {
    open(format("for (; {} < {}; ++{}) {", k, hi, k));
    step(s, bodies.scalar, "tail");
    return close();
  }
  open(format("if ({} < {}) {", k, hi));
  line(format("const i64 m_ = {} - {};", hi, k));
  lines(bodies.partial.write(inside(), true));
  for (auto& r : s.reductions)
    accumulate(
        r, format("acc{}_0_", r.outer),
        format("select(first_lanes(m_), {}, {})", bodies.partial.value(r.value, r.accumulator), identity_lanes(r)));
  for (auto& store : s.stores) store_lanes(store, bodies.partial, LaneMode::kPartial);
  close();
}

void CpuWriter::full_step(size_t n, BodyWriter& full, int accumulator) {
  const Sweep& s = nest_.sweeps[n];
  auto& pairs = schedule_.sweeps[n].pairs;
  lines(full.write(inside(), true));
  for (auto& r : s.reductions)
    accumulate(r, format("acc{}_{}_", r.outer, accumulator), full.value(r.value, r.accumulator));
  for (size_t i = 0, pair = 0; i < s.stores.size(); ++i) {
    if (pair < pairs.size() && pairs[pair] == i) {
      store_pair(s.stores[i], s.stores[i + 1], full);
      ++pair, ++i;
    } else {
      store_lanes(s.stores[i], full, LaneMode::kFull);
    }
  }
}

void CpuWriter::begin_reductions(size_t n) {
  for (auto& r : nest_.sweeps[n].reductions) {
    std::string identity = identity_text(r.combine, r.accumulator);
    if (!in_lanes_) {
      line(format("{} acc{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
      continue;
    }
    for (int u = 0; u < kAccumulators; ++u)
      line(format("{} acc{}_{}_ = {};", type_text(r.accumulator, true), r.outer, u, identity_lanes(r)));
    if (schedule_.sweeps[n].single_tail)
      line(format("{} tail{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
  }
}

// Accumulators are joined in a fixed order.
void CpuWriter::end_reductions(size_t n) {
  if (nest_.sweeps[n].scans()) return;
  for (auto& r : nest_.sweeps[n].reductions) {
    std::string value = format("acc{}_", r.outer);
    if (in_lanes_) {
      auto acc = [&](int u) { return format("acc{}_{}_", r.outer, u); };
      accumulate(r, acc(0), acc(1));
      accumulate(r, acc(2), acc(3));
      accumulate(r, acc(0), acc(2));
      value = format("{}({})", horizontal_text(r.combine), acc(0));
      if (schedule_.sweeps[n].single_tail) value = combine_text(r.combine, value, format("tail{}_", r.outer));
    }
    line(format("row{}_ = {};", r.outer, cast_text(value, r.accumulator, compute_dtype(r.dtype))));
  }
}

}  // namespace sinter::codegen
