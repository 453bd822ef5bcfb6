#pragma once
// What the writers of kernels share: indented lines, and the lines that take a kernel's arguments apart.
#include "sinter/codegen/cpu/value_text.h"

namespace sinter::codegen {

class TextWriter {
 protected:
  void line(const std::string& s) { text_ += std::string(size_t(depth_) * 2, ' ') + s + "\n"; }
  void lines(const std::vector<std::string>& all) {
    for (auto& s : all) line(s);
  }
  void open(const std::string& s) {
    line(s);
    ++depth_;
  }
  void close(const std::string& s = "}") {
    --depth_;
    line(s);
  }
  // Operands and parameters out of the slots of `a`; gives the number of slots.
  size_t take_arguments(const LoopNest& nest, const std::vector<std::string>& params) {
    line("const FlushDenormals flush;");
    size_t slot = 0;
    for (size_t i = 0; i < nest.operands.size(); ++i, ++slot) {
      auto& operand = nest.operands[i];
      std::string name = operand_text(nest, int(i)), type = type_text(compute_dtype(operand.dtype), false);
      if (operand.scalar && is_floating(operand.dtype))
        line(format("const {} {} = ({})__builtin_bit_cast(double, a[{}]);", type, name, type, slot));
      else if (operand.scalar)
        line(format("const {} {} = ({})a[{}];", type, name, type, slot));
      else
        line(format("{}void* {} = ({}void*)a[{}];", operand.output ? "" : "const ", name, operand.output ? "" : "const ",
                    slot));
    }
    for (auto& name : params) line(format("const i64 {} = a[{}];", name, slot++));
    return slot;
  }
  // Unpacks the flat position `at` into the symbols of the first `count` axes.
  void unpack(const std::vector<Axis>& axes, size_t count) {
    if (count == 0) return;
    if (count == 1) return line(format("const i64 {} = at;", axes[0].symbol));
    line("i64 rest = at;");
    for (size_t d = count; d-- > 1;) {
      std::string extent = index_text(axes[d].extent);
      line(format("const i64 {} = rest % ({});", axes[d].symbol, extent));
      line(format("rest /= {};", axes[d].extent.is_number() ? extent : "(" + extent + ")"));
    }
    line(format("const i64 {} = rest;", axes[0].symbol));
  }

  std::string text_;

 private:
  int depth_ = 0;
};

}  // namespace sinter::codegen
