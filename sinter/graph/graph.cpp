#include "sinter/graph/graph.h"

#include "sinter/base/hash.h"

namespace sinter {

namespace {

std::vector<Type> no_rule(const OpCall& call) {
  SINTER_INTERNAL_ASSERT(false, "the type of {} is not inferred", call.op.name);
}

std::vector<Type> infer_scalar(const OpCall& call) {
  return {Type{.dtype = call.as<ScalarAttrs>().value.dtype(), .shape = {}, .device = {}, .weak = true}};
}

constexpr Op make_input_op() {
  Op op;
  op.name = "input";
  op.kind = OpKind::kInput;
  op.inputs = 0;
  op.parse = [](const FieldTexts& fields) { return parse_attrs<NoAttrs>("input", fields); };
  op.infer = no_rule;
  op.no_grad_reason = "it is where gradients end";
  return op;
}

constexpr Op make_scalar_op() {
  Op op;
  op.name = "scalar";
  op.kind = OpKind::kScalar;
  op.inputs = 0;
  op.parse = [](const FieldTexts& fields) { return parse_attrs<ScalarAttrs>("scalar", fields); };
  op.infer = infer_scalar;
  op.no_grad_reason = "a plain number has no gradient";
  return op;
}

// By content and not by position, so that equal computations hash alike in any graph.
uint64_t hash_node(const Op& op, const std::vector<Value>& inputs, const Attrs& attrs) {
  uint64_t h = hash_text(op.name);
  for (auto& v : inputs) h = hash_mix(h, hash_mix(v.node->hash, uint64_t(v.index)));
  return attrs.empty() ? h : hash_text(attrs.text(), h);
}

// Equal nodes are one where they are of one round.
int round_of(const Op* op, const Marks& marks) { return marks.again && op->kind != OpKind::kScalar ? 1 + marks.phase : 0; }

}  // namespace

constinit const Op kInputOp = make_input_op();
constinit const Op kScalarOp = make_scalar_op();

uint64_t Graph::hash_of(const Op& op, const std::vector<Value>& inputs, const Attrs& attrs) const {
  uint64_t hash = hash_node(op, inputs, attrs);
  int round = round_of(&op, marks_);
  return round ? hash_mix(hash, uint64_t(round)) : hash;
}

const Node& Graph::append(const Op& op, std::vector<Value> inputs, const Attrs& attrs, std::vector<Type> types,
                          const std::string& where, uint64_t hash) {
  Node& node = nodes_.emplace_back();
  node.id = int(nodes_.size()) - 1;
  node.op = &op;
  node.inputs = std::move(inputs);
  node.attrs = attrs;
  node.types = std::move(types);
  node.where = where;
  if (op.kind != OpKind::kInput && op.kind != OpKind::kScalar) node.marks = marks_;
  // Equal random nodes stay apart.
  node.hash = op.random ? hash_mix(hash, by_hash_.count(hash) + 1) : hash;
  if (op.kind != OpKind::kInput) by_hash_.emplace(hash, &node);
  return node;
}

const Node* Graph::find_equal(uint64_t hash, const Op& op, const std::vector<Value>& inputs, const Attrs& attrs) const {
  if (op.random) return nullptr;
  auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (it->second->op == &op && it->second->inputs == inputs && it->second->attrs == attrs &&
        round_of(it->second->op, it->second->marks) == round_of(&op, marks_))
      return it->second;
  return nullptr;
}

Value Graph::add_input(const Type& type, const std::string& name) {
  uint64_t hash = hash_text(to_string(type), hash_mix(hash_text(kInputOp.name), inputs_.size()));
  append(kInputOp, {}, {}, {type}, {}, hash);
  nodes_.back().name = name;
  inputs_.push_back(nodes_.back().result());
  return inputs_.back();
}

Value Graph::add_scalar(const Scalar& value) { return add(kScalarOp, {}, ScalarAttrs{value}).result(); }

const Node& Graph::add(const Op& op, std::vector<Value> inputs, const Attrs& attrs, const std::string& where) {
  check_operands(op, inputs);
  uint64_t hash = hash_of(op, inputs, attrs);
  if (auto* node = find_equal(hash, op, inputs, attrs)) return *node;
  std::vector<Type> types;
  types.reserve(inputs.size());
  for (auto& v : inputs) types.push_back(v.type());
  types = infer_types(op, types, attrs);
  return append(op, std::move(inputs), attrs, std::move(types), where, hash);
}

const Node& Graph::add_typed(const Op& op, std::vector<Value> inputs, const Attrs& attrs, std::vector<Type> types,
                             const std::string& where) {
  check_operands(op, inputs);
  uint64_t hash = hash_of(op, inputs, attrs);
  if (auto* node = find_equal(hash, op, inputs, attrs)) return *node;
  return append(op, std::move(inputs), attrs, std::move(types), where, hash);
}

void Graph::check_operands(const Op& op, const std::vector<Value>& inputs) const {
  for (auto& v : inputs)
    SINTER_INTERNAL_ASSERT(v.node && size_t(v.node->id) < nodes_.size() && &nodes_[size_t(v.node->id)] == v.node &&
                               size_t(v.index) < v.node->types.size(),
                           "an operand of {} is no value of this graph", op.name);
}

uint64_t Graph::hash() const {
  uint64_t h = hash_mix(inputs_.size(), outputs_.size());
  for (auto& v : inputs_) h = hash_mix(h, v.node->hash);
  for (auto& v : outputs_) h = hash_mix(h, hash_mix(v.node->hash, uint64_t(v.index)));
  return h;
}

}  // namespace sinter
