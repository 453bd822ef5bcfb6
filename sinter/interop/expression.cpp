#include "sinter/interop/expression.h"

#include <charconv>

#include "sinter/base/error.h"

namespace sinter::interop {

namespace {

using Kind = Expression::Kind;

constexpr int kMostNesting = 64;
constexpr int64_t kMostPower = 16;

struct Operator {
  std::string_view name;
  Kind kind;
  size_t least, most;  // operands
};
constexpr Operator kOperators[] = {{"Add", Kind::kAdd, 1, 64},
                                   {"Mul", Kind::kMultiply, 1, 64},
                                   {"Pow", Kind::kPower, 2, 2},
                                   {"FloorDiv", Kind::kFloorDivide, 2, 2},
                                   {"CleanDiv", Kind::kFloorDivide, 2, 2},
                                   {"Mod", Kind::kModulo, 2, 2},
                                   {"PythonMod", Kind::kModulo, 2, 2},
                                   {"Max", Kind::kMax, 1, 64},
                                   {"Min", Kind::kMin, 1, 64}};

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression parse() {
    Expression out = expression(0);
    skip();
    if (at_ != text_.size()) fail();
    return out;
  }

 private:
  [[noreturn]] void fail() const {
    throw_error(format("the size '{}' is not understood: see character {}", text_.substr(0, 200), at_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  std::string_view word() {
    skip();
    const size_t begin = at_;
    auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) fail();
    return text_.substr(begin, at_ - begin);
  }

  // The rest of Symbol('s77', positive=True, integer=True): what is assumed of it is known already.
  Expression symbol() {
    expect('\'');
    Expression out{.kind = Kind::kSymbol, .symbol = std::string(word())};
    expect('\'');
    while (take(',')) {
      word();
      expect('=');
      word();
    }
    expect(')');
    return out;
  }

  Expression integer() {
    skip();
    Expression out;
    const char* end = text_.data() + text_.size();
    auto [last, error] = std::from_chars(text_.data() + at_, end, out.number);
    if (error != std::errc()) fail();
    at_ = size_t(last - text_.data());
    expect(')');
    return out;
  }

  Expression expression(int depth) {
    if (depth > kMostNesting) fail();
    const std::string_view name = word();
    expect('(');
    if (name == "Symbol") return symbol();
    if (name == "Integer") return integer();
    for (auto& op : kOperators) {
      if (op.name != name) continue;
      Expression out{.kind = op.kind};
      do {
        if (out.operands.size() == op.most) fail();
        out.operands.push_back(expression(depth + 1));
      } while (take(','));
      expect(')');
      if (out.operands.size() < op.least) fail();
      return out;
    }
    fail();
  }

  std::string_view text_;
  size_t at_ = 0;
};

Dim power(const Dim& base, const Dim& exponent) {
  const int64_t times = exponent.to_int();
  check(times >= 0 && times <= kMostPower, "a size to the power of {} is not supported", times);
  Dim out = 1;
  for (int64_t i = 0; i < times; ++i) out *= base;
  return out;
}

Dim apply(Kind kind, const Dim& a, const Dim& b) {
  if (kind == Kind::kFloorDivide || kind == Kind::kModulo)
    check(!(b.is_number() && b.number() == 0), "a size is divided by 0");
  switch (kind) {
    case Kind::kAdd:
      return a + b;
    case Kind::kMultiply:
      return a * b;
    case Kind::kPower:
      return power(a, b);
    case Kind::kFloorDivide:
      return a / b;
    case Kind::kModulo:
      return a % b;
    case Kind::kMax:
      return max(a, b);
    default:
      return min(a, b);
  }
}

}  // namespace

Expression parse_expression(std::string_view text) { return ExpressionParser(text).parse(); }

std::optional<Dim> evaluate(const Expression& expression, const std::map<std::string, Dim>& symbols) {
  if (expression.is_number()) return Dim(expression.number);
  if (expression.is_symbol()) {
    auto found = symbols.find(expression.symbol);
    return found == symbols.end() ? std::nullopt : std::optional<Dim>(found->second);
  }
  std::optional<Dim> out;
  for (auto& operand : expression.operands) {
    auto value = evaluate(operand, symbols);
    if (!value) return std::nullopt;
    out = out ? apply(expression.kind, *out, *value) : *value;
  }
  return out;
}

std::string to_string(const Expression& expression) {
  if (expression.is_number()) return std::to_string(expression.number);
  if (expression.is_symbol()) return expression.symbol;
  const char* kNames[] = {"", "", " + ", " * ", " ** ", " // ", " % ", "max", "min"};
  const std::string name = kNames[size_t(expression.kind)];
  const bool is_function = expression.kind == Kind::kMax || expression.kind == Kind::kMin;
  std::string out;
  for (auto& operand : expression.operands) {
    if (!out.empty()) out += is_function ? ", " : name;
    out += to_string(operand);
  }
  return (is_function ? name : "") + "(" + out + ")";
}

}  // namespace sinter::interop
