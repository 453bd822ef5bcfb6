#include "sinter/passes/simplify.h"

#include "sinter/graph/nodes.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/pattern.h"

namespace sinter {

namespace {

// --- rules that read attributes

IntList dims_of(const Attrs& permute, int64_t rank) {
  return wrap_dims(known_ops().permute.name.data(), permute.as<PermuteAttrs>().dims, rank);
}

// The two permutations as one, and none at all where they undo each other.
Value merge_permutes(const RuleCall& call) {
  auto& ops = known_ops();
  if (call.node.op != &ops.permute) return {};
  Value x = call.inputs[0];
  IntList dims = dims_of(call.node.attrs, x.type().rank());
  bool merged = x.node->op == &ops.permute;
  if (merged) {
    IntList inner = dims_of(x.node->attrs, x.type().rank());
    for (auto& d : dims) d = inner[size_t(d)];
    x = x.node->inputs[0];
  }
  bool identity = true;
  for (size_t d = 0; d < dims.size(); ++d) identity = identity && dims[d] == int64_t(d);
  if (identity) return x;
  return merged ? call.context.add(ops.permute, {x}, PermuteAttrs{dims}).result() : Value();
}

// Reshapes in a row: only the shapes at both ends matter.
Value merge_reshapes(const RuleCall& call) {
  auto& ops = known_ops();
  if (!ops.is_reshape(*call.node.op) || !ops.is_reshape(*call.inputs[0].node->op)) return {};
  Value x = call.inputs[0].node->inputs[0];
  if (x.type() == call.type()) return x;
  return call.node.op == &ops.view ? call.context.add(ops.view, {x}, ViewAttrs{call.type().shape}).result() : Value();
}

Value merge_expands(const RuleCall& call) {
  auto& expand = known_ops().expand;
  if (call.node.op != &expand || call.inputs[0].node->op != &expand) return {};
  return call.context.add(expand, {call.inputs[0].node->inputs[0]}, ExpandAttrs{call.type().shape}).result();
}

// A few elements of x - row, where the row has one number along the dimension: those of x less the row, so that nobody
// needs the whole difference. That is the loss of log_softmax.
Value gather_before_sub(const RuleCall& call) {
  auto& ops = known_ops();
  if (call.node.op != &ops.gather || call.inputs[0].node->op != &ops.sub) return {};
  Value x = call.inputs[0].node->inputs[0], row = call.inputs[0].node->inputs[1], index = call.inputs[1];
  const Shape &whole = call.inputs[0].type().shape, &few = index.type().shape;
  size_t rank = whole.size();
  if (rank == 0 || !x.type().shape.same_as(whole) || row.type().shape.size() != rank) return {};
  size_t dim = size_t(wrap_dim("gather", call.node.attrs.as<GatherAttrs>().dim, int64_t(rank)));
  for (size_t d = 0; d < rank; ++d) {
    if (d == dim ? !row.type().shape[d].same_as(1) : !row.type().shape[d].same_as(whole[d]) || !few[d].same_as(whole[d]))
      return {};
  }
  if (!few[dim].same_as(1)) return {};
  Value taken = call.context.add(ops.gather, {x, index}, call.node.attrs).result();
  return call.context.add(ops.sub, {taken, row}, call.inputs[0].node->attrs).result();
}

// Whether the value counts 0, 1, 2, … along the dimension and is the same along all others.
bool counts_along(Value value, size_t dim) {
  auto& ops = known_ops();
  const Shape& shape = value.type().shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != dim && !shape[d].same_as(1)) return false;
  const Node* node = value.node;
  while (ops.is_reshape(*node->op)) node = node->inputs[0].node;
  if (node->op != &ops.arange) return false;
  auto start = constant_of(node->inputs[0]), step = constant_of(node->inputs[1]);
  return start && step && start->to_double() == 0 && step->to_double() == 1;
}

// The sum along a dimension of what is zero but at one place of it: what is there. That is the gradient of log_softmax behind
// a gather, which nobody stores then.
Value sum_of_one(const RuleCall& call) {
  auto& ops = known_ops();
  if (call.node.op != &ops.sum || !is_floating(call.type().dtype)) return {};
  Value x = call.inputs[0];
  const Shape& shape = x.type().shape;
  auto& attrs = call.node.attrs.as<ReduceAttrs>();
  if (attrs.dims.size() != 1 || x.type().dtype != call.type().dtype) return {};
  const size_t dim = size_t(wrap_dim("sum", attrs.dims[0], int64_t(shape.size())));
  const bool negative = x.node->op == &ops.neg;
  const Node& chosen = negative ? *x.node->inputs[0].node : *x.node;
  if (chosen.op != &ops.where || chosen.inputs[0].node->op != &ops.eq) return {};
  auto zero = constant_of(chosen.inputs[2]);
  if (!zero || zero->to_double() != 0) return {};
  Value places = chosen.inputs[0].node->inputs[0], place = chosen.inputs[0].node->inputs[1], value = chosen.inputs[1];
  if (place.type().rank() == int64_t(shape.size()) && counts_along(place, dim)) std::swap(place, places);
  auto is_one_along = [&](Value v) { return v.type().rank() == int64_t(shape.size()) && v.type().shape[dim].same_as(1); };
  if (places.type().rank() != int64_t(shape.size()) || !counts_along(places, dim)) return {};
  if (!is_one_along(place) || !is_one_along(value) || !is_integral(place.type().dtype) || !shape[dim].is_number()) return {};
  auto add = [&](const Op& op, std::vector<Value> operands) { return call.context.add(op, std::move(operands)).result(); };
  Value inside = add(ops.bitwise_and, {add(ops.le, {call.context.scalar(0), place}),
                                       add(ops.lt, {place, call.context.scalar(shape[dim].number())})});
  Value out = add(ops.where, {inside, value, chosen.inputs[2]});
  if (negative) out = add(ops.neg, {out});
  out = add(ops.add, {out, call.context.scalar(0.0)});  // a sum is never -0.0
  Shape kept = shape;
  kept[dim] = 1;
  if (!out.type().shape.same_as(kept)) out = call.context.add(ops.expand, {out}, ExpandAttrs{kept}).result();
  return attrs.keepdim ? out : call.context.add(ops.view, {out}, ViewAttrs{call.type().shape}).result();
}

// One of the pieces of a cat, or a part of one, is read where it was: complex numbers are joined and taken apart again.
Value select_of_cat(const RuleCall& call) {
  auto& ops = known_ops();
  if (call.node.op != &ops.select || call.inputs[0].node->op != &ops.cat) return {};
  const Node& cat = *call.inputs[0].node;
  auto attrs = call.node.attrs.as<SelectAttrs>();
  const int64_t rank = cat.types[0].rank();
  attrs.dim = wrap_dim("select", attrs.dim, rank);
  if (attrs.dim != wrap_dim("cat", cat.attrs.as<CatAttrs>().dim, rank) || !attrs.index.is_number()) return {};
  const Dim& whole = cat.types[0].shape[size_t(attrs.dim)];
  if (!whole.is_number()) return {};
  if (attrs.index.number() < 0) attrs.index = attrs.index + whole;
  for (auto& piece : cat.inputs) {
    const Dim& size = piece.type().shape[size_t(attrs.dim)];
    if (!size.is_number()) return {};
    if (attrs.index.number() < size.number()) return call.context.add(ops.select, {piece}, attrs).result();
    attrs.index = attrs.index - size;
  }
  return {};
}

// The only position of a dimension.
Value select_of_one(const RuleCall& call) {
  auto& ops = known_ops();
  if (call.node.op != &ops.select) return {};
  const Shape& shape = call.inputs[0].type().shape;
  const int64_t dim = wrap_dim("select", call.node.attrs.as<SelectAttrs>().dim, int64_t(shape.size()));
  if (!shape[size_t(dim)].same_as(1)) return {};
  return call.context.add(ops.view, {call.inputs[0]}, ViewAttrs{call.type().shape}).result();
}

std::vector<Rule> make_rules() {
  auto& ops = known_ops();
  const Pattern x = Pattern::any(0), y = Pattern::any(1), c = Pattern::any(2);
  auto apply = [](const Op& op, auto... operands) { return Pattern(op, {operands...}); };
  return {
      // -0.0 + 0 is 0.0, so only integers may drop it; adding -0.0 changes nothing.
      rule("x + 0", x + 0, x, When::kInteger),
      rule("x + -0.0", x + -0.0, x),
      rule("x - 0", x - 0, x),
      rule("x * 1", x * 1, x),
      rule("x / 1", x / 1, x),
      rule("-(-x)", -(-x), x),
      rule("x ** 1", apply(ops.pow, x, Pattern(1)), x),
      rule("x ** 2", apply(ops.pow, x, Pattern(2)), x * x),
      rule("x ** -1", apply(ops.pow, x, Pattern(-1)), apply(ops.reciprocal, x)),
      // Unsigned integers wrap: abs(-x) of u8 is 256 - x.
      rule("abs(-x)", apply(ops.abs, -x), apply(ops.abs, x), When::kFloating),
      rule("abs(abs(x))", apply(ops.abs, apply(ops.abs, x)), apply(ops.abs, x)),
      rule("relu(relu(x))", apply(ops.relu, apply(ops.relu, x)), apply(ops.relu, x)),

      rule("not not x", apply(ops.logical_not, apply(ops.logical_not, x)), x),
      rule("~~x", apply(ops.bitwise_not, apply(ops.bitwise_not, x)), x),
      rule("x & x", apply(ops.bitwise_and, x, x), x),
      rule("x | x", apply(ops.bitwise_or, x, x), x),
      rule("where(true, x, y)", apply(ops.where, Pattern(true), x, y), x),
      rule("where(false, x, y)", apply(ops.where, Pattern(false), x, y), y),
      rule("where(c, x, x)", apply(ops.where, c, x, x), x),

      // A copy is the same value. Whether it gets memory of its own is decided where values meet storage: capture
      // records which outputs must be fresh.
      rule("clone(x)", apply(ops.clone, x), x),
      // The type check does the rest: each of these gives its operand's type only when it changes nothing.
      rule("cast to its own dtype", apply(ops.cast, x), x),
      rule("alias(x)", apply(ops.alias, x), x),
      rule("view as it is", apply(ops.view, x), x),
      rule("expand to its own shape", apply(ops.expand, x), x),
      rule("squeeze of nothing", apply(ops.squeeze, x), x),
      rule("slice of all", apply(ops.slice, x), x),
      rule("repeat once", apply(ops.repeat, x), x),
      rule("cat of one", apply(ops.cat, x), x),

      {"view_as_real(view_as_complex(x))", [](const RuleCall& call) { return undone_look(*call.node.op, call.inputs).value_or(Value()); }},
      {"select(cat(x, y))", select_of_cat},
      {"select of the only one", select_of_one},
      {"permute(permute(x))", merge_permutes},
      {"view(view(x))", merge_reshapes},
      {"expand(expand(x))", merge_expands},
      {"gather(x - row)", gather_before_sub},
      {"sum(where(arange == i, x, 0))", sum_of_one},
  };
}

}  // namespace

Graph simplify(const Graph& graph) {
  static const std::vector<Rule> rules = make_rules();
  return rewrite(graph, rewrite_by(rules), {.to_fixed_point = true});
}

}  // namespace sinter
