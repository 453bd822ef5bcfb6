#pragma once
// What the writers of CUDA kernels share: arguments, positions, and the text around a kernel's body.
#include "sinter/codegen/combine_text.h"
#include "sinter/codegen/cuda/emit.h"
#include "sinter/codegen/text_writer.h"

namespace sinter::codegen {

// "Sum": the prelude's name of a combination.
const char* join_text(Combine combine);
// The product of the extents.
Dim points_of(const std::vector<Axis>& axes);
// A map or a plain reduction as a fused nest of the same meaning, and as a kernel.
FusedNest fused_of(const LoopNest& nest);
CudaKernelText emit_map_or_reduction(const LoopNest& nest, const std::string& name, CudaEmitOptions options);
// Puts the function `members` into a kernel. `bounds`: the most threads of a block.
void finish_cuda(CudaKernelText& kernel, int bounds);
std::string block_text(CudaSpread spread);

class CudaWriter : protected TextWriter {
 protected:
  explicit CudaWriter(CudaEmitOptions options) : options_(options) {}

  std::string index_type() const { return options_.wide ? "i64" : "i32"; }
  std::string unsigned_type() const { return options_.wide ? "u64" : "u32"; }

  // Operands and parameters out of the slots of `a`; gives the number of slots.
  int take_slots(const LoopNest& nest, const std::vector<std::string>& params, bool indexes) {
    int slot = 0;
    for (size_t i = 0; i < nest.operands.size(); ++i, ++slot) {
      auto& operand = nest.operands[i];
      std::string name = operand_text(nest, int(i)), type = type_text(compute_dtype(operand.dtype), false);
      if (operand.scalar && is_floating(operand.dtype))
        line(format("const {} {} = ({})from_bits((u64)a_[{}]);", type, name, type, slot));
      else if (operand.scalar)
        line(format("const {} {} = ({})a_[{}];", type, name, type, slot));
      else
        line(format("{}void* {} = ({}void*)a_[{}];", operand.output ? "" : "const ", name,
                    operand.output ? "" : "const ", slot));
    }
    for (auto& name : params)
      line(format("const {} {} = ({})a_.number({});", index_type(), local_text(name), index_type(), slot++));
    if (indexes) line(format("i64* error_ = (i64*)a_.number({});", slot));
    return slot + 1;
  }

  // The coordinates of flat position `at`.
  void unpack_position(const std::vector<Axis>& axes, const std::string& at) {
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

  void open_run(CudaSpread spread) {
    line("template <class A_>");
    open(format("static __device__ __forceinline__ void run_(const A_& a_, i64 begin_, i64 end_, const {}& b_) {",
                block_text(spread)));
  }

  // Rows of the range, several in a block; those behind the end take part without reading or writing anything.
  void open_rows(const std::vector<Axis>& axes) {
    open("for (i64 base_ = begin_ + (i64)b_.index * b_.rows; base_ < end_; base_ += (i64)b_.count * b_.rows) {");
    line("const bool valid_ = base_ + b_.row < end_;");
    line("const i64 at_ = valid_ ? base_ + b_.row : end_ - 1;");
    unpack_position(axes, "at_");
  }

  static bool indexes(const std::vector<Instr>& body) {
    for (auto& instr : body)
      if (instr.kind == InstrKind::kLoadIndex) return true;
    return false;
  }

  const CudaEmitOptions options_;
};

}  // namespace sinter::codegen
