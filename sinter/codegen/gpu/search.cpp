// Searches, scans and scatters.
#include "sinter/codegen/gpu/lanes.h"
#include "sinter/codegen/gpu/writer.h"

namespace sinter::codegen {

// The place of an extreme. What wins when nothing beats the neutral element is the first element.
void GpuWriter::search(const Sweep& s) {
  const RowReduction& r = s.reductions[0];
  std::string type = index_type(), largest = r.combine == Combine::kArgMax ? "true" : "false";
  BodyWriter body(nest_, s, axis(), in_lanes_ ? LaneMode::kFull : LaneMode::kScalar);
  lines(body.write(inside(), false));
  line(format("{} best_ = {};", type_text(r.accumulator, false), identity_text(r.combine, r.accumulator)));
  line(format("{} winner_ = 0;", type));
  line(format("const {} stop_ = valid_ ? ({})({}) : 0;", type, type, index_text(schedule_.work)));
  line(format("{} first_ = ({})b_.member;", type, type));
  if (in_lanes_) search_vectors(s, body, largest);
  search_elements(s, largest);
  line(format("const i64 place_ = join_winners<{}>(b_, best_, (i64)winner_);", largest));
  unpack_position(nest_.inner, "place_");
  line(format("row{}_ = {};", r.outer,
              cast_text(index_text(s.body[size_t(r.payload)].offset), kInt64, compute_dtype(r.dtype))));
}

// Several vectors are on their way before the first is looked at; in place of those behind the end, the first again.
void GpuWriter::search_vectors(const Sweep& s, BodyWriter& body, const std::string& largest) {
  const RowReduction& r = s.reductions[0];
  std::string type = index_type(), k = index_text(axis());
  const int items = schedule_.vector_items;
  open("{");
  line(format("const {} apart_ = ({})b_.members * kLanes, {} = ({})b_.member * kLanes;", type, type, k, type));
  line(format("const bool whole_ = true{};", fits_text(nest_, s, false)));
  open(format("for ({} from_ = {}; whole_ && from_ + kLanes <= stop_; from_ += {} * apart_) {", type, k, items));
  line(format("{} values_[{}];", type_text(r.accumulator, true), items));
  line("#pragma unroll");
  open(format("for (int u_ = 0; u_ < {}; ++u_) {", items));
  line(format("const {} {} = from_ + u_ * apart_ + kLanes <= stop_ ? from_ + u_ * apart_ : from_;", type, k));
  lines(body.write(inside(), true));
  line(format("values_[u_] = {};", body.value(r.value, r.accumulator)));
  close();
  line("#pragma unroll");
  open(format("for (int u_ = 0; u_ < {}; ++u_) {", items));
  line(format("if (!may_beat<{}>(values_[u_], best_)) continue;", largest));
  line("#pragma unroll");
  open("for (int lane_ = 0; lane_ < kLanes; ++lane_) {");
  open(format("if (beats<{}>(values_[u_].v[lane_], best_)) {", largest));
  line("best_ = values_[u_].v[lane_];");
  line("winner_ = from_ + u_ * apart_ + lane_;");
  close();
  close();
  close();
  close();
  line("if (whole_) first_ += stop_ - stop_ % kLanes;");
  close();
}

// Several elements are on their way before the first is looked at; what is behind the end is the last one again.
void GpuWriter::search_elements(const Sweep& s, const std::string& largest) {
  const RowReduction& r = s.reductions[0];
  std::string type = index_type();
  const std::string place = format("minimum(first_ + u_ * ({})b_.members, stop_ - 1)", type);
  BodyWriter body = scalar_body(s);
  open(format("for (; first_ < stop_; first_ += ({})b_.members * {}) {", type, schedule_.items));
  line(format("{} values_[{}];", type_text(r.accumulator, false), schedule_.items));
  line("#pragma unroll");
  open(format("for (int u_ = 0; u_ < {}; ++u_) {", schedule_.items));
  line(format("const {} place_ = {};", type, place));
  unpack_position(nest_.inner, "place_");
  lines(body.write(inside(), true));
  line(format("values_[u_] = {};", body.value(r.value, r.accumulator)));
  close();
  line("#pragma unroll");
  open(format("for (int u_ = 0; u_ < {}; ++u_) {", schedule_.items));
  open(format("if (beats<{}>(values_[u_], best_)) {", largest));
  line("best_ = values_[u_];");
  line(format("winner_ = {};", place));
  close();
  close();
  close();
}

// The members of a row take neighbouring runs of elements; a carry goes from one round to the next.
void GpuWriter::scan() {
  const Sweep& s = nest_.sweeps[0];
  const RowReduction& r = s.reductions[0];
  const Store& store = s.stores[0];
  const Axis& along = nest_.inner[0];
  const DType acc = r.accumulator;
  std::string type = index_type(), acc_type = type_text(acc, false), n = index_text(along.extent),
              i = index_text(along.symbol);
  std::string identity = identity_text(r.combine, acc);
  open_run();
  open_rows();
  BodyWriter body = scalar_body(s);
  lines(body.write(inside(), false));
  line(format("{} carry_ = {};", acc_type, identity));
  line(format("const {} stop_ = valid_ ? ({})({}) : 0;", type, type, n));
  open(format("for ({} round_ = 0; round_ < ({})({}); round_ += ({})b_.members * {}) {", type, type, n, type,
              schedule_.items));
  line(format("const {} first_ = round_ + ({})b_.member * {};", type, type, schedule_.items));
  line(format("{} sums_[{}];", acc_type, schedule_.items));
  line(format("{} sum_ = {};", acc_type, identity));
  auto each_item = [&] {
    line("#pragma unroll");
    open(format("for (int item_ = 0; item_ < {}; ++item_) {", schedule_.items));
    open("if (first_ + item_ < stop_) {");
    line(format("const {} {} = first_ + item_;", type, i));
  };
  each_item();
  lines(body.write(inside(), true));
  accumulate(r, "sum_", body.value(r.value, acc));
  close();
  line("sums_[item_] = sum_;");
  close();
  line(format("const {} before_ = scan_before<{}>(b_, sum_, {}, carry_);", acc_type, join_text(r.combine), identity));
  each_item();
  std::string value = combine_text(r.combine, "before_", "sums_[item_]");
  if (r.combine == Combine::kSum || r.combine == Combine::kProd) value = "(" + value + ")";
  line(format("store1<{}>({}, {}, {});", memory_text(dtype_of(store)), operand_text(nest_, store.operand),
              index_text(store.offset), cast_text(value, acc, compute_dtype(dtype_of(store)))));
  close();
  close();
  close();
  close();
  close();
}

// A thread has all steps of a point where they go in order; else they are points themselves.
void GpuWriter::scatter() {
  const Sweep& s = nest_.sweeps[0];
  const bool ordered = s.stores[0].combine == Combine::kReplace;
  std::string type = index_type();
  open_run();
  open("for (i64 at_ = begin_ + first_step(b_); at_ < end_; at_ += all_threads(b_)) {");
  unpack_position(schedule_.range, "at_");
  BodyWriter body = scalar_body(s);
  lines(body.write(inside(), false));
  for (size_t d = 0; ordered && d < nest_.inner.size(); ++d) {
    std::string i = index_text(nest_.inner[d].symbol);
    open(format("for ({} {} = 0; {} < {}; ++{}) {", type, i, i, index_text(nest_.inner[d].extent), i));
  }
  lines(body.write(inside(), true));
  for (auto& store : s.stores) ordered ? store_one(store, body) : scatter_atomically(store, body);
  for (size_t d = 0; ordered && d < nest_.inner.size(); ++d) close();
  close();
  close();
}

void GpuWriter::scatter_atomically(const Store& store, const BodyWriter& body) {
  DType out = compute_dtype(dtype_of(store)), acc = store.accumulator;
  std::string value = body.value(store.value, acc), to = index_text(store.offset);
  std::string operand = operand_text(nest_, store.operand), memory = memory_text(dtype_of(store));
  if (store.combine == Combine::kSum && acc == out)
    return line(format("atomic_sum<{}>({}, {}, {});", memory, operand, to, value));
  line(format("const {} value_ = {};", type_text(acc, false), value));
  std::string changed = combine_text(store.combine, cast_text("old_", out, acc), "value_");
  line(format("atomic_change<{}>({}, {}, [&]({} old_) { return {}; });", memory, operand, to, type_text(out, false),
              cast_text(acc == out ? changed : "(" + changed + ")", acc, out)));
}

}  // namespace sinter::codegen
