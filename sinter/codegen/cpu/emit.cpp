#include "sinter/codegen/cpu/emit.h"

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/codegen/combine_text.h"
#include "sinter/codegen/text_writer.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

namespace {

constexpr int kTile = 4;          // accumulators of a row: enough to hide the latency of an add
constexpr int kStripLanes = 64;   // vectors of a strip of columns: 4 KB of memory a row, 4 KB of sums
constexpr int kStripRows = 16;    // rows added to a strip at a time: as many streams as the hardware follows
constexpr int kBlockStrips = 64;  // of those make a block
constexpr int kScalarRun = 256;   // elements a scalar loop adds up before it joins them to the rest

class KernelWriter : TextWriter {
 public:
  KernelWriter(const LoopNest& nest, const Schedule& schedule) : nest_(nest), schedule_(schedule) {}

  KernelText write(const std::string& name) {
    // Maps and column reductions keep their last axis as an inner loop of its own.
    bool inner_last = nest_.kind == NestKind::kMap || schedule_.mode == VectorMode::kColumns;
    result_.split_last = inner_last && nest_.parallel.size() > 1;
    if (schedule_.mode == VectorMode::kColumns && !result_.split_last) result_.lanes_per_step = kStripLanes;
    open("extern \"C\" void " + name + "(const i64* a_, i64 begin_, i64 end_) {");
    prologue();
    if (schedule_.mode == VectorMode::kColumns)
      over_inner_axis([&](auto lo, auto hi) { columns(lo, hi); });
    else if (turns())
      turned_map();
    else if (nest_.kind == NestKind::kMap && !nest_.parallel.empty())
      over_inner_axis([&](auto lo, auto hi) { map(lo, hi); });
    else
      over_all_parallel([&] { nest_.kind == NestKind::kReduce ? reduce() : step_by_step(); });
    if (schedule_.stream) line("stream_fence();");
    close();
    result_.text = std::move(text_);
    return std::move(result_);
  }

 private:
  void prologue() {
    size_t slot = take_arguments(nest_, nest_.params());
    for (auto& instr : nest_.body)
      if (instr.kind == InstrKind::kLoadIndex) return line(format("i64* error_ = (i64*)a_[{}];", slot));
  }

  template <class F>
  void over_inner_axis(F&& f) {
    if (!result_.split_last) return f("begin_", "end_");
    open("for (i64 at_ = begin_; at_ < end_; ++at_) {");
    unpack(nest_.parallel, nest_.parallel.size() - 1);
    f("0", index_text(nest_.parallel.back().extent));
    close();
  }

  template <class F>
  void over_all_parallel(F&& f) {
    open("for (i64 at_ = begin_; at_ < end_; ++at_) {");
    unpack(nest_.parallel, nest_.parallel.size());
    f();
    close();
  }

  void open_loops(const std::vector<Axis>& axes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      auto& axis = axes[i];
      open(format("for (i64 {} = 0; {} < {}; ++{}) {", index_text(axis.symbol), index_text(axis.symbol),
                  index_text(axis.extent), index_text(axis.symbol)));
    }
  }
  void close_loops(size_t count) {
    for (size_t i = 0; i < count; ++i) close();
  }

  DType out_dtype() const { return nest_.operands[size_t(nest_.output)].dtype; }

  std::string store_lanes(const std::string& value, LaneMode mode) const {
    Movement m = movement(nest_.offset, schedule_.vector_axis);
    std::string dtype = memory_text(out_dtype()), at = index_text(nest_.offset);
    if (m == Movement::kStrided) {
      std::string stride = index_text(*nest_.offset.coefficient_of(schedule_.vector_axis));
      if (mode == LaneMode::kPartial)
        return format("store_strided_partial<{}>(out_, {}, {}, m_, {});", dtype, at, stride, value);
      return format("store_strided<{}>(out_, {}, {}, {});", dtype, at, stride, value);
    }
    if (mode == LaneMode::kPartial) return format("store_partial<{}>(out_, {}, m_, {});", dtype, at, value);
    return format("{}<{}>(out_, {}, {});", schedule_.stream ? "stream" : "store", dtype, at, value);
  }
  std::string store_one(const std::string& value) const {
    return format("store1<{}>(out_, {}, {});", memory_text(out_dtype()), index_text(nest_.offset), value);
  }

  bool any_strided() const {
    if (movement(nest_.offset, schedule_.vector_axis) == Movement::kStrided) return true;
    for (auto& instr : nest_.body)
      if (instr.kind == InstrKind::kLoad && movement(instr.offset, schedule_.vector_axis) == Movement::kStrided) return true;
    return false;
  }

  void map(const std::string& lo, const std::string& hi) {
    const Axis& axis = nest_.parallel.back();
    std::string i = index_text(axis.symbol);
    DType out = compute_dtype(out_dtype());
    BodyWriter scalar(nest_, axis.symbol, LaneMode::kScalar);
    if (schedule_.mode == VectorMode::kScalar) {
      lines(scalar.write({axis.symbol}, false));
      open(format("for (i64 {} = {}; {} < {}; ++{}) {", i, lo, i, hi, i));
      lines(scalar.write({axis.symbol}, true));
      line(store_one(scalar.value(nest_.value, out)));
      return close();
    }
    BodyWriter full(nest_, axis.symbol, LaneMode::kFull), partial(nest_, axis.symbol, LaneMode::kPartial);
    lines(full.write({axis.symbol}, false));
    line(format("i64 {} = {};", i, lo));
    open(format("for (; {} + kLanes <= {}; {} += kLanes) {", i, hi, i));
    lines(full.write({axis.symbol}, true));
    line(store_lanes(full.value(nest_.value, out), LaneMode::kFull));
    close();
    // A tail in lanes cannot stop a strided access short; one element at a time gives the same bits.
    if (any_strided()) {
      open(format("for (; {} < {}; ++{}) {", i, hi, i));
      lines(scalar.write({axis.symbol}, true));
      line(store_one(scalar.value(nest_.value, out)));
      return close();
    }
    open(format("if ({} < {}) {", i, hi));
    line(format("const i64 m_ = {} - {};", hi, i));
    lines(partial.write({axis.symbol}, true));
    line(store_lanes(partial.value(nest_.value, out), LaneMode::kPartial));
    close();
  }

  // Where lanes would gather from columns: as many rows as lanes at a time, so that columns are loaded as vectors.
  bool turns() const {
    size_t rank = nest_.parallel.size();
    return schedule_.mode == VectorMode::kMap && rank > 1 &&
           movement(nest_.offset, schedule_.vector_axis) == Movement::kUnit && !turned().empty();
  }
  std::vector<int> turned() const {
    return turnable_loads(nest_, schedule_.vector_axis, nest_.parallel[nest_.parallel.size() - 2].symbol);
  }

  void turned_map() {
    result_.rows_in_lanes = true;
    const Axis& axis = nest_.parallel.back();
    std::vector<Axis> rows(nest_.parallel.begin(), nest_.parallel.end() - 1);
    DType out = compute_dtype(out_dtype());
    turned_rows(
        nest_, rows, axis, [&] { map("0", index_text(axis.extent)); },
        [&](BodyWriter& body) { line(store_lanes(body.value(nest_.value, out), LaneMode::kFull)); },
        [&](BodyWriter& body) { line(store_one(body.value(nest_.value, out))); });
  }

  std::vector<Dim> inner_symbols(const Dim& also) const {
    std::vector<Dim> inside;
    for (auto& axis : nest_.sequential) inside.push_back(axis.symbol);
    if (!also.is_number()) inside.push_back(also);
    return inside;
  }

  void reduce() {
    bool in_lanes = schedule_.mode == VectorMode::kRows;
    if (nest_.payload >= 0) return in_lanes ? arg_rows() : arg_reduce();
    if (in_lanes) return rows();
    DType acc = nest_.accumulator;
    std::string type = type_text(acc, false), identity = identity_text(nest_.combine, acc);
    line(format("{} acc_ = {};", type, identity));
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inner_symbols({}), false));
    if (nest_.sequential.empty()) {
      accumulate("acc_", body.value(nest_.value, acc));
    } else {
      // Runs of the innermost axis are added apart: one by one, small terms would be lost in a large sum.
      const Axis& last = nest_.sequential.back();
      std::string k = index_text(last.symbol), extent = index_text(last.extent);
      open_loops(nest_.sequential, nest_.sequential.size() - 1);
      open(format("for (i64 start_ = 0; start_ < {}; start_ += {}) {", extent, kScalarRun));
      line(format("const i64 stop_ = minimum((i64)({}), start_ + {});", extent, kScalarRun));
      line(format("{} run_ = {};", type, identity));
      open(format("for (i64 {} = start_; {} < stop_; ++{}) {", k, k, k));
      lines(body.write(inner_symbols({}), true));
      accumulate("run_", body.value(nest_.value, acc));
      close();
      accumulate("acc_", "run_");
      close();
      close_loops(nest_.sequential.size() - 1);
    }
    line(store_one(cast_text("acc_", acc, compute_dtype(out_dtype()))));
  }

  const char* beats_text() const { return nest_.combine == Combine::kArgMax ? "beats<true>" : "beats<false>"; }

  // The payload of the first element: what wins when nothing beats the neutral element.
  void start_with_first(DType acc) {
    open("auto first_ = [&] {");
    for (auto& axis : nest_.sequential) line(format("const i64 {} = 0;", index_text(axis.symbol)));
    line(format("return {};", index_text(nest_.body[size_t(nest_.payload)].offset)));
    close("};");
    line(format("{} best_ = {};", type_text(acc, false), identity_text(nest_.combine, acc)));
    line("i64 winner_ = first_();");
  }

  void arg_reduce() {
    DType acc = nest_.accumulator;
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inner_symbols({}), false));
    start_with_first(acc);
    open_loops(nest_.sequential, nest_.sequential.size());
    lines(body.write(inner_symbols({}), true));
    line(format("const {} value_ = {};", type_text(acc, false), body.value(nest_.value, acc)));
    open(format("if ({}(value_, best_)) {", beats_text()));
    line("best_ = value_;");
    line(format("winner_ = {};", BodyWriter::variable(nest_.payload)));
    close();
    close_loops(nest_.sequential.size());
    line(store_one(cast_text("winner_", kInt64, compute_dtype(out_dtype()))));
  }

  // The same with lanes along the last sequential axis, each with a winner of its own.
  void arg_rows() {
    const Axis& axis = nest_.sequential.back();
    std::string k = index_text(axis.symbol), n = index_text(axis.extent);
    DType acc = nest_.accumulator;
    std::string type = type_text(acc, true);
    BodyWriter full(nest_, axis.symbol, LaneMode::kFull), partial(nest_, axis.symbol, LaneMode::kPartial);
    lines(full.write(inner_symbols({}), false));
    start_with_first(acc);
    line(format("{} bests_ = splat_{}(best_);", type, acc));
    line("i64v winners_ = splat_i64(winner_);");
    open_loops(nest_.sequential, nest_.sequential.size() - 1);
    line(format("i64 {} = 0;", k));
    open(format("for (; {} + kLanes <= {}; {} += kLanes) {", k, n, k));
    take_winners(full, full.value(nest_.value, acc), type);
    close();
    open(format("if ({} < {}) {", k, n));
    line(format("const i64 m_ = {} - {};", n, k));
    take_winners(partial,
                 format("select(first_lanes(m_), {}, splat_{}({}))", partial.value(nest_.value, acc), acc,
                        identity_text(nest_.combine, acc)),
                 type);
    close();
    close_loops(nest_.sequential.size() - 1);
    line(format("winner_ = join_winners<{}>(bests_, winners_);", nest_.combine == Combine::kArgMax));
    line(store_one(cast_text("winner_", kInt64, compute_dtype(out_dtype()))));
  }

  void take_winners(BodyWriter& body, const std::string& value, const std::string& type) {
    lines(body.write(inner_symbols({}), true));
    line(format("const {} values_ = {};", type, value));
    line(format("const maskv better_ = {}(values_, bests_);", beats_text()));
    line("bests_ = select(better_, values_, bests_);");
    line(format("winners_ = select(better_, {}, winners_);", body.value(nest_.payload, kInt64)));
  }

  // Lanes along the last sequential axis; kTile accumulators, joined in a fixed order.
  void rows() {
    const Axis& axis = nest_.sequential.back();
    std::string k = index_text(axis.symbol), n = index_text(axis.extent);
    DType acc = nest_.accumulator;
    std::string type = type_text(acc, true), identity = format("splat_{}({})", acc, identity_text(nest_.combine, acc));
    BodyWriter full(nest_, axis.symbol, LaneMode::kFull), partial(nest_, axis.symbol, LaneMode::kPartial);
    lines(full.write(inner_symbols({}), false));
    for (int u = 0; u < kTile; ++u) line(format("{} acc{}_ = {};", type, u, identity));
    open_loops(nest_.sequential, nest_.sequential.size() - 1);
    open(format("auto lanes_ = [&](const i64 {}) __attribute__((always_inline)) {", k));
    lines(full.write(inner_symbols({}), true));
    line(format("return {};", full.value(nest_.value, acc)));
    close("};");
    line(format("i64 {} = 0;", k));
    open(format("for (; {} + {} * kLanes <= {}; {} += {} * kLanes) {", k, kTile, n, k, kTile));
    for (int u = 0; u < kTile; ++u) accumulate(format("acc{}_", u), format("lanes_({} + {} * kLanes)", k, u));
    close();
    open(format("for (; {} + kLanes <= {}; {} += kLanes) {", k, n, k));
    accumulate("acc0_", format("lanes_({})", k));
    close();
    open(format("if ({} < {}) {", k, n));
    line(format("const i64 m_ = {} - {};", n, k));
    lines(partial.write(inner_symbols({}), true));
    line(format("const {} last_ = select(first_lanes(m_), {}, {});", type, partial.value(nest_.value, acc), identity));
    accumulate("acc0_", "last_");
    close();
    close_loops(nest_.sequential.size() - 1);
    accumulate("acc0_", "acc1_");
    accumulate("acc2_", "acc3_");
    accumulate("acc0_", "acc2_");
    line(store_one(cast_text(format("{}(acc0_)", horizontal_text(nest_.combine)), acc, compute_dtype(out_dtype()))));
  }

  // Lanes along the last parallel axis: each lane has its own sum. A few rows at a time are added along a strip of columns
  // whose sums stay in the first cache, so that memory is read in long runs, a few streams at once. Sums are kept at three
  // levels (a few rows, a block of them, all): adding one by one into a large sum would lose the small terms.
  void columns(const std::string& lo, const std::string& hi) {
    const Axis &axis = nest_.parallel.back(), &rows = nest_.sequential.back();
    DType acc = nest_.accumulator;
    std::string type = type_text(acc, true), k = index_text(rows.symbol), extent = index_text(rows.extent);
    std::string identity = format("splat_{}({})", acc, identity_text(nest_.combine, acc));
    std::string each = "for (i64 c_ = 0; c_ < width_; c_ += kLanes) ";
    BodyWriter full(nest_, axis.symbol, LaneMode::kFull), partial(nest_, axis.symbol, LaneMode::kPartial);
    lines(full.write(inner_symbols(axis.symbol), false));
    open(format("for (i64 strip_ = {}; strip_ < {}; strip_ += {} * kLanes) {", lo, hi, kStripLanes));
    line(format("const i64 width_ = minimum((i64)({} - strip_), (i64)({} * kLanes));", hi, kStripLanes));
    line(format("{} sums_[{}], blocks_[{}];", type, kStripLanes, kStripLanes));
    line(each + format("sums_[c_ / kLanes] = {};", identity));
    open_loops(nest_.sequential, nest_.sequential.size() - 1);
    open(format("for (i64 start_ = 0; start_ < {}; start_ += {}) {", extent, kStripRows * kBlockStrips));
    line(format("const i64 stop_ = minimum((i64)({}), start_ + {});", extent, kStripRows * kBlockStrips));
    line(each + format("blocks_[c_ / kLanes] = {};", identity));
    open(format("for (i64 top_ = start_; top_ < stop_; top_ += {}) {", kStripRows));
    line(format("const i64 bottom_ = minimum(stop_, top_ + {});", kStripRows));
    over_strip([&](LaneMode mode) {
      BodyWriter& body = mode == LaneMode::kFull ? full : partial;
      line(format("{} acc_ = {};", type, identity));
      open(format("for (i64 {} = top_; {} < bottom_; ++{}) {", k, k, k));
      lines(body.write(inner_symbols(axis.symbol), true));
      accumulate("acc_", body.value(nest_.value, acc));
      close();
      accumulate("blocks_[c_ / kLanes]", "acc_");
    });
    close();
    line(each +
         format("sums_[c_ / kLanes] = {};", combine_text(nest_.combine, "sums_[c_ / kLanes]", "blocks_[c_ / kLanes]")));
    close();
    close_loops(nest_.sequential.size() - 1);
    over_strip([&](LaneMode mode) {
      line(store_lanes(cast_text("sums_[c_ / kLanes]", acc, compute_dtype(out_dtype())), mode));
    });
    close();
  }

  // f at every vector of the strip: whole ones, then a last that may be partial.
  template <class F>
  void over_strip(F&& f) {
    std::string here = format("const i64 {} = strip_ + c_;", index_text(nest_.parallel.back().symbol));
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

  void accumulate(const std::string& acc, const std::string& value) {
    line(format("{} = {};", acc, combine_text(nest_.combine, acc, value)));
  }

  // Scans and scatters, and maps of no axes: element by element, in order.
  void step_by_step() {
    DType out = compute_dtype(out_dtype()), acc = nest_.accumulator;
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inner_symbols({}), false));
    if (nest_.kind == NestKind::kMap) return line(store_one(body.value(nest_.value, out)));
    if (nest_.kind == NestKind::kScan)
      line(format("{} acc_ = {};", type_text(acc, false), identity_text(nest_.combine, acc)));
    open_loops(nest_.sequential, nest_.sequential.size());
    lines(body.write(inner_symbols({}), true));
    if (nest_.kind == NestKind::kScan) {
      accumulate("acc_", body.value(nest_.value, acc));
      line(store_one(cast_text("acc_", acc, out)));
    } else if (nest_.combine == Combine::kReplace) {
      line(store_one(body.value(nest_.value, out)));
    } else {
      line(format("const i64 to_ = {};", index_text(nest_.offset)));
      std::string old = cast_text(format("load1<{}>(out_, to_)", memory_text(out_dtype())), out, acc);
      std::string sum = combine_text(nest_.combine, old, body.value(nest_.value, acc));
      line(format("store1<{}>(out_, to_, {});", memory_text(out_dtype()), cast_text(sum, acc, out)));
    }
    close_loops(nest_.sequential.size());
  }

  const LoopNest& nest_;
  const Schedule& schedule_;
  KernelText result_;
};

}  // namespace

KernelText emit_cpu(const LoopNest& nest, const Schedule& schedule, const std::string& name) {
  StageTimer timer(CompileStage::kEmit);
  return KernelWriter(nest, schedule).write(name);
}

const std::string& cpu_prelude(int lanes) {
  auto text = [](int width) {
    std::string out = format("#define SINTER_LANES {}\n", width);
    for (const char* part : {embedded::prelude, embedded::arith, embedded::math, embedded::random, embedded::kernel_support,
                             embedded::self_check})
      out += part;
    return out + "using namespace k;\n";
  };
  static const std::string narrow = text(4), middle = text(8), wide = text(16);
  return lanes == 16 ? wide : lanes == 8 ? middle : narrow;
}

}  // namespace sinter::codegen
