#include "sinter/passes/pattern.h"

#include <cmath>

#include "sinter/ops/known_ops.h"

namespace sinter {

struct Pattern::Expression {
  int letter = -1;
  const Op* op = nullptr;  // neither a letter nor an op: a number
  Scalar number = 0;
  std::vector<Pattern> operands;
};

namespace {

bool same_number(const Scalar& wanted, const Scalar& found) {
  if (wanted.dtype() == kBool || found.dtype() == kBool) return wanted == found;
  double a = wanted.to_double(), b = found.to_double();
  return a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

Pattern Pattern::any(int letter) {
  Pattern out(Scalar(0));
  out.expression_ = std::make_shared<Expression>(Expression{.letter = letter, .operands = {}});
  return out;
}

Pattern::Pattern(const Scalar& number)
    : expression_(std::make_shared<Expression>(Expression{.number = number, .operands = {}})) {}

Pattern::Pattern(const Op& op, std::vector<Pattern> operands)
    : expression_(std::make_shared<Expression>(Expression{.op = &op, .operands = std::move(operands)})) {}

bool Pattern::matches(const Op& op, const std::vector<Value>& inputs, Bindings& bindings) const {
  return expression_->op == &op && matches_operands(inputs, bindings);
}

bool Pattern::matches(Value value, Bindings& bindings) const {
  auto& e = *expression_;
  if (e.op) return matches(*value.node->op, value.node->inputs, bindings);
  if (e.letter < 0) {
    auto number = constant_of(value);
    return number && same_number(e.number, *number);
  }
  Value& bound = bindings[size_t(e.letter)];
  if (!bound) bound = value;
  return bound == value;
}

bool Pattern::matches_operands(const std::vector<Value>& inputs, Bindings& bindings) const {
  auto& e = *expression_;
  if (inputs.size() != e.operands.size()) return false;
  auto in_order = [&](const std::vector<Value>& values) {
    Bindings trial = bindings;
    for (size_t i = 0; i < values.size(); ++i)
      if (!e.operands[i].matches(values[i], trial)) return false;
    bindings = trial;
    return true;
  };
  if (in_order(inputs)) return true;
  return inputs.size() == 2 && known_ops().is_commutative(*e.op) && in_order({inputs[1], inputs[0]});
}

Value Pattern::build(RewriteContext& context, const Bindings& bindings) const {
  auto& e = *expression_;
  if (e.letter >= 0) return bindings[size_t(e.letter)];
  if (!e.op) return context.scalar(e.number);
  std::vector<Value> operands;
  for (auto& operand : e.operands) operands.push_back(operand.build(context, bindings));
  return context.add(*e.op, std::move(operands)).result();
}

Pattern operator+(const Pattern& a, const Pattern& b) { return {known_ops().add, {a, b}}; }
Pattern operator-(const Pattern& a, const Pattern& b) { return {known_ops().sub, {a, b}}; }
Pattern operator*(const Pattern& a, const Pattern& b) { return {known_ops().mul, {a, b}}; }
Pattern operator/(const Pattern& a, const Pattern& b) { return {known_ops().div, {a, b}}; }
Pattern operator-(const Pattern& a) { return {known_ops().neg, {a}}; }

Rule rule(std::string name, Pattern pattern, Pattern replacement, When when) {
  return {std::move(name), [=](const RuleCall& call) {
            if (when != When::kAlways && is_floating(call.type().dtype) != (when == When::kFloating)) return Value();
            Pattern::Bindings bindings;
            bool fits = pattern.matches(*call.node.op, call.inputs, bindings);
            return fits ? replacement.build(call.context, bindings) : Value();
          }};
}

RewriteRule rewrite_by(const std::vector<Rule>& rules) {
  return [&rules](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op->random || node.types.size() != 1) return std::nullopt;
    auto inputs = context.inputs(node);
    for (auto& rule : rules)
      if (Value value = rule.apply({context, node, inputs}); value && value.type() == node.types[0]) return {{value}};
    return std::nullopt;
  };
}

}  // namespace sinter
