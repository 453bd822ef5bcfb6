#pragma once
// One op on doubles and integers, by somebody other than the kernel that is being checked.
#include <optional>
#include <span>
#include <vector>

#include "sinter/graph/interpreter.h"

namespace sinter::referee {

// How many scalar operations of one op the interpreter takes, those in index notation counted 16 times; a larger one is run
// as an eager op in double precision, by a kernel of its own. The interpreter makes about 20 million in a second.
inline constexpr int64_t kMostOperations = 1 << 16;

// A value of the referee: an array, or a tensor that is looked at as one when somebody asks.
class Known {
 public:
  Known(Array array) : array_(std::move(array)) {}
  explicit Known(Tensor tensor) : tensor_(std::move(tensor)) {}

  const Array& array() const;
  DType dtype() const { return array_ ? array_->dtype : tensor_.dtype(); }
  const IntList& sizes() const { return array_ ? array_->sizes : tensor_.impl().sizes; }
  int64_t numel() const { return array_ ? array_->numel() : tensor_.impl().numel; }
  // Undefined where it is an array.
  const Tensor& tensor() const { return tensor_; }

 private:
  mutable std::optional<Array> array_;
  Tensor tensor_;
};

// The operands have the types of the call, whose sizes are numbers. Results are not rounded to their dtypes.
std::vector<Array> evaluate(const OpCall& call, std::span<const Known* const> inputs);

// A graph of this one op: an input for each operand, all results as outputs.
Graph graph_of(const Op& op, std::span<const Type> inputs, const Attrs& attrs, const std::string& where = {});

}  // namespace sinter::referee
