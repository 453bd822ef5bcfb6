// What several kinds of GPU kernels share.
#include "sinter/codegen/gpu/writer.h"

#include "sinter/base/error.h"

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

// Operands and parameters out of the slots of `a`, and a place for what sweeps find for the row.
void GpuWriter::arguments() {
  take_operands();
  for (auto& p : nest_.parameters)
    line(format("const {} {} = ({})a_.number({});", index_type(), local_text(p.name), index_type(), slots_++));
  if (nest_.reads_index()) line(format("i64* error_ = (i64*)a_.number({});", slots_));
  ++slots_;
  for (auto& s : nest_.sweeps)
    for (auto& r : s.reductions)
      if (!s.scans())
        line(format("{} row{}_;", type_text(compute_dtype(r.dtype), schedule_.mode == VectorMode::kColumns), r.outer));
}

void GpuWriter::take_operands() {
  for (size_t i = 0; i < nest_.operands.size(); ++i, ++slots_) {
    auto& operand = nest_.operands[i];
    std::string name = operand_text(nest_, int(i)), type = type_text(compute_dtype(operand.dtype), false);
    if (operand.scalar && is_floating(operand.dtype))
      line(format("const {} {} = ({})from_bits((u64)a_[{}]);", type, name, type, slots_));
    else if (operand.scalar)
      line(format("const {} {} = ({})a_[{}];", type, name, type, slots_));
    else
      line(format("{}void* {} = ({}void*)a_[{}];", operand.output ? "" : "const ", name, operand.output ? "" : "const ",
                  slots_));
  }
}

// The coordinates of flat position `at`.
void GpuWriter::unpack_position(const std::vector<Axis>& axes, const std::string& at) {
  if (axes.empty()) return;
  std::string type = index_type();
  if (axes.size() == 1) return line(format("const {} {} = ({}){};", type, index_text(axes[0].symbol), type, at));
  std::string rest = "rest_of_" + at;
  line(format("{} {} = ({}){};", unsigned_type(), rest, unsigned_type(), at));
  for (size_t d = axes.size(); d-- > 1;) {
    std::string extent = format("({})({})", unsigned_type(), index_text(axes[d].extent));
    line(format("const {} {} = ({})({} % {});", type, index_text(axes[d].symbol), type, rest, extent));
    line(format("{} /= {};", rest, extent));
  }
  line(format("const {} {} = ({}){};", type, index_text(axes[0].symbol), type, rest));
}

void GpuWriter::open_run() {
  line("template <class A_>");
  open(format("static __device__ __forceinline__ void run_(const A_& a_, i64 begin_, i64 end_, const {}& b_) {",
              block_text(schedule_.spread)));
  arguments();
}

// Rows of the range, several in a block; those behind the end take part without reading or writing anything.
void GpuWriter::open_rows() {
  open("for (i64 base_ = begin_ + (i64)b_.index * b_.rows; base_ < end_; base_ += (i64)b_.count * b_.rows) {");
  line("const bool valid_ = base_ + b_.row < end_;");
  line("const i64 at_ = valid_ ? base_ + b_.row : end_ - 1;");
  unpack_position(schedule_.range, "at_");
}

// One by one what a vector from here on holds, up to the end.
void GpuWriter::open_tail(const std::string& end, const std::string& run) {
  std::string type = index_type(), i = index_text(axis());
  open(format("for ({} tail_ = {}, last_ = minimum({} + ({}){}, ({})({})); tail_ < last_; ++tail_) {", type, i, i, type, run,
              type, end));
  line(format("const {} {} = tail_;", type, i));
}

void GpuWriter::store_as(const char* function, const Store& store, const BodyWriter& body) {
  DType dtype = dtype_of(store);
  line(format("{}<{}>({}, {}, {});", function, memory_text(dtype), operand_text(nest_, store.operand),
              index_text(store.offset), body.value(store.value, compute_dtype(dtype))));
}

}  // namespace sinter::codegen
