#include "sinter/io/chat_template/value.h"

#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::jinja {

namespace {

constexpr int kMaxDepth = 100;

thread_local int64_t* work_left = nullptr;

void check_depth(int depth) {
  check(depth < kMaxDepth, "chat template: a value is nested too deeply");
  spend(1);
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  double magnitude = std::fabs(value);
  if (value == std::floor(value) && magnitude < 1e16) return format("{}.0", std::to_string(int64_t(value)));
  return double_to_string(value);
}

std::string quoted_json(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  spend_bytes(text.size());
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += {'\\', 'u', '0', '0', kHex[c >> 4 & 15], kHex[c & 15]};
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string quoted_python(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  spend_bytes(text.size());
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += {'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += {'\\', 'x', kHex[c >> 4 & 15], kHex[c & 15]};
    } else {
      out += c;
    }
  }
  return out + quote;
}

}  // namespace

WorkMeter::WorkMeter(int64_t work) : left_(work), outer_(std::exchange(work_left, &left_)) {}
WorkMeter::~WorkMeter() { work_left = outer_; }

void spend(int64_t work) {
  if (work_left) check((*work_left -= work) >= 0, "chat template: it takes too much work");
}

const Value* Dict::find(std::string_view key) const {
  for (auto& [name, value] : fields)
    if (name == key) return &value;
  return nullptr;
}

void Dict::set(const std::string& key, Value value) {
  for (auto& [name, old] : fields)
    if (name == key) {
      old = std::move(value);
      return;
    }
  fields.emplace_back(key, std::move(value));
}

const Value* Arguments::find(size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (auto& [given, value] : named)
    if (given == name) return &value;
  return nullptr;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return is_float() ? number() != 0 : integer() != 0;
  if (is_string()) return !text().empty();
  if (is_list()) return !list().empty();
  if (is_dict()) return dict().is_namespace || !dict().fields.empty();
  return true;
}

const char* Value::kind() const {
  if (is_undefined()) return "undefined";
  if (is_none()) return "none";
  if (is_boolean()) return "a boolean";
  if (is_number()) return "a number";
  if (is_string()) return "a string";
  if (is_list()) return "a list";
  return is_dict() ? "a mapping" : "a function";
}

bool equal(const Value& a, const Value& b, int depth) {
  check_depth(depth);
  if (a.is_number() && b.is_number())
    return a.is_float() || b.is_float() ? a.number() == b.number() : a.integer() == b.integer();
  if (a.is_string() && b.is_string()) return a.text() == b.text();
  if (a.is_list() && b.is_list()) {
    return std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(),
                      [&](const Value& x, const Value& y) { return equal(x, y, depth + 1); });
  }
  if (a.is_dict() && b.is_dict()) {
    if (&a.dict() == &b.dict()) return true;
    if (a.dict().fields.size() != b.dict().fields.size()) return false;
    return std::all_of(a.dict().fields.begin(), a.dict().fields.end(), [&](auto& field) {
      auto* other = b.dict().find(field.first);
      return other && equal(field.second, *other, depth + 1);
    });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare(const Value& a, const Value& b, int depth) {
  check_depth(depth);
  if (a.is_number() && b.is_number()) {
    if (!a.is_float() && !b.is_float()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
    return a.number() < b.number() ? -1 : a.number() > b.number();
  }
  if (a.is_string() && b.is_string()) return a.text().compare(b.text());
  check(a.is_list() && b.is_list(), "chat template: {} and {} cannot be ordered", a.kind(), b.kind());
  for (size_t i = 0; i < std::min(a.list().size(), b.list().size()); ++i)
    if (int order = compare(a.list()[i], b.list()[i], depth + 1)) return order;
  return a.list().size() < b.list().size() ? -1 : a.list().size() > b.list().size();
}

std::string to_text(const Value& value, int depth) {
  if (value.is_undefined()) return "";
  if (value.is_string()) return value.text();
  return to_repr(value, depth);
}

std::string to_repr(const Value& value, int depth) {
  check_depth(depth);
  if (value.is_none()) return "None";
  if (value.is_undefined()) return "Undefined";
  if (value.is_boolean()) return value.boolean() ? "True" : "False";
  if (value.is_integer()) return std::to_string(value.integer());
  if (value.is_float()) return float_text(value.number());
  if (value.is_string()) return quoted_python(value.text());
  if (value.is_function()) return "<function>";
  std::string out;
  if (value.is_list()) {
    for (auto& each : value.list()) out += (out.empty() ? "" : ", ") + to_repr(each, depth + 1);
    return "[" + out + "]";
  }
  for (auto& [key, each] : value.dict().fields)
    out += (out.empty() ? "" : ", ") + quoted_python(key) + ": " + to_repr(each, depth + 1);
  return "{" + out + "}";
}

std::string to_json(const Value& value, const JsonStyle& style, int depth) {
  check_depth(depth);
  check(!value.is_undefined() && !value.is_function(), "chat template: tojson cannot write {}", value.kind());
  if (value.is_none()) return "null";
  if (value.is_boolean()) return value.boolean() ? "true" : "false";
  if (value.is_float() && !std::isfinite(value.number()))
    return std::isnan(value.number()) ? "NaN" : value.number() < 0 ? "-Infinity" : "Infinity";
  if (value.is_number()) return to_repr(value);
  if (value.is_string()) return quoted_json(value.text());

  std::string line = style.indent < 0 ? "" : "\n" + std::string(size_t(style.indent) * size_t(depth + 1), ' ');
  std::string last = style.indent < 0 ? "" : "\n" + std::string(size_t(style.indent) * size_t(depth), ' ');
  std::string out;
  auto item = [&](const std::string& text) {
    if (!out.empty()) out += style.item_separator;
    out += line + text;
  };
  if (value.is_list()) {
    for (auto& each : value.list()) item(to_json(each, style, depth + 1));
    return out.empty() ? "[]" : "[" + out + last + "]";
  }
  auto fields = value.dict().fields;
  if (style.sort_keys)
    std::stable_sort(fields.begin(), fields.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& [key, each] : fields) item(quoted_json(key) + style.key_separator + to_json(each, style, depth + 1));
  return out.empty() ? "{}" : "{" + out + last + "}";
}

std::string change_case(std::string_view text, Case to) {
  if (to == Case::kLower) return tokenizers::lowercase(text);
  std::string out;
  bool in_word = false;
  tokenizers::each_character(text, [&](char32_t c, std::string_view piece) {
    bool letter = tokenizers::is_letter(c);
    bool upper = to == Case::kUpper || !in_word;
    in_word = to == Case::kTitle ? letter : true;
    out += upper ? tokenizers::uppercase(piece) : tokenizers::lowercase(piece);
  });
  return out;
}

}  // namespace sinter::jinja
