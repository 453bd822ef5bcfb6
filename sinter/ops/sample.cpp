#include "sinter/ops/sample.h"

#include "sinter/base/error.h"
#include "sinter/graph/text_scan.h"

namespace sinter {

namespace {

SampleText::Operand parse_operand(std::string_view text) {
  SampleText::Operand out;
  size_t bracket = text.find('['), close = text.find(']');
  if (bracket == std::string_view::npos) {
    out.scalar = true;
    parse_field(text, out.number);
    return out;
  }
  check(close != std::string_view::npos && close > bracket, "'{}' has no closing bracket", text);
  std::string_view name = text.substr(0, bracket);
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
  for (auto part : split_list(text.substr(0, bar))) out.operands.push_back(parse_operand(part));
  if (bar == std::string_view::npos) return out;
  for (auto part : split_list(text.substr(bar + 1))) {
    size_t equals = part.find('=');
    check(equals != std::string_view::npos, "attributes are written name=value, not '{}'", part);
    out.attributes.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
  }
  return out;
}

}  // namespace sinter
