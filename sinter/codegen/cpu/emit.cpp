// What is around the sweeps of a CPU kernel: its arguments, the rows, and maps whose columns are transposed.
#include "sinter/codegen/cpu/emit.h"

#include "sinter/base/stage_times.h"
#include "sinter/codegen/cpu/writer.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

KernelText CpuWriter::write(const std::string& name) {
  if (nest_.tiles) {
    epilogue(name);
    return {std::move(text_)};
  }
  open("extern \"C\" void " + name + "(const i64* a_, i64 begin_, i64 end_) {");
  prologue();
  if (schedule_.mode == VectorMode::kColumns) {
    columns();
  } else if (schedule_.over_inner) {
    // No rows: the range is a piece of the inner axis itself.
    common_cuts("begin_", "end_");
    sweep(0, "begin_", "end_");
  } else if (!schedule_.transposed.empty()) {
    transposed_map();
  } else {
    all_rows();
  }
  if (schedule_.stream) line("stream_fence();");
  close();
  return {std::move(text_)};
}

// Operands and parameters out of the slots of `a`.
void CpuWriter::prologue() {
  line("const FlushDenormals flush_;");
  size_t slot = 0;
  for (size_t i = 0; i < nest_.operands.size(); ++i, ++slot) {
    auto& operand = nest_.operands[i];
    std::string name = operand_text(nest_, int(i)), type = type_text(compute_dtype(operand.dtype), false);
    if (operand.scalar && is_floating(operand.dtype))
      line(format("const {} {} = ({})__builtin_bit_cast(double, a_[{}]);", type, name, type, slot));
    else if (operand.scalar)
      line(format("const {} {} = ({})a_[{}];", type, name, type, slot));
    else
      line(format("{}void* {} = ({}void*)a_[{}];", operand.output ? "" : "const ", name,
                  operand.output ? "" : "const ", slot));
  }
  for (auto& p : nest_.parameters) line(format("const i64 {} = a_[{}];", local_text(p.name), slot++));
  if (nest_.reads_index()) line(format("i64* error_ = (i64*)a_[{}];", slot));
  // What sweeps find for the row; columns have one in each lane.
  for (auto& s : nest_.sweeps)
    for (auto& r : s.reductions)
      if (schedule_.mode != VectorMode::kColumns && !s.scans())
        line(format("{} row{}_;", type_text(compute_dtype(r.dtype), false), r.outer));
}

// Unpacks the flat position `at` into the symbols of the axes.
void CpuWriter::unpack(const std::vector<Axis>& axes) {
  if (axes.empty()) return;
  if (axes.size() == 1) return line(format("const i64 {} = at_;", index_text(axes[0].symbol)));
  line("i64 rest_ = at_;");
  for (size_t d = axes.size(); d-- > 1;) {
    std::string extent = index_text(axes[d].extent);
    line(format("const i64 {} = rest_ % ({});", index_text(axes[d].symbol), extent));
    line(format("rest_ /= {};", axes[d].extent.is_number() ? extent : "(" + extent + ")"));
  }
  line(format("const i64 {} = rest_;", index_text(axes[0].symbol)));
}

void CpuWriter::open_loops(const std::vector<Axis>& axes) {
  for (auto& axis : axes) {
    std::string i = index_text(axis.symbol);
    open(format("for (i64 {} = 0; {} < {}; ++{}) {", i, i, index_text(axis.extent), i));
  }
}

void CpuWriter::close_loops(const std::vector<Axis>& axes) {
  for (size_t d = 0; d < axes.size(); ++d) close();
}

void CpuWriter::all_rows() {
  common_cuts("0", inner_extent());
  open("for (i64 at_ = begin_; at_ < end_; ++at_) {");
  unpack(nest_.rows);
  for (size_t n = 0; n < nest_.sweeps.size(); ++n) {
    const bool apart = nest_.sweeps.size() > 1;
    if (apart) open("{");
    sweep(n, "0", inner_extent());
    if (apart) close();
  }
  close();
}

// Called on each finished piece of a contraction's result.
void CpuWriter::epilogue(const std::string& name) {
  open("extern \"C\" void " + name +
       "(const i64* a_, void* const* tiles_, i64 row_, i64 col_, i64 rows_, i64 cols_, i64 stride_) {");
  prologue();
  common_cuts("col_", "col_ + cols_");
  open("for (i64 t_ = 0; t_ < rows_; ++t_) {");
  line("const i64 r_ = row_ + t_, at_ = r_;");
  for (int i = 0; i < nest_.tiles; ++i)
    line(format("void* tile{}_ = (char*)tiles_[{}] + t_ * stride_ * (i64)sizeof({});", i, i, memory_text(tile_dtype())));
  unpack(nest_.rows);
  for (size_t n = 0; n < nest_.sweeps.size(); ++n) sweep(n, "col_", "col_ + cols_");
  close();
  close();
}

DType CpuWriter::tile_dtype() const {
  for (auto& s : nest_.sweeps)
    for (auto& instr : s.body)
      if (instr.kind == InstrKind::kTile) return compute_dtype(instr.dtype);
  return kFloat32;
}

// As many rows as lanes at a time where there are as many and they lie side by side, so that columns are loaded as vectors;
// the others one by one.
void CpuWriter::transposed_map() {
  const Axis& row = schedule_.transposed_axis;
  const Sweep& s = nest_.sweeps[0];
  std::string i = last_text(), r = index_text(row.symbol), n = inner_extent(), apart;
  auto offset_of = [&](int id) { return s.body[size_t(id)].offset; };
  for (int id : schedule_.transposed) {
    Dim stride = *offset_of(id).coefficient_of(row.symbol);
    if (!stride.same_as(1)) apart += format(" || {} != 1", index_text(stride));
  }
  open("for (i64 at_ = begin_; at_ < end_;) {");
  unpack(nest_.rows);
  open(format("if (end_ - at_ < kLanes || {} - {} < kLanes{}) {", index_text(row.extent), r, apart));
  sweep(0, "0", n);
  line("++at_;");
  line("continue;");
  close();
  BodyWriter full = body(s, LaneMode::kFull), scalar = body(s, LaneMode::kScalar);
  full.read_prepared(schedule_.transposed);
  const std::vector<Dim> both{last().symbol, row.symbol};
  lines(full.write(both, false));
  line(format("const i64 first_row_ = {};", r));
  line(format("i64 {} = 0;", i));
  open(format("for (; {} + kLanes <= {}; {} += kLanes) {", i, n, i));
  for (int id : schedule_.transposed) {
    line(format("alignas(64) float prepared{}_[kLanes * kLanes];", id));
    line(format("transpose({}, {}, {}, prepared{}_);", operand_text(nest_, s.body[size_t(id)].operand), index_text(offset_of(id)),
                index_text(*offset_of(id).coefficient_of(last().symbol)), id));
  }
  open("for (i64 prepared_row_ = 0; prepared_row_ < kLanes; ++prepared_row_) {");
  line(format("const i64 {} = first_row_ + prepared_row_;", r));
  lines(full.write(both, true));
  for (auto& store : s.stores) store_lanes(store, full, LaneMode::kFull);
  close();
  close();
  line(format("const i64 rest_of_row_ = {};", i));
  open(format("for (i64 {} = first_row_; {} < first_row_ + kLanes; ++{}) {", r, r, r));
  open(format("for (i64 {} = rest_of_row_; {} < {}; ++{}) {", i, i, n, i));
  lines(scalar.write(both, true));
  for (auto& store : s.stores) store_one(store, scalar);
  close();
  close();
  line("at_ += kLanes;");
  close();
}

KernelText emit_cpu(const LoopNest& nest, const Schedule& schedule, const std::string& name) {
  StageTimer timer(CompileStage::kEmit);
  return CpuWriter(nest, schedule).write(name);
}

const std::string& cpu_prelude(int lanes) {
  auto text = [](int width) {
    std::string out = format("#define SINTER_LANES {}\n", width);
    for (const char* part : {embedded::prelude, embedded::arith, embedded::math, embedded::random, embedded::special_lanes,
                             "namespace k {\n", embedded::special, embedded::bessel, embedded::polynomials, "}\n", embedded::kernel_support, embedded::self_check})
      out += part;
    return out + "using namespace k;\n";
  };
  static const std::string narrow = text(4), middle = text(8), wide = text(16);
  return lanes == 16 ? wide : lanes == 8 ? middle : narrow;
}

}  // namespace sinter::codegen
