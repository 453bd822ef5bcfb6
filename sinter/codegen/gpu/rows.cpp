// Sweeps over rows that threads share.
#include <set>

#include "sinter/codegen/gpu/lanes.h"
#include "sinter/codegen/gpu/writer.h"

namespace sinter::codegen {

void GpuWriter::rows() {
  open_run();
  if (schedule_.over_inner) {
    // A map without rows, inside another kernel: the range is a piece of its one axis.
    line("const bool valid_ = true;");
    sweep(0);
  } else {
    open_rows();
    // What a sweep has not loaded in vectors is not held.
    if (!schedule_.held.empty()) line("bool held_whole_ = true;");
    for (size_t n = 0; n < schedule_.held.size(); ++n)
      line(format("Held<{}> held{}_[{}];", memory_text(schedule_.held[n].dtype), n, schedule_.held_vectors));
    for (size_t n = 0; n < nest_.sweeps.size(); ++n) {
      open("{");
      sweep(n);
      close();
    }
    close();
  }
  close();
}

void GpuWriter::sweep(size_t n) {
  const Sweep& s = nest_.sweeps[n];
  if (s.once) {
    BodyWriter body(nest_, s, Dim(), LaneMode::kScalar);
    open("if (valid_ && b_.member == 0) {");
    lines(body.write({}, false));
    for (auto& store : s.stores) store_one(store, body);
    return close();
  }
  if (s.searches()) return search(s);
  BodyWriter scalar = scalar_body(s), full = full_body(s);
  lines((in_lanes_ ? full : scalar).write(inside(), false));
  for (auto& r : s.reductions) {
    std::string identity = identity_text(r.combine, r.accumulator);
    line(format("{} tail{}_ = {};", type_text(r.accumulator, false), r.outer, identity));
    if (in_lanes_)
      line(format("{} acc{}_ = splat_{}({});", type_text(r.accumulator, true), r.outer, r.accumulator, identity));
  }
  in_lanes_ ? walk_lanes(n, full, scalar) : walk(n, scalar);
  for (auto& r : s.reductions) {
    std::string op = join_text(r.combine), value = format("tail{}_", r.outer);
    if (in_lanes_) value = format("{}::join(join_lanes<{}>(acc{}_), {})", op, op, r.outer, value);
    value = format("join<{}>(b_, {}, {})", op, value, identity_text(r.combine, r.accumulator));
    line(format("row{}_ = {};", r.outer, cast_text(value, r.accumulator, compute_dtype(r.dtype))));
  }
}

void GpuWriter::unroll(size_t n) {
  if (int times = schedule_.sweeps[n].unroll) line(format("#pragma unroll {}", times));
}

// One element at a time, over all inner axes as one.
void GpuWriter::walk(size_t n, BodyWriter& scalar) {
  std::string type = index_type();
  line(format("const {} stop_ = {};", type, stop(index_text(points_of(nest_.inner)))));
  unroll(n);
  open(format("for ({} place_ = {}({})b_.member; place_ < stop_; place_ += ({})b_.members) {", type, first(), type,
              type));
  unpack_position(nest_.inner, "place_");
  step(nest_.sweeps[n], scalar);
  close();
}

void GpuWriter::step(const Sweep& s, BodyWriter& scalar) {
  lines(scalar.write(inside(), true));
  for (auto& r : s.reductions) accumulate(r, format("tail{}_", r.outer), scalar.value(r.value, r.accumulator));
  for (auto& store : s.stores) store_one(store, scalar);
}

// The vectors that are held of what a load reads; -1 for none.
int GpuWriter::held_at(const Instr& instr) const {
  if (instr.kind != InstrKind::kLoad || !instr.conditions.empty()) return -1;
  for (size_t n = 0; n < schedule_.held.size(); ++n)
    if (schedule_.held[n].is(instr)) return int(n);
  return -1;
}

// The first vectors of the row, which stay in registers. They are all on their way before the first is looked at.
void GpuWriter::walk_held(size_t n, BodyWriter& full) {
  const Sweep& s = nest_.sweeps[n];
  std::string type = index_type(), i = index_text(axis());
  std::vector<int> read;
  std::set<int> loaded;
  for (size_t id = 0; id < s.body.size(); ++id)
    if (held_at(s.body[id]) >= 0) read.push_back(int(id));
  std::vector<std::string> loads;
  for (int id : read) {
    auto& instr = s.body[size_t(id)];
    int at = held_at(instr);
    if (schedule_.held[size_t(at)].by == n && loaded.insert(at).second)
      loads.push_back(format("held{}_[round_] = hold<{}>({}, {});", at, memory_text(instr.dtype),
                             operand_text(nest_, instr.operand), index_text(instr.offset)));
  }
  if (!loads.empty()) {
    line(format("const {} start_ = {};", type, i));
    line("#pragma unroll");
    open(format("for (int round_ = 0; round_ < {}; ++round_) {", schedule_.held_vectors));
    line(format("const {} {} = start_ + round_ * ({})b_.members * kLanes;", type, i, type));
    line(format("if (!whole_ || {} + kLanes > stop_) continue;", i));
    lines(loads);
    close();
  }
  line("#pragma unroll");
  open(format("for (int round_ = 0; round_ < {}; ++round_, {} += ({})b_.members * kLanes) {", schedule_.held_vectors, i, type));
  open(format("if (whole_ && {} + kLanes <= stop_) {", i));
  line("const int prepared_row_ = 0;");
  for (int id : read) {
    auto& instr = s.body[size_t(id)];
    line(format("const Held<{}>& prepared{}_ = held{}_[round_];", memory_text(instr.dtype), id, held_at(instr)));
  }
  full.read_prepared(read);
  full_step(s, full);
  full.read_prepared({});
  close();
  line(format("else if ({} < stop_) break;", i));
  close();
}

void GpuWriter::full_step(const Sweep& s, BodyWriter& full) {
  lines(full.write(inside(), true));
  for (auto& r : s.reductions) accumulate(r, format("acc{}_", r.outer), full.value(r.value, r.accumulator));
  for (auto& store : s.stores) store_lanes(store, full);
}

void GpuWriter::walk_lanes(size_t n, BodyWriter& full, BodyWriter& scalar) {
  const Sweep& s = nest_.sweeps[n];
  const bool holds = !schedule_.held.empty();
  std::string type = index_type(), i = index_text(axis());
  line(format("const {} stop_ = {};", type, stop(index_text(nest_.inner.back().extent))));
  for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) {
    std::string outer = index_text(nest_.inner[d].symbol);
    open(format("for ({} {} = 0; {} < {}; ++{}) {", type, outer, outer, index_text(nest_.inner[d].extent), outer));
  }
  line(format("{} {} = {}({})b_.member * kLanes;", type, i, first(), type));
  // The same for all vectors of a row: they are whole accesses apart.
  line(format("const bool whole_ = {}{};", holds ? "held_whole_" : "true", fits_text(nest_, s, false)));
  if (holds) line("held_whole_ = whole_;");
  if (holds) walk_held(n, full);
  auto one_by_one = [&](const std::string& run) {
    open_tail("stop_", run);
    step(s, scalar);
    close();
  };
  const std::string alike = alike_text(nest_, s);
  unroll(n);
  open(format("for (; whole_ && {} + kLanes <= stop_; {} += ({})b_.members * kLanes) {", i, i, type));
  if (alike.empty()) {
    full_step(s, full);
  } else {
    open(format("if ({}) {", alike.substr(4)));
    full_step(s, full);
    close();
    open("else {");
    one_by_one("kLanes");
    close();
  }
  close();
  // The end of the row; all of it where it does not lie in whole accesses: threads side by side take neighbours then.
  line(format("const {} run_ = whole_ ? kLanes : 1;", type));
  line(format("if (!whole_) {} = {}({})b_.member;", i, first(), type));
  open(format("for (; {} < stop_; {} += ({})b_.members * run_) {", i, i, type));
  one_by_one("run_");
  close();
  for (size_t d = 0; d + 1 < nest_.inner.size(); ++d) close();
}

}  // namespace sinter::codegen
