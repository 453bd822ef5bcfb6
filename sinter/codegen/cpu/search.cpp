// The place of an extreme: one sweep that keeps something of the winner.
#include "sinter/codegen/cpu/writer.h"

namespace sinter::codegen {

namespace {

const char* beats_text(const RowReduction& r) { return r.combine == Combine::kArgMax ? "beats<true>" : "beats<false>"; }

}  // namespace

void CpuWriter::search(const Sweep& s) {
  const RowReduction& r = s.reductions[0];
  in_lanes_ ? search_lanes(s, r) : search_one_by_one(s, r);
  line(format("row{}_ = {};", r.outer, cast_text("winner_", kInt64, compute_dtype(r.dtype))));
}

// The payload of the first element: what wins when nothing beats the neutral element.
void CpuWriter::start_with_first(const Sweep& s, const RowReduction& r) {
  open("auto first_ = [&] {");
  for (auto& axis : nest_.inner) line(format("const i64 {} = 0;", index_text(axis.symbol)));
  line(format("return {};", index_text(s.body[size_t(r.payload)].offset)));
  close("};");
  line(format("{} best_ = {};", type_text(r.accumulator, false), identity_text(r.combine, r.accumulator)));
  line("i64 winner_ = first_();");
}

void CpuWriter::search_one_by_one(const Sweep& s, const RowReduction& r) {
  BodyWriter scalar = body(s, LaneMode::kScalar);
  lines(scalar.write(inside(), false));
  start_with_first(s, r);
  open_loops(nest_.inner);
  lines(scalar.write(inside(), true));
  line(format("const {} value_ = {};", type_text(r.accumulator, false), scalar.value(r.value, r.accumulator)));
  open(format("if ({}(value_, best_)) {", beats_text(r)));
  line("best_ = value_;");
  line(format("winner_ = {};", BodyWriter::variable(r.payload)));
  close();
  close_loops(nest_.inner);
}

// Lanes along the last axis, each with a winner of its own.
void CpuWriter::search_lanes(const Sweep& s, const RowReduction& r) {
  std::string k = last_text(), n = inner_extent();
  BodyWriter full = body(s, LaneMode::kFull), partial = body(s, LaneMode::kPartial);
  lines(full.write(inside(), false));
  start_with_first(s, r);
  line(format("{} bests_ = splat_{}(best_);", type_text(r.accumulator, true), r.accumulator));
  line("i64v winners_ = splat_i64(winner_);");
  open_loops(outer_inner());
  line(format("i64 {} = 0;", k));
  open(format("for (; {} + kLanes <= {}; {} += kLanes) {", k, n, k));
  take_winners(r, full, full.value(r.value, r.accumulator));
  close();
  open(format("if ({} < {}) {", k, n));
  line(format("const i64 m_ = {} - {};", n, k));
  take_winners(r, partial,
               format("select(first_lanes(m_), {}, {})", partial.value(r.value, r.accumulator), identity_lanes(r)));
  close();
  close_loops(outer_inner());
  line(format("winner_ = join_winners<{}>(bests_, winners_);", r.combine == Combine::kArgMax));
}

void CpuWriter::take_winners(const RowReduction& r, BodyWriter& body, const std::string& value) {
  lines(body.write(inside(), true));
  line(format("const {} values_ = {};", type_text(r.accumulator, true), value));
  line(format("const maskv better_ = {}(values_, bests_);", beats_text(r)));
  line("bests_ = select(better_, values_, bests_);");
  line(format("winners_ = select(better_, {}, winners_);", body.value(r.payload, kInt64)));
}

}  // namespace sinter::codegen
