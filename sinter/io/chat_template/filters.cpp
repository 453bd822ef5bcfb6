// Filters and tests.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sinter/base/error.h"
#include "sinter/base/xml.h"
#include "sinter/io/chat_template/builtins.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::jinja {

namespace {

using Filter = Value (*)(const Value&, const Arguments&);
using Test = bool (*)(const Value&, const Arguments&);

std::string text_argument(const Arguments& a, size_t index, const char* name, const char* missing) {
  auto* given = a.find(index, name);
  return given ? to_text(*given) : missing;
}

int64_t integer_argument(const Arguments& a, size_t index, const char* name, int64_t missing) {
  auto* given = a.find(index, name);
  if (!given) return missing;
  check(given->is_number() && !given->is_float(), "chat template: '{}' must be an integer", name);
  return given->integer();
}

// The element, or what "a.b.0" leads to inside it.
Value path(const Value& element, const Value* attribute_path) {
  if (!attribute_path) return element;
  if (!attribute_path->is_string()) return item(element, *attribute_path);
  Value value = element;
  std::string_view rest = attribute_path->text();
  for (;;) {
    size_t dot = rest.find('.');
    std::string part(rest.substr(0, dot));
    bool number = !part.empty() && part.size() < 10 &&
                  std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = item(value, number ? Value(int64_t(std::stoll(part))) : Value(part));
    if (dot == rest.npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

// select, reject, selectattr, rejectattr.
Value select(const Value& value, const Arguments& a, bool by_attribute, bool wanted) {
  Arguments rest = a;
  Value key;
  if (by_attribute) {
    check(!rest.positional.empty(), "chat template: selectattr needs the name of an attribute");
    key = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::string test;
  if (!rest.positional.empty()) {
    test = to_text(rest.positional[0]);
    rest.positional.erase(rest.positional.begin());
  }
  List result;
  for (auto& element : elements(value)) {
    Value subject = path(element, by_attribute ? &key : nullptr);
    if ((test.empty() ? subject.truthy() : apply_test(test, subject, rest)) == wanted) result.push_back(element);
  }
  return make_list(std::move(result));
}

Value map(const Value& value, const Arguments& a) {
  List result;
  auto* key = a.find(~size_t(0), "attribute");
  auto* missing = a.find(~size_t(0), "default");
  Arguments rest = a;
  if (!key) {
    check(!rest.positional.empty(), "chat template: map needs a filter or an attribute");
    rest.positional.erase(rest.positional.begin());
  }
  for (auto& element : elements(value)) {
    Value mapped = key ? path(element, key) : apply_filter(to_text(a.positional[0]), element, rest);
    result.push_back(mapped.is_undefined() && missing ? *missing : mapped);
  }
  return make_list(std::move(result));
}

Value join(const Value& value, const Arguments& a) {
  std::string separator = text_argument(a, 0, "d", ""), out;
  bool first = true;
  for (auto& element : elements(value)) {
    if (!first) out += separator;
    first = false;
    std::string part = to_text(path(element, a.find(1, "attribute")));
    spend_bytes(part.size() + separator.size());
    out += part;
  }
  return Value(std::move(out));
}

Value to_integer(const Value& value, const Arguments& a) {
  if (value.is_float() && std::fabs(value.number()) < 9e18) return int64_t(value.number());
  if (value.is_number() && !value.is_float()) return value.integer();
  if (value.is_string()) {
    char* end = nullptr;
    double number = std::strtod(value.text().c_str(), &end);
    if (end != value.text().c_str() && std::fabs(number) < 9e18) return int64_t(number);
  }
  return integer_argument(a, 0, "default", 0);
}

Value to_float(const Value& value, const Arguments& a) {
  if (value.is_number()) return value.number();
  if (value.is_string()) {
    char* end = nullptr;
    double number = std::strtod(value.text().c_str(), &end);
    if (end != value.text().c_str()) return number;
  }
  auto* missing = a.find(0, "default");
  return missing ? *missing : Value(0.0);
}

Value round(const Value& value, const Arguments& a) {
  check(value.is_number(), "chat template: round needs a number");
  double scale = std::pow(10.0, double(integer_argument(a, 0, "precision", 0)));
  std::string method = text_argument(a, 1, "method", "common");
  double scaled = value.number() * scale;
  return (method == "ceil"    ? std::ceil(scaled)
          : method == "floor" ? std::floor(scaled)
                              : std::nearbyint(scaled)) /
         scale;
}

Value indent(const Value& value, const Arguments& a) {
  auto* width = a.find(0, "width");
  std::string space = width && width->is_string() ? width->text() : std::string();
  if (space.empty() && !(width && width->is_string())) {
    int64_t count = integer_argument(a, 0, "width", 4);
    check(count >= 0 && count < 1000, "chat template: indent takes a width from 0 to 999");
    space.assign(size_t(count), ' ');
  }
  auto *first = a.find(1, "first"), *blank = a.find(2, "blank");
  std::string out = first && first->truthy() ? space : "";
  std::string text = to_text(value);
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    bool empty_line = i + 1 < text.size() && text[i + 1] == '\n';
    if (text[i] != '\n' || i + 1 == text.size() || (empty_line && !(blank && blank->truthy()))) continue;
    spend_bytes(space.size());
    out += space;
  }
  return make_text(std::move(out));
}

Value to_json_filter(const Value& value, const Arguments& a) {
  JsonStyle style;
  // Hugging Face's order of parameters: ensure_ascii, indent, separators, sort_keys.
  auto *indent = a.find(1, "indent"), *separators = a.find(2, "separators"), *sort = a.find(3, "sort_keys");
  if (indent && !indent->is_none()) {
    check(indent->is_integer() && indent->integer() >= 0 && indent->integer() < 100,
          "chat template: tojson takes an indent from 0 to 99");
    style.indent = int(indent->integer());
    style.item_separator = std::string(1, ',');
  }
  if (separators && separators->is_list() && separators->list().size() == 2) {
    style.item_separator = to_text(separators->list()[0]);
    style.key_separator = to_text(separators->list()[1]);
  }
  style.sort_keys = sort && sort->truthy();
  return make_text(to_json(value, style));
}

Value sorted(const Value& value, const Arguments& a) {
  List list = elements(value);
  auto *reverse = a.find(0, "reverse"), *sensitive = a.find(1, "case_sensitive"), *key = a.find(2, "attribute");
  bool fold = !(sensitive && sensitive->truthy()), backwards = reverse && reverse->truthy();
  std::stable_sort(list.begin(), list.end(), [&](const Value& x, const Value& y) {
    Value left = path(x, key), right = path(y, key);
    if (fold && left.is_string() && right.is_string()) {
      int order = tokenizers::lowercase(left.text()).compare(tokenizers::lowercase(right.text()));
      return backwards ? order > 0 : order < 0;
    }
    int order = compare(left, right);
    return backwards ? order > 0 : order < 0;
  });
  return make_list(std::move(list));
}

Value unique(const Value& value, const Arguments&) {
  List result;
  for (auto& element : elements(value))
    if (std::none_of(result.begin(), result.end(), [&](auto& seen) { return equal(seen, element); }))
      result.push_back(element);
  return make_list(std::move(result));
}

Value items(const Value& value, const Arguments&) {
  if (value.is_undefined()) return make_list({});
  check(value.is_dict(), "chat template: items needs a mapping, not {}", value.kind());
  List result;
  for (auto& [key, each] : value.dict().fields) result.push_back(make_list({make_text(key), each}));
  return make_list(std::move(result));
}

Value dictsort(const Value& value, const Arguments& a) {
  List list = items(value, {}).list();
  std::stable_sort(list.begin(), list.end(), [](const Value& x, const Value& y) {
    return tokenizers::lowercase(x.list()[0].text()) < tokenizers::lowercase(y.list()[0].text());
  });
  auto* reverse = a.find(2, "reverse");
  if (reverse && reverse->truthy()) std::reverse(list.begin(), list.end());
  return make_list(std::move(list));
}

Value method(const Value& value, const char* name, const Arguments& a) {
  return find_method(make_text(to_text(value)), name).call(a);
}

Value extreme(const Value& value, bool largest) {
  List list = elements(value);
  if (list.empty()) return Undefined{"of an empty list"};
  Value best = list[0];
  for (auto& each : list)
    if (largest ? compare(each, best) > 0 : compare(each, best) < 0) best = each;
  return best;
}

Value sum(const Value& value, const Arguments& a) {
  Value total = int64_t(0);
  for (auto& each : elements(value)) total = binary("+", total, path(each, a.find(0, "attribute")));
  return total;
}

Value defaulted(const Value& value, const Arguments& a) {
  auto *otherwise = a.find(0, "default_value"), *falsy = a.find(1, "boolean");
  bool use = value.is_undefined() || (falsy && falsy->truthy() && !value.truthy());
  return use ? (otherwise ? *otherwise : Value("")) : value;
}

Value reversed(const Value& value, const Arguments&) {
  List list = elements(value);
  std::reverse(list.begin(), list.end());
  if (!value.is_string()) return make_list(std::move(list));
  std::string text;
  for (auto& each : list) text += each.text();
  return make_text(std::move(text));
}

Value first_or_last(const Value& value, bool first) {
  List list = elements(value);
  return list.empty() ? Value(Undefined{"of an empty list"}) : first ? list.front() : list.back();
}

Value absolute(const Value& value) {
  check(value.is_number(), "chat template: abs needs a number");
  return value.is_float()      ? Value(std::fabs(value.number()))
         : value.integer() < 0 ? binary("-", int64_t(0), value)
                               : value;
}

const std::map<std::string, Filter, std::less<>>& filters() {
  static const std::map<std::string, Filter, std::less<>> table{
      {"trim", [](const Value& v, const Arguments& a) { return method(v, "strip", a); }},
      {"upper", [](const Value& v, const Arguments& a) { return method(v, "upper", a); }},
      {"lower", [](const Value& v, const Arguments& a) { return method(v, "lower", a); }},
      {"title", [](const Value& v, const Arguments& a) { return method(v, "title", a); }},
      {"capitalize", [](const Value& v, const Arguments& a) { return method(v, "capitalize", a); }},
      {"replace", [](const Value& v, const Arguments& a) { return method(v, "replace", a); }},
      {"length", [](const Value& v, const Arguments&) { return Value(length(v)); }},
      {"count", [](const Value& v, const Arguments&) { return Value(length(v)); }},
      {"string", [](const Value& v, const Arguments&) { return make_text(to_text(v)); }},
      {"safe", [](const Value& v, const Arguments&) { return v; }},
      {"list", [](const Value& v, const Arguments&) { return make_list(elements(v)); }},
      {"first", [](const Value& v, const Arguments&) { return first_or_last(v, true); }},
      {"last", [](const Value& v, const Arguments&) { return first_or_last(v, false); }},
      {"min", [](const Value& v, const Arguments&) { return extreme(v, false); }},
      {"max", [](const Value& v, const Arguments&) { return extreme(v, true); }},
      {"abs", [](const Value& v, const Arguments&) { return absolute(v); }},
      {"select", [](const Value& v, const Arguments& a) { return select(v, a, false, true); }},
      {"reject", [](const Value& v, const Arguments& a) { return select(v, a, false, false); }},
      {"selectattr", [](const Value& v, const Arguments& a) { return select(v, a, true, true); }},
      {"rejectattr", [](const Value& v, const Arguments& a) { return select(v, a, true, false); }},
      {"escape", [](const Value& v, const Arguments&) { return make_text(escape_markup(to_text(v))); }},
      {"e", [](const Value& v, const Arguments&) { return make_text(escape_markup(to_text(v))); }},
      {"attr", [](const Value& v, const Arguments& a) { return attribute(v, text_argument(a, 0, "name", "")); }},
      {"format",
       [](const Value& v, const Arguments& a) { return binary("%", make_text(to_text(v)), make_list(a.positional)); }},
      {"map", map},
      {"join", join},
      {"int", to_integer},
      {"float", to_float},
      {"round", round},
      {"indent", indent},
      {"tojson", to_json_filter},
      {"sort", sorted},
      {"unique", unique},
      {"items", items},
      {"dictsort", dictsort},
      {"default", defaulted},
      {"d", defaulted},
      {"reverse", reversed},
      {"sum", sum},
  };
  return table;
}

bool cased(const Value& v, Case to) { return v.is_string() && change_case(v.text(), to) == v.text(); }

const Value& other(const Arguments& a) {
  check(!a.positional.empty(), "chat template: a test needs a value to compare with");
  return a.positional[0];
}

int64_t whole(const Value& v) {
  check(v.is_number() && !v.is_float(), "chat template: a test needs an integer");
  return v.integer();
}

const std::map<std::string, Test, std::less<>>& tests() {
  static const std::map<std::string, Test, std::less<>> table{
      {"defined", [](const Value& v, const Arguments&) { return !v.is_undefined(); }},
      {"undefined", [](const Value& v, const Arguments&) { return v.is_undefined(); }},
      {"none", [](const Value& v, const Arguments&) { return v.is_none(); }},
      {"string", [](const Value& v, const Arguments&) { return v.is_string(); }},
      {"number", [](const Value& v, const Arguments&) { return v.is_number(); }},
      {"integer", [](const Value& v, const Arguments&) { return v.is_integer(); }},
      {"float", [](const Value& v, const Arguments&) { return v.is_float(); }},
      {"boolean", [](const Value& v, const Arguments&) { return v.is_boolean(); }},
      {"mapping", [](const Value& v, const Arguments&) { return v.is_dict() && !v.dict().is_namespace; }},
      {"sequence", [](const Value& v,
                      const Arguments&) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"iterable", [](const Value& v,
                      const Arguments&) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"callable", [](const Value& v, const Arguments&) { return v.is_function(); }},
      {"true", [](const Value& v, const Arguments&) { return v.is_boolean() && v.boolean(); }},
      {"false", [](const Value& v, const Arguments&) { return v.is_boolean() && !v.boolean(); }},
      {"odd", [](const Value& v, const Arguments&) { return whole(v) % 2 != 0; }},
      {"even", [](const Value& v, const Arguments&) { return whole(v) % 2 == 0; }},
      {"divisibleby",
       [](const Value& v, const Arguments& a) { return !binary("%", whole(v), whole(other(a))).truthy(); }},
      {"upper", [](const Value& v, const Arguments&) { return cased(v, Case::kUpper); }},
      {"lower", [](const Value& v, const Arguments&) { return cased(v, Case::kLower); }},
      {"in", [](const Value& v, const Arguments& a) { return contains(other(a), v); }},
      {"eq", [](const Value& v, const Arguments& a) { return equal(v, other(a)); }},
      {"equalto", [](const Value& v, const Arguments& a) { return equal(v, other(a)); }},
      {"sameas", [](const Value& v, const Arguments& a) { return v.kind() == other(a).kind() && equal(v, other(a)); }},
      {"ne", [](const Value& v, const Arguments& a) { return !equal(v, other(a)); }},
      {"lt", [](const Value& v, const Arguments& a) { return compare(v, other(a)) < 0; }},
      {"le", [](const Value& v, const Arguments& a) { return compare(v, other(a)) <= 0; }},
      {"gt", [](const Value& v, const Arguments& a) { return compare(v, other(a)) > 0; }},
      {"ge", [](const Value& v, const Arguments& a) { return compare(v, other(a)) >= 0; }},
      {"filter", [](const Value& v, const Arguments&) { return v.is_string() && filters().contains(v.text()); }},
      {"test", [](const Value& v, const Arguments&) { return v.is_string() && tests().contains(v.text()); }},
  };
  return table;
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  spend(1);
  auto found = filters().find(name);
  check(found != filters().end(), "chat template: there is no filter '{}'", name);
  return found->second(value, arguments);
}

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  spend(1);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kOperators{{
      {"==", "eq"},
      {"!=", "ne"},
      {"<", "lt"},
      {"<=", "le"},
      {">", "gt"},
      {">=", "ge"},
      {"lessthan", "lt"},
      {"greaterthan", "gt"},
      {"None", "none"},
  }};
  std::string_view plain = name;
  for (auto& [symbol, word] : kOperators)
    if (name == symbol) plain = word;
  auto found = tests().find(plain);
  check(found != tests().end(), "chat template: there is no test '{}'", name);
  return found->second(value, arguments);
}

}  // namespace sinter::jinja
