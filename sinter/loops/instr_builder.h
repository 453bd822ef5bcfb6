#pragma once
// Records what an op's definition does as instructions of a sweep; where operands come from is left to the two who read one
// op (lower.cpp) and values of a fused body (sweep_builder.cpp).
#include <optional>

#include "sinter/loops/loop_nest.h"

namespace sinter {

// Each adds one instruction and gives its number.
int add_instr(Sweep& sweep, Instr&& instr);
int add_constant(Sweep& sweep, const Scalar& value, DType dtype);
// `operands`: their promoted type.
int add_apply(Sweep& sweep, const Op& op, DType operands, DType result, SmallVector<int, 4> args);
int add_select(Sweep& sweep, const Conditions& conditions, int yes, int no);

// A sweep behind the others that stores a row value.
void store_row(LoopNest& nest, const RowReduction& r, Store store);

// What is known of a condition without knowing the coordinates.
std::optional<bool> decided(const Condition& c);

class InstrBuilder : public ElementBuilder {
 public:
  InstrBuilder(const OpCall& call, Sweep& sweep) : ElementBuilder(call), sweep_(sweep) {}

  Elem apply(const Op& op, DType dtype, std::initializer_list<Elem> args) override;
  Elem number(const Dim& value) override;
  Elem constant(const Scalar& value) override { return {add_constant(sweep_, value, value.dtype())}; }

 protected:
  DType dtype_of(Elem e) const { return sweep_.body[size_t(e.id)].dtype; }
  // The symbol of a coordinate that the next instruction reads.
  Dim next_index() const { return Dim::symbol("x" + std::to_string(sweep_.body.size())); }

  Sweep& sweep_;
};

}  // namespace sinter
