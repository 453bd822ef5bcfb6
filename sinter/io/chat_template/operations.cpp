// Operators, look-ups and the making of values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/builtins.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::jinja {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxJsonDepth = 90;

thread_local ValueArena* arena = nullptr;

Value convert(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return None{};
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max())) return json.get<double>();
      return json.get<int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return make_text(json.get<std::string>());
    case Json::value_t::array: {
      List list;
      for (auto& each : json) list.push_back(convert(each));
      return make_list(std::move(list));
    }
    case Json::value_t::object: {
      Dict dict;
      for (auto it = json.begin(); it != json.end(); ++it) dict.set(it.key(), convert(*it));
      return make_dict(std::move(dict));
    }
    default:
      return Undefined{};
  }
}

constexpr const char* kTooLarge = "chat template: a number is too large";

Value integer_operation(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+" && !__builtin_add_overflow(a, b, &result)) return result;
  if (op == "-" && !__builtin_sub_overflow(a, b, &result)) return result;
  if (op == "*" && !__builtin_mul_overflow(a, b, &result)) return result;
  if (op == "//" || op == "%") {
    check(b != 0, "chat template: division by zero");
    if (b == -1) return op == "%" ? Value(int64_t(0)) : integer_operation("-", 0, a);
    int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return op == "//" ? quotient : a - quotient * b;
  }
  if (op == "**") {
    if (b < 0) return std::pow(double(a), double(b));
    result = 1;
    for (; b > 0; b >>= 1) {
      if (b & 1) check(!__builtin_mul_overflow(result, a, &result), kTooLarge);
      if (b > 1) check(!__builtin_mul_overflow(a, a, &a), kTooLarge);
    }
    return result;
  }
  throw_error(kTooLarge);
}

Value float_operation(const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  check(b != 0, "chat template: division by zero");
  if (op == "/") return a / b;
  double floor = std::floor(a / b);
  return op == "//" ? floor : a - floor * b;
}

template <class Sequence>
void repeat(Sequence& result, const Sequence& once, int64_t times, size_t unit) {
  if (times <= 0 || once.empty()) return;
  check(times < int64_t(1) << 32 && once.size() < (size_t(1) << 30), "chat template: it takes too much work");
  spend(int64_t(once.size()) * times / int64_t(unit));
  for (int64_t i = 0; i < times; ++i) result.insert(result.end(), once.begin(), once.end());
}

// "%s and %d" % (a, b)
std::string format_percent(const std::string& pattern, const List& values) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    check(++i < pattern.size(), "chat template: a format ends in '%'");
    char c = pattern[i];
    if (c == '%') {
      out += c;
      continue;
    }
    check(c == 's' || c == 'd' || c == 'i' || c == 'r', "chat template: the format '%{}' is not supported", c);
    check(next < values.size(), "chat template: a format has more places than values");
    const Value& value = values[next++];
    check(c == 's' || c == 'r' || value.is_number(), "chat template: the format '%{}' needs a number", c);
    out += c == 's'           ? to_text(value)
           : c == 'r'         ? to_repr(value)
           : value.is_float() ? std::to_string(int64_t(std::clamp(value.number(), -9e18, 9e18)))
                              : std::to_string(value.integer());
  }
  check(next == values.size(), "chat template: a format has fewer places than values");
  return out;
}

}  // namespace

ValueArena::ValueArena() : outer_(std::exchange(arena, this)) {}

ValueArena::~ValueArena() {
  arena = outer_;
  for (auto& list : lists_) list->clear();
  for (auto& dict : dicts_) dict->fields.clear();
}

Value make_list(List elements) {
  spend(1 + int64_t(elements.size()));
  auto list = std::make_shared<List>(std::move(elements));
  if (arena) arena->keep(list);
  return list;
}

Value make_dict(Dict fields) {
  spend(1 + int64_t(fields.fields.size()));
  auto dict = std::make_shared<Dict>(std::move(fields));
  if (arena) arena->keep(dict);
  return dict;
}

Value make_text(std::string text) {
  spend_bytes(text.size());
  return Value(std::move(text));
}

Value from_json(std::string_view json, const char* what) {
  auto limit = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start)
      check(depth < kMaxJsonDepth, "chat template: {} is nested too deeply", what);
    return true;
  };
  Json tree;
  try {
    tree = Json::parse(json, limit);
  } catch (const Json::exception& error) {
    throw_error(format("chat template: {} is not valid JSON: {}", what, error.what()));
  }
  return convert(tree);
}

List elements(const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_list()) {
    spend(int64_t(value.list().size()));
    return value.list();
  }
  List result;
  if (value.is_dict()) {
    for (auto& field : value.dict().fields) result.push_back(make_text(field.first));
  } else {
    check(value.is_string(), "chat template: {} cannot be iterated over", value.kind());
    tokenizers::each_character(value.text(),
                               [&](char32_t, std::string_view c) { result.push_back(make_text(std::string(c))); });
  }
  return result;
}

int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return int64_t(tokenizers::count_characters(value.text()));
  if (value.is_list()) return int64_t(value.list().size());
  check(value.is_dict(), "chat template: {} has no length", value.kind());
  return int64_t(value.dict().fields.size());
}

bool contains(const Value& container, const Value& element) {
  if (container.is_undefined()) return false;
  if (container.is_string()) {
    check(element.is_string(), "chat template: {} cannot be in a string", element.kind());
    spend_bytes(container.text().size());
    return container.text().find(element.text()) != std::string::npos;
  }
  if (container.is_dict()) return element.is_string() && container.dict().find(element.text());
  check(container.is_list(), "chat template: {} contains nothing", container.kind());
  return std::any_of(container.list().begin(), container.list().end(),
                     [&](auto& each) { return equal(each, element); });
}

Value attribute(const Value& value, const std::string& name) {
  check(!value.is_undefined(), "chat template: '{}' is undefined, and so has no '{}'", value.undefined_name(), name);
  bool is_namespace = value.is_dict() && value.dict().is_namespace;
  if (!is_namespace)
    if (Value method = find_method(value, name); !method.is_undefined()) return method;
  if (value.is_dict())
    if (auto* found = value.dict().find(name)) return *found;
  return Undefined{name};
}

Value item(const Value& value, const Value& key) {
  check(!value.is_undefined(), "chat template: '{}' is undefined, and so has no items", value.undefined_name());
  if (key.is_string()) {
    if (value.is_dict())
      if (auto* found = value.dict().find(key.text())) return *found;
    return attribute(value, key.text());
  }
  if (key.is_float() || !key.is_number() || !(value.is_list() || value.is_string())) return Undefined{to_text(key)};
  int64_t count = length(value), index = key.integer() < 0 ? key.integer() + count : key.integer();
  if (index < 0 || index >= count) return Undefined{to_text(key)};
  return value.is_list() ? value.list()[size_t(index)] : elements(value)[size_t(index)];
}

Value binary(const std::string& op, const Value& a, const Value& b) {
  if (op == "~") return make_text(to_text(a) + to_text(b));
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float() || op == "/") return float_operation(op, a.number(), b.number());
    return integer_operation(op, a.integer(), b.integer());
  }
  if (op == "+" && a.is_string() && b.is_string()) {
    spend_bytes(a.text().size() + b.text().size());
    return Value(a.text() + b.text());
  }
  if (op == "+" && a.is_list() && b.is_list()) {
    List both = elements(a);
    both.insert(both.end(), b.list().begin(), b.list().end());
    return make_list(std::move(both));
  }
  if (op == "%" && a.is_string()) return make_text(format_percent(a.text(), b.is_list() ? b.list() : List{b}));
  if (op == "*" && (a.is_string() || a.is_list()) && b.is_number() && !b.is_float()) {
    if (a.is_list()) {
      List list;
      repeat(list, a.list(), b.integer(), 1);
      return make_list(std::move(list));
    }
    std::string text;
    repeat(text, a.text(), b.integer(), 8);
    return Value(std::move(text));
  }
  for (auto* side : {&a, &b})
    check(!side->is_undefined(), "chat template: '{}' is undefined, and cannot be an operand of '{}'",
          side->undefined_name(), op);
  throw_error(format("chat template: '{}' is not defined for {} and {}", op, a.kind(), b.kind()));
}

}  // namespace sinter::jinja
