#pragma once
// Many numbers become one.
#include "sinter/graph/interpreter/number.h"
#include "sinter/graph/op.h"

namespace sinter::interpreter {

// A running combination. Sums and products are made in the category of the result's dtype; floating sums carry what
// rounding lost, so that the referee of an f64 kernel is better than it; NaN wins a maximum or a minimum; the first of
// equals keeps its payload.
class Combiner {
 public:
  Combiner(Combine combine, DType result) : combine_(combine), result_(result) {}
  void add(Number value, int64_t payload = 0);
  // True when the next element decides alone: nothing was added yet.
  bool empty() const { return count_ == 0; }
  // The combination so far. A combination of nothing is the identity; a position has none: an Error.
  Number value(std::string_view op) const;

 private:
  bool wins(Number challenger) const;
  void add_to_sum(Number value);

  Combine combine_;
  DType result_;
  int64_t count_ = 0;
  Number total_;
  double lost_ = 0;  // of a floating sum
  int64_t payload_ = 0;
};

}  // namespace sinter::interpreter
