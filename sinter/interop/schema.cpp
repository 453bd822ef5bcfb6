#include "sinter/interop/schema.h"

#include <charconv>

#include "sinter/base/error.h"

namespace sinter::interop {

namespace {

// PyTorch's numbers of dtypes in defaults.
std::optional<DType> dtype_of_code(int64_t code) {
  constexpr DType kTypes[] = {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64};
  constexpr int64_t kBoolCode = 11, kBFloat16Code = 15;
  if (code >= 0 && code < std::ssize(kTypes)) return kTypes[code];
  if (code == kBoolCode) return kBool;
  if (code == kBFloat16Code) return kBFloat16;
  return std::nullopt;
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema out;
    out.name = full_name(until("("));
    expect("(");
    while (!take(")")) {
      if (!take("*")) out.parameters.push_back(parameter());
      if (!peek(")")) expect(",");
    }
    expect("->");
    return out;
  }

 private:
  [[noreturn]] void fail() const { throw_error(format("'{}' is no schema: see character {}", text_, at_)); }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail();
  }
  std::string_view until(std::string_view ends) {
    skip();
    size_t end = text_.find_first_of(ends, at_);
    if (end == std::string_view::npos) fail();
    std::string_view out = text_.substr(at_, end - at_);
    at_ = end;
    return out;
  }

  static std::string full_name(std::string_view written) {
    size_t colons = written.find("::");
    if (colons != std::string_view::npos)
      return std::string(written.substr(0, colons)) + "." + std::string(written.substr(colons + 2));
    bool has_overload = written.find('.') != std::string_view::npos;
    return "aten." + std::string(written) + (has_overload ? "" : ".default");
  }

  // "Tensor(a!)", "Tensor(a -> *)[]" without the parentheses.
  std::string type() {
    std::string out;
    while (at_ < text_.size() && text_[at_] != ' ') {
      if (text_[at_] == '(') {
        until(")");
        ++at_;
      } else {
        out += text_[at_++];
      }
    }
    return out;
  }

  Parameter parameter() {
    skip();
    Parameter out;
    out.type = type();
    out.name = until("=,)");
    if (take("=")) out.standard = standard(out.type);
    return out;
  }

  Value standard(const std::string& type) {
    if (take("[")) {
      ValueList list;
      while (!take("]")) {
        list.push_back(standard(type));
        take(",");
      }
      return {list};
    }
    if (take("\"")) {
      std::string text(until("\""));
      ++at_;
      return {text};
    }
    return word(type, until(",)]"));
  }

  Value word(const std::string& type, std::string_view text) const {
    if (text == "None") return {};
    if (text == "True") return {true};
    if (text == "False") return {false};
    int64_t integer = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, integer).ptr == end) {
      if (type.starts_with("ScalarType")) {
        auto dtype = dtype_of_code(integer);
        if (!dtype) fail();
        return {*dtype};
      }
      if (type.starts_with("MemoryFormat")) return {MemoryFormat::kContiguous};
      return {Dim(integer)};
    }
    double real = 0;
    if (std::from_chars(text.data(), end, real).ptr != end) fail();
    return {Scalar(real)};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Schema parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

}  // namespace sinter::interop
