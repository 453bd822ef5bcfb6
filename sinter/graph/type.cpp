#include "sinter/graph/type.h"

#include "sinter/base/error.h"
#include "sinter/graph/attrs.h"
#include "sinter/graph/text_scan.h"

namespace sinter {

std::string to_string(const Type& type) {
  std::string out = type.weak ? "weak " : "";
  out.reserve(out.size() + 8 + 6 * type.shape.size());
  out += dtype_name(type.dtype);
  out += to_string(type.shape);
  if (type.device != Device()) out += "@" + to_string(type.device);
  return out;
}

Type parse_type(std::string_view text) {
  std::string_view rest = trim(text);
  Type type;
  if (rest.starts_with("weak ")) {
    type.weak = true;
    rest = trim(rest.substr(5));
  }
  size_t open = rest.find('[');
  check(open != std::string_view::npos, "'{}' is not a type: write one like 'f32[2, s0]'", text);
  auto dtype = parse_dtype(rest.substr(0, open));
  check(dtype.has_value(), "'{}' is not a type: no dtype is called '{}'", text, rest.substr(0, open));
  type.dtype = *dtype;
  size_t close = closing_bracket(rest, open);
  check(close != std::string_view::npos, "'{}' is not a type: '[' is not closed", text);
  parse_field(rest.substr(open, close - open + 1), type.shape);
  for (auto& d : type.shape) check(!d.is_number() || d.number() >= 0, "'{}' is not a type: a size is negative", text);
  rest = rest.substr(close + 1);
  if (!rest.empty()) {
    check(rest[0] == '@', "'{}' is not a type: '{}' follows it", text, rest);
    type.device = parse_device(std::string(rest.substr(1)));
  }
  return type;
}

namespace {

using Rank = std::optional<DType>;

Rank promote_ranks(Rank a, Rank b) {
  if (!a || !b) return a ? a : b;
  return promote_types(*a, *b);
}

// A lower rank of operands counts only when it is of a higher category.
Rank combine_ranks(Rank higher, Rank lower) {
  if (!higher) return lower;
  if (is_complex(*higher)) return higher;
  if (is_floating(*higher)) return lower && is_complex(*lower) ? complex_dtype(*higher) : higher;
  if (*higher == kBool || (lower && is_differentiable(*lower))) return promote_ranks(higher, lower);
  return higher;
}

}  // namespace

DType promote_operands(std::span<const Type> operands) {
  Rank sized, zero_dim, number;
  for (auto& t : operands) {
    if (t.weak)
      number = promote_ranks(number, is_floating(t.dtype) ? kFloat32 : is_complex(t.dtype) ? kComplex64 : t.dtype);
    else if (t.rank() == 0)
      zero_dim = promote_ranks(zero_dim, t.dtype);
    else
      sized = promote_ranks(sized, t.dtype);
  }
  return combine_ranks(sized, combine_ranks(zero_dim, number)).value_or(kFloat32);
}

}  // namespace sinter
