#pragma once
// The recording tracer: runs a C++ function on traced tensors and gives its Graph.
#include <functional>
#include <memory>

#include "sinter/graph/graph.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// Records every op into one graph. Eager tensors met on the way become further inputs, kept in `captured`.
//
// A nested tracer records a part of what an outer one records, a branch or the body of a loop, into a graph of its own.
// Traced tensors of the outside are captured too, and questions about sizes go to the outer tracer. A size that only
// the data knows is an Error, since nothing outside could bind it, and so is a random draw, which no run would count.
class GraphTracer : public Tracer {
 public:
  explicit GraphTracer(Tracer* outer = nullptr);

  std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override;
  std::vector<TensorArg> draw() override;
  bool decide(DimCompare op, const Dim& a, const Dim& b) override;
  int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) override;
  std::string fresh_size() override;
  std::optional<int64_t> hint(const Dim& d) override { return outer_ ? outer_->hint(d) : std::nullopt; }

  // A new graph input as a traced tensor. `hint` are the sizes behind the symbols of the type, for comparisons.
  Tensor add_input(const Type& type, const std::string& name = {});
  void set_hint(const std::string& symbol, int64_t value) { hints_[symbol] = value; }
  // The value of a tensor in this graph (one of the outside becomes a captured input).
  Value value_of(const Tensor& tensor);
  Tensor tensor_of(Value value);

  Graph& graph() { return graph_; }
  const std::vector<Tensor>& captured() const { return captured_; }

 private:
  Value capture(const Tensor& tensor);

  Tracer* const outer_;
  const uint64_t id_;  // a traced tensor knows its tracer by it: an address may be that of a later one
  Graph graph_;
  std::vector<Tensor> captured_;
  std::map<const void*, Value> captured_values_;  // by the memory's handle, or by what a traced tensor stands for
  std::map<std::string, int64_t> hints_;
};

// The graph of f on inputs of these types.
Graph trace(const std::function<TensorList(const TensorList&)>& f, std::span<const Type> inputs);

}  // namespace sinter
