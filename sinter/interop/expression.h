#pragma once
// Sizes of an exported program that depend on its inputs, as sympy writes them: Add(Symbol('s77', positive=True, integer=True),
// Integer(1)). Read as data: what is no arithmetic on integers is an Error, and nothing is evaluated by its name.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/tensor/dim.h"

namespace sinter::interop {

struct Expression {
  enum class Kind : uint8_t { kNumber, kSymbol, kAdd, kMultiply, kPower, kFloorDivide, kModulo, kMax, kMin };
  Kind kind = Kind::kNumber;
  int64_t number = 0;
  std::string symbol = {};
  std::vector<Expression> operands = {};

  bool is_number() const { return kind == Kind::kNumber; }
  bool is_symbol() const { return kind == Kind::kSymbol; }
};

Expression parse_expression(std::string_view text);

// The value where symbols have these; nothing while one of them is unknown.
std::optional<Dim> evaluate(const Expression& expression, const std::map<std::string, Dim>& symbols);

// "s77 + 1".
std::string to_string(const Expression& expression);

}  // namespace sinter::interop
