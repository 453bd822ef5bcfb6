#include "sinter/graph/extract.h"

namespace sinter {

Value Extraction::operator()(Value old) {
  auto known = made_.find(old.node);
  if (known != made_.end() && known->second[size_t(old.index)]) return known->second[size_t(old.index)];
  const Node& node = *old.node;
  if (node.op->kind == OpKind::kScalar) {
    set(old, graph_.add_scalar(node.attrs.as<ScalarAttrs>().value));
  } else if (node.op->kind == OpKind::kInput || (is_inside_ && !is_inside_(node))) {
    return add_operand(old);
  } else {
    copy(node);
  }
  return made_.at(old.node)[size_t(old.index)];
}

const Node& Extraction::copy(const Node& node) {
  std::vector<Value> inputs;
  for (auto& v : node.inputs) inputs.push_back((*this)(v));
  if (keeps_marks_) graph_.set_marks(node.marks);
  const Node& copied = graph_.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
  for (size_t r = 0; r < node.types.size(); ++r) {
    Value made = copied.result(int(r));
    set({&node, int(r)}, after_copy_ ? after_copy_(graph_, node, made) : made);
  }
  return copied;
}

void Extraction::set(Value old, Value made) {
  auto& results = made_[old.node];
  results.resize(old.node->types.size());
  results[size_t(old.index)] = made;
}

Value Extraction::add_operand(Value old, std::string name) {
  Value made = graph_.add_input(old.type(), std::move(name));
  operands_.push_back(old);
  set(old, made);
  return made;
}

Graph Extraction::finish(std::span<const Value> outputs) {
  std::vector<Value> made;
  for (auto& v : outputs) made.push_back((*this)(v));
  graph_.set_outputs(std::move(made));
  return std::move(graph_);
}

Extraction begin_copy(const Graph& graph) {
  Extraction out;
  out.keep_marks();
  for (auto& v : graph.inputs()) out.add_operand(v, v.node->name);
  return out;
}

std::vector<Value> inline_graph(const Graph& body, std::span<const Value> operands, Graph& to) {
  std::vector<std::vector<Value>> values(body.nodes().size());
  auto value = [&](Value v) { return values[size_t(v.node->id)][size_t(v.index)]; };
  for (size_t i = 0; i < operands.size(); ++i) values[size_t(body.inputs()[i].node->id)] = {operands[i]};
  for (auto& node : body.nodes()) {
    auto& made = values[size_t(node.id)];
    if (node.op->kind == OpKind::kInput) continue;
    if (node.op->kind == OpKind::kScalar) {
      made = {to.add_scalar(node.attrs.as<ScalarAttrs>().value)};
      continue;
    }
    std::vector<Value> inputs;
    for (auto& v : node.inputs) inputs.push_back(value(v));
    const Node& copied = to.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
    for (size_t r = 0; r < node.types.size(); ++r) made.push_back(copied.result(int(r)));
  }
  std::vector<Value> out;
  for (auto& v : body.outputs()) out.push_back(value(v));
  return out;
}

}  // namespace sinter
