#pragma once
// Patterns of values, written with the operators they match, and the rules made of them:
//
//   rule("x - 0", x - 0, x)
//
// A rule fires where the pattern matches and the replacement has the very type (dtype, sizes, device, weakness) of what
// it replaces: where an operand broadcasts or promotes, it does not.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/graph/rewrite.h"

namespace sinter {

class Pattern {
 public:
  // Any value; the same value wherever the same letter stands.
  static Pattern any(int letter);
  // A constant of this number, sign of zero included. A bool stands for a truth value only.
  template <class T>
  requires std::is_arithmetic_v<T> Pattern(T number) : Pattern(Scalar(number)) {}
  // The op on these operands, in either order where it does not matter. Its attributes are not looked at.
  Pattern(const Op& op, std::vector<Pattern> operands);

  static constexpr int kLetters = 3;
  using Bindings = std::array<Value, kLetters>;

  // Whether `op` on `inputs` looks like this pattern; binds its letters.
  bool matches(const Op& op, const std::vector<Value>& inputs, Bindings& bindings) const;
  // The value that the pattern describes.
  Value build(RewriteContext& context, const Bindings& bindings) const;

 private:
  struct Expression;
  explicit Pattern(const Scalar& number);
  bool matches(Value value, Bindings& bindings) const;
  bool matches_operands(const std::vector<Value>& inputs, Bindings& bindings) const;

  std::shared_ptr<const Expression> expression_;
};

Pattern operator+(const Pattern& a, const Pattern& b);
Pattern operator-(const Pattern& a, const Pattern& b);
Pattern operator*(const Pattern& a, const Pattern& b);
Pattern operator/(const Pattern& a, const Pattern& b);
Pattern operator-(const Pattern& a);

// The node being rewritten, and its operands in the new graph.
struct RuleCall {
  RewriteContext& context;
  const Node& node;
  const std::vector<Value>& inputs;
  const Type& type() const { return node.types[0]; }
};
// What such a node may be replaced by; no value when the rule does not apply.
struct Rule {
  std::string name;
  std::function<Value(const RuleCall& call)> apply;
};

// Further conditions of a rule: the result's dtype.
enum class When { kAlways, kInteger, kFloating };
Rule rule(std::string name, Pattern pattern, Pattern replacement, When when = When::kAlways);

// A rewrite by the first rule of the table that gives a value of the right type.
RewriteRule rewrite_by(const std::vector<Rule>& rules);

}  // namespace sinter
