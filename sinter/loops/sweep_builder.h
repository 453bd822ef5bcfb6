#pragma once
// Turns values of a fused body, at symbolic coordinates, into the instructions of one sweep. Views and copies are index
// arithmetic: whatever is behind them is computed at the coordinates that they name.
#include <map>
#include <optional>
#include <set>

#include "sinter/loops/fused.h"

namespace sinter {

// A value that one sweep computes and leaves in the memory of a result, for the sweeps after it; the result itself is
// stored by the last one.
struct SpilledValue {
  const Node* node = nullptr;
  Index at = {};  // the element that a step of the sweep spills
  int operand = -1;
  Dim offset = 0;
};

class SweepBuilder {
 public:
  // `outers`: the number of each reduction's row value.
  SweepBuilder(const Graph& body, LoopNest& nest, std::span<const Layout> layouts, const std::map<const Node*, int>& outers,
               Sweep& sweep);

  // The instruction that has the value's element.
  int element(Value v, const Index& at);
  // The value that a reduction combines, at the row's coordinates and those of the inner axes.
  int reduced(const Node& node, const Index& row, const Index& inner) { return by_definition(node, row, inner); }
  // Where a scatter puts the element at these coordinates of its domain, and what it puts there.
  Index target(const Node& scatter, const Index& at);
  int scattered(const Node& scatter, const Index& at) { return by_definition(scatter, at, {}); }
  // What is spilled of an element that wins.
  int payload(const Node& node, const Index& row, const Index& inner);
  // From here on the value is read from where it was spilled.
  void read_spilled(const SpilledValue& spilled) { spilled_ = &spilled; }
  DType dtype_of(int id) const { return sweep_.body[size_t(id)].dtype; }

 private:
  class Definition;

  int make(Value v, const Index& at);
  int load(int operand, const Index& at);
  int pointwise(const Node& node, const Index& at);
  int operand_of(const Node& reader, Value v, const Index& at);
  int rounded(int id);
  int cast(int id, DType dtype);
  int by_definition(const Node& node, const Index& i, const Index& k);
  void check_row(const Index& at) const;
  // Whether a value is a contraction's result, perhaps with its rows counted in another way.
  bool is_tile(const Node* node) const;
  int tile(const Node& node);

  const Graph& body_;
  LoopNest& nest_;
  std::span<const Layout> layouts_;
  const std::map<const Node*, int>& outers_;
  Sweep& sweep_;
  const std::set<const Node*> stored_;  // what memory and the rest of the kernel have to agree on
  const SpilledValue* spilled_ = nullptr;
  Conditions guards_;  // nothing is read where one of them fails
  std::map<const Node*, int> input_of_;  // operands of the nest; tiles, counted from the last, below 0
  std::map<std::string, int> done_;
};

}  // namespace sinter
