// Rows that lie side by side in memory, a vector of them a thread: each lane has a row of its own.
#include <set>

#include "sinter/codegen/gpu/writer.h"

namespace sinter::codegen {

void GpuWriter::columns() {
  open_run();
  open_rows();
  const std::string type = index_type(), first = index_text(axis_of_lanes());
  line(format("const {} first_ = vector_ * kLanes, {} = first_;", type, first));
  line(format("const bool whole_ = first_ + kLanes <= {}{};", lanes_extent(), columns_fit_text()));
  for (size_t n = 0; n < nest_.sweeps.size(); ++n) {
    open("{");
    nest_.sweeps[n].once ? finish_columns(n) : sweep_columns(n);
    close();
  }
  close();
  close();
}

std::string GpuWriter::lanes_extent() const {
  for (auto& axis : nest_.rows)
    if (axis.symbol.same_as(axis_of_lanes())) return format("({})({})", index_type(), index_text(axis.extent));
  return {};
}

// Whether all vectors of the rows can be moved in whole accesses: the first, and steps along the inner axes keep to that.
std::string GpuWriter::columns_fit_text() const {
  std::set<std::string> tests;
  auto add = [&](const Dim& offset, int operand) {
    if (movement(offset, axis_of_lanes()) != Movement::kUnit) return;
    Dim start = offset;
    for (auto& axis : nest_.inner) {
      Dim step = *offset.coefficient_of(axis.symbol);
      if (!step.same_as(0)) tests.insert(format("({}) % kLanes == 0", index_text(step)));
      const std::string gone = to_string(axis.symbol);
      start = start.substitute([&](const std::string& name) { return name == gone ? Dim(0) : Dim::symbol(name); });
    }
    tests.insert(format("fits<{}>({}, {})", memory_text(nest_.operands[size_t(operand)].dtype),
                        operand_text(nest_, operand), index_text(start)));
  };
  for (auto& sweep : nest_.sweeps) {
    if (sweep.once) continue;
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoad) add(instr.offset, instr.operand);
    for (auto& store : sweep.stores) add(store.offset, store.operand);
  }
  std::string out;
  for (auto& test : tests) out += " && " + test;
  return out;
}

// One lane after the other, of those that exist. What sweeps before the n-th have found of its row is called as that of a
// vector is.
void GpuWriter::open_each_lane(size_t n) {
  const std::string type = index_type();
  open(format("for ({} lane_ = 0; lane_ < kLanes && first_ + lane_ < {}; ++lane_) {", type, lanes_extent()));
  line(format("const {} {} = first_ + lane_;", type, index_text(axis_of_lanes())));
  for (size_t before = 0; before < n; ++before)
    for (auto& r : nest_.sweeps[before].reductions)
      line(format("const {} found{}_ = row{}_.v[lane_];", type_text(compute_dtype(r.dtype), false), r.outer, r.outer));
  open("{");
  for (size_t before = 0; before < n; ++before)
    for (auto& r : nest_.sweeps[before].reductions)
      line(format("[[maybe_unused]] const {} row{}_ = found{}_;", type_text(compute_dtype(r.dtype), false), r.outer, r.outer));
}

void GpuWriter::open_places(size_t n) {
  const std::string type = index_type();
  line(format("const {} stop_ = {};", type, stop(index_text(points_of(nest_.inner)))));
  unroll(n);
  open(format("for ({} place_ = ({})b_.member; place_ < stop_; place_ += ({})b_.members) {", type, type, type));
  unpack_position(nest_.inner, "place_");
}

void GpuWriter::sweep_columns(size_t n) {
  const Sweep& s = nest_.sweeps[n];
  BodyWriter scalar = scalar_body(s), full(nest_, s, axis_of_lanes(), LaneMode::kFull);
  full.guard_loads();
  full.take_rows_in_lanes();
  for (auto& r : s.reductions)
    line(format("{} acc{}_ = splat_{}({});", type_text(r.accumulator, true), r.outer, r.accumulator,
                identity_text(r.combine, r.accumulator)));
  open("if (whole_) {");
  lines(full.write(inside(), false));
  open_places(n);
  full_step(s, full);
  close();
  close();
  open("else {");
  open_each_lane(n);
  for (auto& r : s.reductions)
    line(format("{} tail{}_ = {};", type_text(r.accumulator, false), r.outer, identity_text(r.combine, r.accumulator)));
  lines(scalar.write(inside(), false));
  open_places(n);
  step(s, scalar);
  close();
  for (auto& r : s.reductions) line(format("acc{}_.v[lane_] = tail{}_;", r.outer, r.outer));
  close();
  close();
  close();
  for (auto& r : s.reductions)
    line(format("row{}_ = {};", r.outer,
                cast_text(format("join<{}>(b_, acc{}_)", join_text(r.combine), r.outer), r.accumulator,
                          compute_dtype(r.dtype))));
}

void GpuWriter::finish_columns(size_t n) {
  const Sweep& s = nest_.sweeps[n];
  BodyWriter scalar = scalar_body(s);
  open("if (valid_ && b_.member == 0) {");
  open_each_lane(n);
  lines(scalar.write({}, false));
  for (auto& store : s.stores) store_one(store, scalar);
  close();
  close();
  close();
}

}  // namespace sinter::codegen
