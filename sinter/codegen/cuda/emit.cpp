// Nests that are no maps or plain reductions (searches, scans, scatters), and the text around every kernel.
#include "sinter/codegen/cuda/emit.h"

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/codegen/cuda/lanes.h"
#include "sinter/codegen/cuda/writer.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

const char* join_text(Combine combine) {
  switch (combine) {
    case Combine::kSum: return "Sum";
    case Combine::kProd: return "Prod";
    case Combine::kMax: return "Max";
    case Combine::kMin: return "Min";
    case Combine::kAny: return "Any";
    case Combine::kAll: return "All";
    default: break;
  }
  SINTER_INTERNAL_ASSERT(false, "this combination has no two-operand form");
}

Dim points_of(const std::vector<Axis>& axes) {
  Dim out = 1;
  for (auto& axis : axes) out = out * axis.extent;
  return out;
}

std::string block_text(CudaSpread spread) { return spread == CudaSpread::kColumns ? "Columns" : "Rows"; }

// It does not let the next kernel start early: behind a small kernel that would be one whose weights are then fetched while
// a large one before this still streams its own, and both lose (measured: 5 % of a decode step).
void finish_cuda(CudaKernelText& kernel, int bounds) {
  kernel.text =
      format("namespace k {\nstruct {}_kernel : Vectors<{}> {\n{}};\n", kernel.name, kernel.lanes, kernel.members) +
      format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a_) {\n", bounds,
             kernel.name, kernel.slots) +
      format("  wait_for_previous();\n  {}_kernel::run_(a_, 0, a_.range, this_block<{}>());\n}\n", kernel.name,
             block_text(kernel.spread)) +
      "}  // namespace k\n";
}

namespace {

constexpr int kSearchThreads = 1024;
constexpr int kSearchItems = 8;    // elements of a search that a thread loads at a time
constexpr int kSearchBytes = 128;  // or, in vectors, of what it has to compare
constexpr int kScanItems = 4;  // neighbours that a thread scans by itself

class LoopCudaWriter : CudaWriter {
 public:
  LoopCudaWriter(const LoopNest& nest, CudaEmitOptions options) : CudaWriter(options), nest_(nest) {}

  CudaKernelText write(const std::string& name) {
    out_.name = name;
    switch (nest_.kind) {
      case NestKind::kReduce: search(); break;
      case NestKind::kScan: scan(); break;
      default: scatter();
    }
    out_.members = std::move(text_);
    finish_cuda(out_, out_.most);
    return std::move(out_);
  }

 private:
  void arguments() { out_.slots = take_slots(nest_, nest_.params(), indexes(nest_.body)); }

  std::vector<Dim> inside() const {
    std::vector<Dim> symbols;
    for (auto& axis : nest_.sequential) symbols.push_back(axis.symbol);
    return symbols;
  }

  DType out_dtype() const { return nest_.operands[size_t(nest_.output)].dtype; }
  std::string store_one(const std::string& value) const {
    return format("store1<{}>(out_, {}, {});", memory_text(out_dtype()), index_text(nest_.offset), value);
  }
  bool moves_along(const std::vector<Axis>& axes) const {
    if (axes.empty()) return false;
    for (auto& instr : nest_.body)
      if (instr.kind == InstrKind::kLoad && movement(instr.offset, axes.back().symbol) == Movement::kUnit) return true;
    return false;
  }

  // The place of an extreme. What wins when nothing beats the neutral element is the first element.
  void search() {
    out_.along = moves_along(nest_.sequential);
    out_.spread = !out_.along && moves_along(nest_.parallel) ? CudaSpread::kColumns : CudaSpread::kRows;
    out_.range = points_of(nest_.parallel);
    out_.work = points_of(nest_.sequential);
    const bool lanes = searches_in_lanes();
    if (out_.spread == CudaSpread::kRows) out_.most = kSearchThreads;
    std::string type = index_type(), acc = type_text(nest_.accumulator, false);
    std::string largest = nest_.combine == Combine::kArgMax ? "true" : "false";
    open_run(out_.spread);
    arguments();
    open_rows(nest_.parallel);
    BodyWriter body(nest_, lanes ? nest_.sequential[0].symbol : Dim(), lanes ? LaneMode::kFull : LaneMode::kScalar);
    lines(body.write(inside(), false));
    line(format("{} best_ = {};", acc, identity_text(nest_.combine, nest_.accumulator)));
    line(format("{} winner_ = 0;", type));
    line(format("const {} stop_ = valid_ ? ({})({}) : 0;", type, type, index_text(out_.work)));
    line(format("{} first_ = ({})b_.member;", type, type));
    if (lanes) search_vectors(body, largest);
    search_elements(largest);
    line(format("const i64 place_ = join_winners<{}>(b_, best_, (i64)winner_);", largest));
    open("if (valid_ && b_.member == 0) {");
    unpack_position(nest_.sequential, "place_");
    line(format("const i64 found_ = {};", index_text(nest_.body[size_t(nest_.payload)].offset)));
    line(store_one(cast_text("found_", kInt64, compute_dtype(out_dtype()))));
    close();
    close();
    close();
  }

  // A row of one axis that lies in memory: what is loaded is the same for all of it, or one apart.
  bool searches_in_lanes() {
    if (!options_.lanes || !out_.along || nest_.sequential.size() != 1) return false;
    FusedNest fused;
    fused.operands = nest_.operands;
    fused.inner = nest_.sequential;
    Sweep sweep;
    sweep.body = nest_.body;
    fused.sweeps.push_back(std::move(sweep));
    if (indexes(nest_.body) || !lanes_fit(fused) || !alike_text(fused, fused.sweeps[0]).empty()) return false;
    fits_ = fits_text(fused, fused.sweeps[0], false);
    out_.lanes = lane_width(fused);
    return true;
  }

  // Several vectors are on their way before the first is looked at; in place of those behind the end, the first again.
  void search_vectors(BodyWriter& body, const std::string& largest) {
    std::string type = index_type(), k = index_text(nest_.sequential[0].symbol);
    const int items = kSearchBytes / (out_.lanes * int(item_size(nest_.accumulator)));
    open("{");
    line(format("const {} apart_ = ({})b_.members * kLanes, {} = ({})b_.member * kLanes;", type, type, k, type));
    line(format("const bool whole_ = true{};", fits_));
    open(format("for ({} from_ = {}; whole_ && from_ + kLanes <= stop_; from_ += {} * apart_) {", type, k, items));
    line(format("{} values_[{}];", type_text(nest_.accumulator, true), items));
    line("#pragma unroll");
    open(format("for (int u_ = 0; u_ < {}; ++u_) {", items));
    line(format("const {} {} = from_ + u_ * apart_ + kLanes <= stop_ ? from_ + u_ * apart_ : from_;", type, k));
    lines(body.write(inside(), true));
    line(format("values_[u_] = {};", body.value(nest_.value, nest_.accumulator)));
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
  void search_elements(const std::string& largest) {
    std::string type = index_type();
    const std::string place = format("minimum(first_ + u_ * ({})b_.members, stop_ - 1)", type);
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    open(format("for (; first_ < stop_; first_ += ({})b_.members * {}) {", type, kSearchItems));
    line(format("{} values_[{}];", type_text(nest_.accumulator, false), kSearchItems));
    line("#pragma unroll");
    open(format("for (int u_ = 0; u_ < {}; ++u_) {", kSearchItems));
    line(format("const {} place_ = {};", type, place));
    unpack_position(nest_.sequential, "place_");
    lines(body.write(inside(), true));
    line(format("values_[u_] = {};", body.value(nest_.value, nest_.accumulator)));
    close();
    line("#pragma unroll");
    open(format("for (int u_ = 0; u_ < {}; ++u_) {", kSearchItems));
    open(format("if (beats<{}>(values_[u_], best_)) {", largest));
    line("best_ = values_[u_];");
    line(format("winner_ = {};", place));
    close();
    close();
    close();
  }

  // The members of a row take neighbouring runs of elements; a carry goes from one round to the next.
  void scan() {
    out_.spread = CudaSpread::kRows;
    out_.along = moves_along(nest_.sequential);
    out_.lanes = kScanItems;
    out_.range = points_of(nest_.parallel);
    out_.work = points_of(nest_.sequential);
    const Axis& axis = nest_.sequential[0];
    DType acc = nest_.accumulator;
    std::string type = index_type(), acc_type = type_text(acc, false), n = index_text(axis.extent),
                i = index_text(axis.symbol);
    std::string identity = identity_text(nest_.combine, acc);
    open_run(out_.spread);
    arguments();
    open_rows(nest_.parallel);
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inside(), false));
    line(format("{} carry_ = {};", acc_type, identity));
    line(format("const {} stop_ = valid_ ? ({})({}) : 0;", type, type, n));
    open(format("for ({} round_ = 0; round_ < ({})({}); round_ += ({})b_.members * {}) {", type, type, n, type,
                kScanItems));
    line(format("const {} first_ = round_ + ({})b_.member * {};", type, type, kScanItems));
    line(format("{} sums_[{}];", acc_type, kScanItems));
    line(format("{} sum_ = {};", acc_type, identity));
    line("#pragma unroll");
    open(format("for (int item_ = 0; item_ < {}; ++item_) {", kScanItems));
    open("if (first_ + item_ < stop_) {");
    line(format("const {} {} = first_ + item_;", type, i));
    lines(body.write(inside(), true));
    line(format("sum_ = {};", combine_text(nest_.combine, "sum_", body.value(nest_.value, acc))));
    close();
    line("sums_[item_] = sum_;");
    close();
    line(format("const {} before_ = scan_before<{}>(b_, sum_, {}, carry_);", acc_type, join_text(nest_.combine),
                identity));
    line("#pragma unroll");
    open(format("for (int item_ = 0; item_ < {}; ++item_) {", kScanItems));
    open("if (first_ + item_ < stop_) {");
    line(format("const {} {} = first_ + item_;", type, i));
    std::string value = combine_text(nest_.combine, "before_", "sums_[item_]");
    line(store_one(cast_text(nest_.combine == Combine::kSum || nest_.combine == Combine::kProd ? "(" + value + ")" : value, acc,
                             compute_dtype(out_dtype()))));
    close();
    close();
    close();
    close();
    close();
  }

  // Replacing goes over the axes that may collide in their order, in one thread; combining does not, by atomics.
  void scatter() {
    const bool ordered = nest_.combine == Combine::kReplace;
    out_.spread = CudaSpread::kPoints;
    std::vector<Axis> points = nest_.parallel;
    if (!ordered) points.insert(points.end(), nest_.sequential.begin(), nest_.sequential.end());
    out_.range = points_of(points);
    if (ordered) out_.work = points_of(nest_.sequential);
    DType out = compute_dtype(out_dtype()), acc = nest_.accumulator;
    std::string type = index_type(), memory = memory_text(out_dtype());
    open_run(out_.spread);
    arguments();
    open("for (i64 at_ = begin_ + first_step(b_); at_ < end_; at_ += all_threads(b_)) {");
    unpack_position(points, "at_");
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inside(), false));
    if (ordered) {
      for (auto& axis : nest_.sequential)
        open(format("for ({} {} = 0; {} < {}; ++{}) {", type, index_text(axis.symbol), index_text(axis.symbol),
                    index_text(axis.extent), index_text(axis.symbol)));
      lines(body.write(inside(), true));
      line(store_one(body.value(nest_.value, out)));
      for (size_t d = 0; d < nest_.sequential.size(); ++d) close();
    } else {
      lines(body.write(inside(), true));
      std::string value = body.value(nest_.value, acc), to = index_text(nest_.offset);
      if (nest_.combine == Combine::kSum && acc == out) {
        line(format("atomic_sum<{}>(out_, {}, {});", memory, to, value));
      } else {
        line(format("const {} value_ = {};", type_text(acc, false), value));
        std::string changed = combine_text(nest_.combine, cast_text("old_", out, acc), "value_");
        line(format("atomic_change<{}>(out_, {}, [&]({} old_) { return {}; });", memory, to, type_text(out, false),
                    cast_text(acc == out ? changed : "(" + changed + ")", acc, out)));
      }
    }
    close();
    close();
  }

  const LoopNest& nest_;
  std::string fits_;  // of a search in vectors
  CudaKernelText out_;
};

}  // namespace

CudaKernelText emit_cuda(const LoopNest& nest, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  if (nest.kind == NestKind::kMap || (nest.kind == NestKind::kReduce && nest.payload < 0))
    return emit_map_or_reduction(nest, name, options);
  return LoopCudaWriter(nest, options).write(name);
}

CudaKernelText emit_cuda_siblings(const std::vector<CudaKernelText>& kernels, const std::string& name) {
  CudaKernelText out;
  out.name = name;
  out.spread = CudaSpread::kPoints;
  std::string parts, calls;
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto& kernel = kernels[i];
    SINTER_INTERNAL_ASSERT(kernel.spread != CudaSpread::kTiles, "{} cannot share a launch", kernel.name);
    parts += format("struct Part{}_ : Vectors<{}> {\n{}};\n", i, kernel.lanes, kernel.members);
    int slot = out.slots;
    calls += format("  if (block_ < (u32)a_.number({}))\n", slot) +
             format("    return {}_parts::Part{}_::run_(SubArgs<Args<slots_>, {}>{a_}, 0, a_.number({}),\n", name, i,
                    slot + kSiblingSlots, slot + 1) +
             format("                            block_of<{}>(block_, (u32)a_.number({}), (u32)a_.number({})));\n",
                    block_text(kernel.spread), slot, slot + 2) +
             format("  block_ -= (u32)a_.number({});\n", slot);
    out.slots += kSiblingSlots + kernel.slots;
  }
  out.text = format("namespace k {\nnamespace {}_parts {\nconstexpr int slots_ = {};\n{}}\n", name, out.slots, parts) +
             format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a_) {\n",
                    kSiblingThreads, name, out.slots) +
             format("  using {}_parts::slots_;\n  wait_for_previous();\n  u32 block_ = blockIdx.x;\n", name) + calls +
             "}\n}  // namespace k\n";
  return out;
}

const std::string& cuda_prelude() {
  static const std::string text = std::string(embedded::cuda_types) + embedded::cuda_math + embedded::cuda_kernel;
  return text;
}

}  // namespace sinter::codegen
