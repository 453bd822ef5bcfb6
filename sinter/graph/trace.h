#pragma once
// The recording tracer: runs a C++ function on traced tensors and gives its Graph.
#include <functional>
#include <memory>

#include "sinter/graph/graph.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// Records every op into one graph. Eager tensors met on the way become further inputs, kept in `captured`.
class GraphTracer : public Tracer {
 public:
  std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override;
  bool decide(DimCompare op, const Dim& a, const Dim& b) override;
  int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) override;

  // A new graph input as a traced tensor. `hint` are the sizes behind the symbols of the type, for comparisons.
  Tensor add_input(const Type& type, const std::string& name = {});
  void set_hint(const std::string& symbol, int64_t value) { hints_[symbol] = value; }
  // The value of a tensor in this graph (an eager one becomes a captured input).
  Value value_of(const Tensor& tensor);
  Tensor tensor_of(Value value);

  Graph& graph() { return graph_; }
  const std::vector<Tensor>& captured() const { return captured_; }

 private:
  Graph graph_;
  std::vector<Tensor> captured_;
  std::map<const TensorImpl*, Value> captured_values_;
  std::map<std::string, int64_t> hints_;
};

// The graph of f on inputs of these types.
Graph trace(const std::function<TensorList(const TensorList&)>& f, std::span<const Type> inputs);

}  // namespace sinter
