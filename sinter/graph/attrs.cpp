#include "sinter/graph/attrs.h"

#include <charconv>

#include "sinter/graph/text_scan.h"

namespace sinter {

namespace {

template <class T>
bool read_number(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// The inside of "[…]".
std::vector<std::string_view> list_items(std::string_view text) {
  check(text.size() >= 2 && text[0] == '[' && closing_bracket(text, 0) == text.size() - 1,
        "'{}' is not a list: write one like '[1, 2]'", text);
  return split_list(text.substr(1, text.size() - 2));
}

}  // namespace

std::string field_text(bool v) { return v ? "true" : "false"; }
std::string field_text(int64_t v) { return std::to_string(v); }
std::string field_text(double v) { return double_to_string(v); }
std::string field_text(DType v) { return to_string(v); }
std::string field_text(Device v) { return to_string(v); }
std::string field_text(const Scalar& v) { return to_string(v); }
std::string field_text(const Dim& v) { return to_string(v); }
std::string field_text(const IntList& v) { return to_string(v); }
std::string field_text(const Shape& v) { return to_string(v); }
std::string field_text(const std::string& v) { return quote(v); }

void parse_field(std::string_view text, bool& out) {
  check(text == "true" || text == "false", "'{}' is neither true nor false", text);
  out = text == "true";
}
void parse_field(std::string_view text, int64_t& out) { check(read_number(text, out), "'{}' is not an integer", text); }
void parse_field(std::string_view text, double& out) { check(read_number(text, out), "'{}' is not a number", text); }
void parse_field(std::string_view text, DType& out) {
  auto dtype = parse_dtype(text);
  check(dtype.has_value(), "no dtype is called '{}'", text);
  out = *dtype;
}
void parse_field(std::string_view text, Device& out) { out = parse_device(std::string(text)); }
void parse_field(std::string_view text, Scalar& out) {
  int64_t integer;
  double number;
  if (text == "true" || text == "false")
    out = Scalar(text == "true");
  else if (read_number(text, integer))
    out = Scalar(integer);
  else if (read_number(text, number))
    out = Scalar(number);
  else
    throw_error(format("'{}' is not a number", text));
}
void parse_field(std::string_view text, Dim& out) { out = parse_dim(text); }
void parse_field(std::string_view text, IntList& out) {
  out.clear();
  for (auto item : list_items(text)) {
    int64_t value;
    parse_field(item, value);
    out.push_back(value);
  }
}
void parse_field(std::string_view text, Shape& out) {
  out.clear();
  for (auto item : list_items(text)) out.push_back(parse_dim(item));
}
void parse_field(std::string_view text, std::string& out) { out = unquote(text); }

}  // namespace sinter
