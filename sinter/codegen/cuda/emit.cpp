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
  kernel.text = format("namespace k {\nstruct {}_kernel : Vectors<{}> {\n{}};\n", kernel.name, kernel.lanes, kernel.members) +
                format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a) {\n", bounds,
                       kernel.name, kernel.slots) +
                format("  wait_for_previous();\n  {}_kernel::run(a, 0, a.range, this_block<{}>());\n}\n",
                       kernel.name, block_text(kernel.spread)) +
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
    return format("store1<{}>(out, {}, {});", memory_text(out_dtype()), index_text(nest_.offset), value);
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
    line(format("{} best = {};", acc, identity_text(nest_.combine, nest_.accumulator)));
    line(format("{} winner = 0;", type));
    line(format("const {} stop = valid ? ({})({}) : 0;", type, type, index_text(out_.work)));
    line(format("{} first = ({})b.member;", type, type));
    if (lanes) search_vectors(body, largest);
    search_elements(largest);
    line(format("const i64 place = join_winners<{}>(b, best, (i64)winner);", largest));
    open("if (valid && b.member == 0) {");
    unpack_position(nest_.sequential, "place");
    line(format("const i64 found = {};", index_text(nest_.body[size_t(nest_.payload)].offset)));
    line(store_one(cast_text("found", kInt64, compute_dtype(out_dtype()))));
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
    std::string type = index_type(), k = to_string(nest_.sequential[0].symbol);
    const int items = kSearchBytes / (out_.lanes * int(item_size(nest_.accumulator)));
    open("{");
    line(format("const {} apart = ({})b.members * kLanes, {} = ({})b.member * kLanes;", type, type, k, type));
    line(format("const bool whole = true{};", fits_));
    open(format("for ({} from = {}; whole && from + kLanes <= stop; from += {} * apart) {", type, k, items));
    line(format("{} values[{}];", type_text(nest_.accumulator, true), items));
    line("#pragma unroll");
    open(format("for (int u = 0; u < {}; ++u) {", items));
    line(format("const {} {} = from + u * apart + kLanes <= stop ? from + u * apart : from;", type, k));
    lines(body.write(inside(), true));
    line(format("values[u] = {};", body.value(nest_.value, nest_.accumulator)));
    close();
    line("#pragma unroll");
    open(format("for (int u = 0; u < {}; ++u) {", items));
    line(format("if (!may_beat<{}>(values[u], best)) continue;", largest));
    line("#pragma unroll");
    open("for (int lane = 0; lane < kLanes; ++lane) {");
    open(format("if (beats<{}>(values[u].v[lane], best)) {", largest));
    line("best = values[u].v[lane];");
    line("winner = from + u * apart + lane;");
    close();
    close();
    close();
    close();
    line("if (whole) first += stop - stop % kLanes;");
    close();
  }

  // Several elements are on their way before the first is looked at; what is behind the end is the last one again.
  void search_elements(const std::string& largest) {
    std::string type = index_type();
    const std::string place = format("minimum(first + u * ({})b.members, stop - 1)", type);
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    open(format("for (; first < stop; first += ({})b.members * {}) {", type, kSearchItems));
    line(format("{} values[{}];", type_text(nest_.accumulator, false), kSearchItems));
    line("#pragma unroll");
    open(format("for (int u = 0; u < {}; ++u) {", kSearchItems));
    line(format("const {} place = {};", type, place));
    unpack_position(nest_.sequential, "place");
    lines(body.write(inside(), true));
    line(format("values[u] = {};", body.value(nest_.value, nest_.accumulator)));
    close();
    line("#pragma unroll");
    open(format("for (int u = 0; u < {}; ++u) {", kSearchItems));
    open(format("if (beats<{}>(values[u], best)) {", largest));
    line("best = values[u];");
    line(format("winner = {};", place));
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
    std::string type = index_type(), acc_type = type_text(acc, false), n = index_text(axis.extent), i = to_string(axis.symbol);
    std::string identity = identity_text(nest_.combine, acc);
    open_run(out_.spread);
    arguments();
    open_rows(nest_.parallel);
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inside(), false));
    line(format("{} carry = {};", acc_type, identity));
    line(format("const {} stop = valid ? ({})({}) : 0;", type, type, n));
    open(format("for ({} round = 0; round < ({})({}); round += ({})b.members * {}) {", type, type, n, type, kScanItems));
    line(format("const {} first = round + ({})b.member * {};", type, type, kScanItems));
    line(format("{} sums[{}];", acc_type, kScanItems));
    line(format("{} sum = {};", acc_type, identity));
    line("#pragma unroll");
    open(format("for (int item = 0; item < {}; ++item) {", kScanItems));
    open("if (first + item < stop) {");
    line(format("const {} {} = first + item;", type, i));
    lines(body.write(inside(), true));
    line(format("sum = {};", combine_text(nest_.combine, "sum", body.value(nest_.value, acc))));
    close();
    line("sums[item] = sum;");
    close();
    line(format("const {} before = scan_before<{}>(b, sum, {}, carry);", acc_type, join_text(nest_.combine), identity));
    line("#pragma unroll");
    open(format("for (int item = 0; item < {}; ++item) {", kScanItems));
    open("if (first + item < stop) {");
    line(format("const {} {} = first + item;", type, i));
    std::string value = combine_text(nest_.combine, "before", "sums[item]");
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
    open("for (i64 at = begin + first_step(b); at < end; at += all_threads(b)) {");
    unpack_position(points, "at");
    BodyWriter body(nest_, Dim(), LaneMode::kScalar);
    lines(body.write(inside(), false));
    if (ordered) {
      for (auto& axis : nest_.sequential)
        open(format("for ({} {} = 0; {} < {}; ++{}) {", type, axis.symbol, axis.symbol, index_text(axis.extent), axis.symbol));
      lines(body.write(inside(), true));
      line(store_one(body.value(nest_.value, out)));
      for (size_t d = 0; d < nest_.sequential.size(); ++d) close();
    } else {
      lines(body.write(inside(), true));
      std::string value = body.value(nest_.value, acc), to = index_text(nest_.offset);
      if (nest_.combine == Combine::kSum && acc == out) {
        line(format("atomic_sum<{}>(out, {}, {});", memory, to, value));
      } else {
        line(format("const {} value = {};", type_text(acc, false), value));
        std::string changed = combine_text(nest_.combine, cast_text("old", out, acc), "value");
        line(format("atomic_change<{}>(out, {}, [&]({} old) { return {}; });", memory, to, type_text(out, false),
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
    parts += format("struct Part{} : Vectors<{}> {\n{}};\n", i, kernel.lanes, kernel.members);
    int slot = out.slots;
    calls += format("  if (block < (u32)a.number({}))\n", slot) +
             format("    return {}_parts::Part{}::run(SubArgs<Args<kSlots>, {}>{a}, 0, a.number({}),\n", name, i,
                    slot + kSiblingSlots, slot + 1) +
             format("                            block_of<{}>(block, (u32)a.number({}), (u32)a.number({})));\n",
                    block_text(kernel.spread), slot, slot + 2) +
             format("  block -= (u32)a.number({});\n", slot);
    out.slots += kSiblingSlots + kernel.slots;
  }
  out.text = format("namespace k {\nnamespace {}_parts {\nconstexpr int kSlots = {};\n{}}\n", name, out.slots, parts) +
             format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a) {\n",
                    kSiblingThreads, name, out.slots) +
             format("  using {}_parts::kSlots;\n  wait_for_previous();\n  u32 block = blockIdx.x;\n", name) +
             calls + "}\n}  // namespace k\n";
  return out;
}

const std::string& cuda_prelude() {
  static const std::string text = std::string(embedded::cuda_types) + embedded::cuda_math + embedded::cuda_kernel;
  return text;
}

}  // namespace sinter::codegen
