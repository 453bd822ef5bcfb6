#include "sinter/ops/sample.h"

#include "sinter/base/error.h"

namespace sinter {

namespace {

// Parts between commas outside brackets, without blanks.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

SampleText::Operand parse_operand(const std::string& text) {
  SampleText::Operand out;
  size_t bracket = text.find('['), close = text.find(']');
  if (bracket == std::string::npos) {
    out.scalar = true;
    parse_field(text, out.number);
    return out;
  }
  check(close != std::string::npos && close > bracket, "'{}' has no closing bracket", text);
  std::string name = text.substr(0, bracket);
  if (name != "x") {
    out.dtype = parse_dtype(name);
    check(out.dtype.has_value(), "an operand is x[...], <dtype>[...] or a number, not '{}'", text);
  }
  parse_field(text.substr(bracket, close - bracket + 1), out.sizes);
  if (close + 1 < text.size()) {
    check(text[close + 1] == '<', "'{}': only '<limit>' may follow the sizes", text);
    parse_field(text.substr(close + 2), out.below);
  }
  return out;
}

}  // namespace

SampleText parse_sample(std::string_view text) {
  SampleText out;
  size_t bar = text.find('|');
  for (auto& part : split(text.substr(0, bar))) out.operands.push_back(parse_operand(part));
  if (bar == std::string_view::npos) return out;
  for (auto& part : split(text.substr(bar + 1))) {
    size_t equals = part.find('=');
    check(equals != std::string::npos, "attributes are written name=value, not '{}'", part);
    out.attributes.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return out;
}

}  // namespace sinter
