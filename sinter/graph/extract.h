#pragma once
// Cuts a part out of a graph, or puts one in.
#include <functional>
#include <span>
#include <unordered_map>

#include "sinter/graph/graph.h"

namespace sinter {

// A part in the making. Asked for a value it copies what computes it, node by node, as far as that lies inside; what comes from
// outside becomes an operand. Numbers are copied wherever they are read. May take nodes of several graphs.
class Extraction {
 public:
  using IsInside = std::function<bool(const Node& node)>;
  // Without a rule everything is inside but inputs.
  explicit Extraction(IsInside is_inside = {}) : is_inside_(std::move(is_inside)) {}

  // The value in the part.
  Value operator()(Value old);
  // Copies the node itself, wherever it lies.
  const Node& copy(const Node& node);
  // What stands for a value in the part, in place of a copy.
  void set(Value old, Value made);
  // Makes an operand of a value, wherever it comes from.
  Value add_operand(Value old, std::string name = {});
  // Has a say in what each copy's result becomes; may add to the part.
  using AfterCopy = std::function<Value(Graph& part, const Node& node, Value made)>;
  void after_copy(AfterCopy f) { after_copy_ = std::move(f); }

  // Copies keep their marks: what is computed again stays a node of its own.
  void keep_marks() { keeps_marks_ = true; }

  Graph& graph() { return graph_; }
  // The values that the inputs of the part are, in their order.
  const std::vector<Value>& operands() const { return operands_; }
  // The part itself, whose outputs are the copies of these. Once.
  Graph finish(std::span<const Value> outputs);

 private:
  Graph graph_;
  bool keeps_marks_ = false;
  IsInside is_inside_;
  AfterCopy after_copy_;
  std::unordered_map<const Node*, std::vector<Value>> made_;  // by result
  std::vector<Value> operands_;
};

// A copy of the graph with its marks, its inputs first; for passes that change some of its nodes.
Extraction begin_copy(const Graph& graph);

// The outputs of `body` over these operands, as nodes of `to`.
std::vector<Value> inline_graph(const Graph& body, std::span<const Value> operands, Graph& to);

}  // namespace sinter
