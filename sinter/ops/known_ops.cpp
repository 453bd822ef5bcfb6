#include "sinter/ops/known_ops.h"

#include <algorithm>

#include "sinter/graph/interpreter.h"
#include "sinter/ops/view_path.h"

namespace sinter {

namespace {

const Op& op_named(std::string_view name) {
  const Op* op = find_op(name);
  SINTER_INTERNAL_ASSERT(op, "no op is called {}", name);
  return *op;
}

bool is_one_of(const Op& op, std::initializer_list<const Op*> ops) {
  for (auto* candidate : ops)
    if (&op == candidate) return true;
  return false;
}

}  // namespace

const KnownOps& known_ops() {
  static const KnownOps ops{
      .add = op_named("add"),
      .sub = op_named("sub"),
      .mul = op_named("mul"),
      .div = op_named("div"),
      .pow = op_named("pow"),
      .neg = op_named("neg"),
      .abs = op_named("abs"),
      .reciprocal = op_named("reciprocal"),
      .relu = op_named("relu"),
      .eq = op_named("eq"),
      .ne = op_named("ne"),
      .lt = op_named("lt"),
      .le = op_named("le"),
      .logical_and = op_named("logical_and"),
      .logical_or = op_named("logical_or"),
      .logical_xor = op_named("logical_xor"),
      .logical_not = op_named("logical_not"),
      .bitwise_and = op_named("bitwise_and"),
      .bitwise_or = op_named("bitwise_or"),
      .bitwise_xor = op_named("bitwise_xor"),
      .bitwise_not = op_named("bitwise_not"),
      .where = op_named("where"),
      .clone = op_named("clone"),
      .cast = op_named("_to_copy"),
      .cat = op_named("cat"),
      .repeat = op_named("repeat"),
      .full = op_named("full"),
      .arange = op_named("arange"),
      .constant_pad_nd = op_named("constant_pad_nd"),
      .alias = op_named("alias"),
      .view = op_named("view"),
      .permute = op_named("permute"),
      .expand = op_named("expand"),
      .squeeze = op_named("squeeze"),
      .unsqueeze = op_named("unsqueeze"),
      .slice = op_named("slice"),
      .select = op_named("select"),
      .as_strided = op_named("as_strided"),
      .view_as_real = op_named("view_as_real"),
      .view_as_complex = op_named("view_as_complex"),
      .write = write_op(),
      .gather = op_named("gather"),
      .sum = op_named("sum"),
      .mm = op_named("mm"),
      .bmm = op_named("bmm"),
      .cond = op_named("cond"),
      .while_loop = op_named("while_loop"),
  };
  return ops;
}

bool KnownOps::is_commutative(const Op& op) const {
  return is_one_of(
      op, {&add, &mul, &eq, &ne, &logical_and, &logical_or, &logical_xor, &bitwise_and, &bitwise_or, &bitwise_xor});
}

bool KnownOps::is_reshape(const Op& op) const { return is_one_of(op, {&alias, &view, &squeeze, &unsqueeze}); }

bool KnownOps::keeps_order(const Node& node) const {
  if (is_reshape(*node.op)) return true;
  const bool takes_a_part = is_one_of(*node.op, {&expand, &slice, &select});
  return takes_a_part && node.types[0].shape.numel().same_as(node.inputs[0].type().shape.numel());
}

bool joins_pairs(const Node& node) {
  if (node.op != &known_ops().cat || node.inputs.size() != 2) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](auto& piece) {
    auto& shape = piece.type().shape;
    return shape[shape.size() - 1].same_as(1) && !shape.same_as(node.types[0].shape);
  });
}

std::optional<Scalar> constant_of(Value value) {
  const Node* node = value.node;
  if (node->op == &kScalarOp) return node->attrs.as<ScalarAttrs>().value;
  if (node->op != &known_ops().full || node->inputs[0].node->op != &kScalarOp) return std::nullopt;
  const Scalar& given = node->inputs[0].node->attrs.as<ScalarAttrs>().value;
  Array number(value.type().dtype, {});
  if (given.is_floating())
    number.set(0, given.to_double());
  else
    number.set(0, given.to_int());
  return to_scalar(number);
}

Scalar to_scalar(const Array& array) {
  Array rounded = to_array(to_tensor(array));
  if (rounded.floating()) return Scalar(rounded.f[0]);
  return rounded.dtype == kBool ? Scalar(rounded.i[0] != 0) : Scalar(rounded.i[0]);
}

}  // namespace sinter
