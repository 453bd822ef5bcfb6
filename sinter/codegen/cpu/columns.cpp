// Reductions with lanes along the last row axis: each lane has a row of its own.
#include "sinter/codegen/cpu/writer.h"

namespace sinter::codegen {

namespace {

constexpr int kStripLanes = 64;   // vectors of a strip of columns: 4 KB of memory a row, 4 KB of sums
constexpr int kStripRows = 16;    // rows added to a strip at a time: as many streams as the hardware follows
constexpr int kBlockStrips = 64;  // of those make a block

constexpr const char* kEachVector = "for (i64 c_ = 0; c_ < width_; c_ += kLanes) ";

}  // namespace

void CpuWriter::columns() {
  if (nest_.rows.size() == 1) return strips("begin_", "end_");
  open("for (i64 at_ = begin_; at_ < end_; ++at_) {");
  unpack(schedule_.range);
  strips("0", index_text(nest_.rows.back().extent));
  close();
}

// A few rows at a time are added along a strip of columns whose sums stay in the first cache, so that memory is read in long
// runs, a few streams at once. Sums are kept at three levels (a few rows, a block of them, all): adding one by one into a
// large sum would lose the small terms.
void CpuWriter::strips(const std::string& lo, const std::string& hi) {
  const Sweep& s = nest_.sweeps[0];
  std::string extent = inner_extent();
  std::vector<Dim> symbols = inside();
  symbols.push_back(schedule_.vector_axis);
  lines(body(s, LaneMode::kFull).write(symbols, false));
  open(format("for (i64 strip_ = {}; strip_ < {}; strip_ += {} * kLanes) {", lo, hi, kStripLanes));
  line(format("const i64 width_ = minimum((i64)({} - strip_), (i64)({} * kLanes));", hi, kStripLanes));
  for (auto& r : s.reductions) {
    line(format("{} sums{}_[{}], blocks{}_[{}];", type_text(r.accumulator, true), r.outer, kStripLanes, r.outer,
                kStripLanes));
    line(kEachVector + format("sums{}_[c_ / kLanes] = {};", r.outer, identity_lanes(r)));
  }
  open_loops(outer_inner());
  open(format("for (i64 start_ = 0; start_ < {}; start_ += {}) {", extent, kStripRows * kBlockStrips));
  line(format("const i64 stop_ = minimum((i64)({}), start_ + {});", extent, kStripRows * kBlockStrips));
  for (auto& r : s.reductions) line(kEachVector + format("blocks{}_[c_ / kLanes] = {};", r.outer, identity_lanes(r)));
  open(format("for (i64 top_ = start_; top_ < stop_; top_ += {}) {", kStripRows));
  line(format("const i64 bottom_ = minimum(stop_, top_ + {});", kStripRows));
  over_strip([&](LaneMode mode) {
    BodyWriter lanes = body(s, mode);
    std::string k = last_text();
    for (auto& r : s.reductions)
      line(format("{} acc{}_ = {};", type_text(r.accumulator, true), r.outer, identity_lanes(r)));
    open(format("for (i64 {} = top_; {} < bottom_; ++{}) {", k, k, k));
    lines(lanes.write(symbols, true));
    for (auto& r : s.reductions) accumulate(r, format("acc{}_", r.outer), lanes.value(r.value, r.accumulator));
    close();
    for (auto& r : s.reductions) accumulate(r, format("blocks{}_[c_ / kLanes]", r.outer), format("acc{}_", r.outer));
  });
  close();
  for (auto& r : s.reductions) {
    std::string sums = format("sums{}_[c_ / kLanes]", r.outer), blocks = format("blocks{}_[c_ / kLanes]", r.outer);
    line(kEachVector + format("{} = {};", sums, combine_text(r.combine, sums, blocks)));
  }
  close();
  close_loops(outer_inner());
  over_strip([&](LaneMode mode) { finish_strip(s, mode); });
  close();
}

// What is stored of the rows in the lanes.
void CpuWriter::finish_strip(const Sweep& s, LaneMode mode) {
  for (auto& r : s.reductions) {
    DType compute = compute_dtype(r.dtype);
    line(format("const {} row{}_ = {};", type_text(compute, true), r.outer,
                cast_text(format("sums{}_[c_ / kLanes]", r.outer), r.accumulator, compute)));
  }
  for (size_t n = 1; n < nest_.sweeps.size(); ++n) {
    BodyWriter lanes = body(nest_.sweeps[n], mode);
    lanes.take_rows_in_lanes();
    lines(lanes.write({}, false));
    for (auto& store : nest_.sweeps[n].stores) store_lanes(store, lanes, mode);
  }
}

// f at every vector of the strip: whole ones, then a last that may be partial.
template <class F>
void CpuWriter::over_strip(F&& f) {
  std::string here = format("const i64 {} = strip_ + c_;", index_text(schedule_.vector_axis));
  open("{");
  line("i64 c_ = 0;");
  open("for (; c_ + kLanes <= width_; c_ += kLanes) {");
  line(here);
  f(LaneMode::kFull);
  close();
  open("if (c_ < width_) {");
  line("const i64 m_ = width_ - c_;");
  line(here);
  f(LaneMode::kPartial);
  close();
  close();
}

}  // namespace sinter::codegen
