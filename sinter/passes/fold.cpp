#include "sinter/passes/fold.h"

#include <algorithm>
#include <bit>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// What is evaluated element by element, operands and result each.
constexpr int64_t kMostElements = 1024;

bool is_empty(const Type& type) {
  return std::any_of(type.shape.begin(), type.shape.end(), [](auto& d) { return d.same_as(0); });
}

// The constants a node works on; nothing when an operand is no constant. No element at all is filled with any number.
std::optional<std::vector<Scalar>> constants_of(const std::vector<Value>& inputs) {
  std::vector<Scalar> out;
  for (auto& v : inputs) {
    auto number = constant_of(v);
    if (!number && is_empty(v.type())) number = Scalar(0);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

bool is_small(const Type& type) { return type.shape.is_static() && type.shape.numel().number() <= kMostElements; }

bool is_static(const Attrs& attrs) {
  bool numbers = true;
  attrs.map_dims([&](const Dim& d) {
    numbers = numbers && d.is_number();
    return d;
  });
  return numbers;
}

// The node on operands of these types filled with these numbers, by the interpreter.
Array evaluate(const Op& op, const Attrs& attrs, const std::vector<Type>& types, const std::vector<Scalar>& numbers) {
  Graph graph;
  std::vector<Value> operands;
  std::vector<Array> arrays;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].weak) {
      operands.push_back(graph.add_scalar(numbers[i]));
      continue;
    }
    operands.push_back(graph.add_input(types[i]));
    Array& array = arrays.emplace_back(types[i].dtype, types[i].shape.numbers());
    for (int64_t at = 0; at < array.numel(); ++at)
      array.floating() ? array.set(at, numbers[i].to_double()) : array.set(at, numbers[i].to_int());
  }
  graph.set_outputs({graph.add(op, std::move(operands), attrs).result()});
  return interpret(graph, arrays)[0];
}

// The number that fills the array; nothing when elements differ or there are none.
std::optional<Scalar> filling(const Array& array) {
  if (array.numel() == 0) return std::nullopt;
  for (int64_t at = 1; at < array.numel(); ++at) {
    bool same = array.floating() ? std::bit_cast<int64_t>(array.f[size_t(at)]) == std::bit_cast<int64_t>(array.f[0])
                                 : array.i[size_t(at)] == array.i[0];
    if (!same) return std::nullopt;
  }
  Array first(array.dtype, {});
  array.floating() ? first.set(0, array.f[0]) : first.set(0, array.i[0]);
  return to_scalar(first);
}

// One element stands for all where the op looks at elements one by one, whatever the sizes. The rank is kept, since
// sized and 0-d tensors promote differently.
Type with_one_element(Type type) {
  for (auto& d : type.shape) d = 1;
  return type;
}

std::optional<Scalar> folded(const Node& node, const std::vector<Value>& inputs) {
  auto numbers = constants_of(inputs);
  if (!numbers) return std::nullopt;
  std::vector<Type> types;
  for (auto& v : inputs) types.push_back(v.type());
  const Type& result = node.types[0];
  if (node.op->kind == OpKind::kView) return numbers->at(0);
  if (node.op->kind == OpKind::kPointwise) {
    for (auto& type : types) type = with_one_element(type);
    return filling(evaluate(*node.op, node.attrs, types, *numbers));
  }
  if (node.op == &known_ops().full) {
    auto attrs = CreationAttrs{{}, result.dtype, result.device};
    return filling(evaluate(*node.op, attrs, types, *numbers));
  }
  // What is combined of nothing is the same everywhere: a kernel would read what does not exist.
  if (node.op->kind == OpKind::kReduce && is_empty(types[0]) && !is_empty(result)) {
    for (auto& d : types[0].shape)
      if (!d.same_as(0)) d = 1;
    return filling(evaluate(*node.op, node.attrs, types, *numbers));
  }
  for (auto& type : types)
    if (!is_small(type)) return std::nullopt;
  if (!is_small(result) || !is_static(node.attrs)) return std::nullopt;
  return filling(evaluate(*node.op, node.attrs, types, *numbers));
}

// The number that fills the node's result on these operands, if there is one and it is not plain to see already.
std::optional<Scalar> number_of(const Node& node, const std::vector<Value>& inputs) {
  bool made_of_number = node.op == &known_ops().full && node.inputs[0].node->op == &kScalarOp;
  if (made_of_number || node.op->kind == OpKind::kScalar || node.op->kind == OpKind::kInput || node.op->random ||
      node.types.size() != 1)
    return std::nullopt;
  try {
    return folded(node, inputs);
  } catch (const Error&) {
    return std::nullopt;  // what fails on these numbers is to fail when it runs
  }
}

}  // namespace

bool has_constant_nodes(const Graph& graph) {
  auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](auto& node) { return number_of(node, node.inputs).has_value(); });
}

Graph fold(const Graph& graph) {
  return rewrite(graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    auto number = number_of(node, context.inputs(node));
    if (!number) return std::nullopt;
    const Type& type = node.types[0];
    Value value = context.scalar(*number);
    return {{context.add(known_ops().full, {value}, CreationAttrs{type.shape, type.dtype, type.device}).result()}};
  });
}

}  // namespace sinter
