#pragma once
// What the writers of kernels share: indented lines, and the lines that take a kernel's arguments apart.
#include "sinter/codegen/value_text.h"

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
    line("const FlushDenormals flush_;");
    size_t slot = 0;
    for (size_t i = 0; i < nest.operands.size(); ++i, ++slot) {
      auto& operand = nest.operands[i];
      std::string name = operand_text(nest, int(i)), type = type_text(compute_dtype(operand.dtype), false);
      if (operand.scalar && is_floating(operand.dtype))
        line(format("const {} {} = ({})__builtin_bit_cast(double, a_[{}]);", type, name, type, slot));
      else if (operand.scalar)
        line(format("const {} {} = ({})a_[{}];", type, name, type, slot));
      else
        line(format("{}void* {} = ({}void*)a_[{}];", operand.output ? "" : "const ", name,
                    operand.output ? "" : "const ", slot));
    }
    for (auto& name : params) line(format("const i64 {} = a_[{}];", local_text(name), slot++));
    return slot;
  }
  // Unpacks the flat position `at` into the symbols of the first `count` axes.
  void unpack(const std::vector<Axis>& axes, size_t count) {
    if (count == 0) return;
    if (count == 1) return line(format("const i64 {} = at_;", index_text(axes[0].symbol)));
    line("i64 rest_ = at_;");
    for (size_t d = count; d-- > 1;) {
      std::string extent = index_text(axes[d].extent);
      line(format("const i64 {} = rest_ % ({});", index_text(axes[d].symbol), extent));
      line(format("rest_ /= {};", axes[d].extent.is_number() ? extent : "(" + extent + ")"));
    }
    line(format("const i64 {} = rest_;", index_text(axes[0].symbol)));
  }

  // The loop over rows of a map some of whose loads can be turned along the last row axis: as many rows as lanes at a time
  // where there are as many and they lie side by side, else by `whole_row`. The others store what the body finds.
  template <class Row, class Lanes, class One>
  void turned_rows(const LoopNest& nest, const std::vector<Axis>& rows, const Axis& axis, Row&& whole_row,
                   Lanes&& store_lanes, One&& store_one) {
    const Axis& row = rows.back();
    auto turned = turnable_loads(nest, axis.symbol, row.symbol);
    std::string i = index_text(axis.symbol), r = index_text(row.symbol), n = index_text(axis.extent), apart;
    for (int id : turned) {
      Dim stride = *nest.body[size_t(id)].offset.coefficient_of(row.symbol);
      if (!stride.same_as(1)) apart += format(" || {} != 1", index_text(stride));
    }
    open("for (i64 at_ = begin_; at_ < end_;) {");
    unpack(rows, rows.size());
    open(format("if (end_ - at_ < kLanes || {} - {} < kLanes{}) {", index_text(row.extent), r, apart));
    whole_row();
    line("++at_;");
    line("continue;");
    close();
    BodyWriter full(nest, axis.symbol, LaneMode::kFull), scalar(nest, axis.symbol, LaneMode::kScalar);
    full.read_turned(turned);
    const std::vector<Dim> inside{axis.symbol, row.symbol};
    lines(full.write(inside, false));
    line(format("const i64 first_row_ = {};", r));
    line(format("i64 {} = 0;", i));
    open(format("for (; {} + kLanes <= {}; {} += kLanes) {", i, n, i));
    for (int id : turned) {
      auto& instr = nest.body[size_t(id)];
      line(format("alignas(64) float turned{}_[kLanes * kLanes];", id));
      line(format("turn({}, {}, {}, turned{}_);", operand_text(nest, instr.operand), index_text(instr.offset),
                  index_text(*instr.offset.coefficient_of(axis.symbol)), id));
    }
    open("for (i64 turned_row_ = 0; turned_row_ < kLanes; ++turned_row_) {");
    line(format("const i64 {} = first_row_ + turned_row_;", r));
    lines(full.write(inside, true));
    store_lanes(full);
    close();
    close();
    line(format("const i64 rest_of_row_ = {};", i));
    open(format("for (i64 {} = first_row_; {} < first_row_ + kLanes; ++{}) {", r, r, r));
    open(format("for (i64 {} = rest_of_row_; {} < {}; ++{}) {", i, i, n, i));
    lines(scalar.write(inside, true));
    store_one(scalar);
    close();
    close();
    line("at_ += kLanes;");
    close();
  }

  std::string text_;

 private:
  int depth_ = 0;
};

}  // namespace sinter::codegen
