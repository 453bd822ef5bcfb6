// Methods of strings, lists and mappings, and the functions that every template has.
#include <algorithm>
#include <ctime>
#include <map>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/builtins.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::jinja {

namespace {

using Method = Value (*)(const Value&, const Arguments&);
using Methods = std::map<std::string, Method, std::less<>>;

const Value& required(const Arguments& a, size_t index, const char* name) {
  auto* given = a.find(index, name);
  check(given != nullptr, "chat template: the argument '{}' is missing", name);
  return *given;
}

const std::string& required_text(const Arguments& a, size_t index, const char* name) {
  const Value& value = required(a, index, name);
  check(value.is_string(), "chat template: the argument '{}' must be a string, not {}", name, value.kind());
  return value.text();
}

int64_t optional_integer(const Arguments& a, size_t index, const char* name, int64_t missing) {
  auto* given = a.find(index, name);
  if (!given || given->is_none()) return missing;
  check(given->is_number() && !given->is_float(), "chat template: '{}' must be an integer", name);
  return given->integer();
}

Value strip(const Value& value, const Arguments& a, bool left, bool right) {
  auto* set = a.find(0, "chars");
  std::u32string characters;
  if (set && set->is_string())
    tokenizers::each_character(set->text(), [&](char32_t c, std::string_view) { characters += c; });
  bool spaces = !(set && set->is_string());
  // Python's white space has the four separators of ASCII too.
  auto drop = [&](char32_t c) {
    return spaces ? tokenizers::is_whitespace(c) || (c >= 0x1C && c <= 0x1F) : characters.find(c) != characters.npos;
  };
  const std::string& text = value.text();
  size_t begin = text.size(), end = 0, at = 0;
  tokenizers::each_character(text, [&](char32_t c, std::string_view piece) {
    if (!drop(c)) {
      begin = std::min(begin, at);
      end = at + piece.size();
    }
    at += piece.size();
  });
  if (!left) begin = 0;
  if (!right) end = text.size();
  return make_text(begin < end ? text.substr(begin, end - begin) : "");
}

Value split(const Value& value, const Arguments& a, bool from_right) {
  auto* separator = a.find(0, "sep");
  int64_t limit = optional_integer(a, 1, "maxsplit", -1);
  std::string_view text = value.text();
  List parts;
  auto add = [&](std::string_view part) { parts.push_back(make_text(std::string(part))); };
  auto more = [&] { return limit < 0 || int64_t(parts.size()) < limit; };
  if (!separator || separator->is_none()) {
    check(!from_right, "chat template: rsplit needs a separator");
    size_t at = 0;
    auto skip = [&](bool spaces) {
      while (at < text.size()) {
        auto c = tokenizers::first_character(text.substr(at));
        if (tokenizers::is_whitespace(c.code) != spaces) break;
        at += c.size;
      }
    };
    for (skip(true); at < text.size(); skip(true)) {
      size_t begin = at;
      if (!more()) {
        size_t end = text.size();
        while (end > begin && tokenizers::is_whitespace(static_cast<unsigned char>(text[end - 1]))) --end;
        add(text.substr(begin, end - begin));
        break;
      }
      skip(false);
      add(text.substr(begin, at - begin));
    }
    return make_list(std::move(parts));
  }
  check(separator->is_string() && !separator->text().empty(),
        "chat template: split needs a separator that is not empty");
  const std::string& by = separator->text();
  if (from_right) {
    for (size_t at; more() && (at = text.rfind(by)) != text.npos; text = text.substr(0, at))
      add(text.substr(at + by.size()));
    add(text);
    std::reverse(parts.begin(), parts.end());
  } else {
    for (size_t at; more() && (at = text.find(by)) != text.npos; text.remove_prefix(at + by.size()))
      add(text.substr(0, at));
    add(text);
  }
  return make_list(std::move(parts));
}

Value split_lines(const Value& value, const Arguments& a) {
  auto* keep = a.find(0, "keepends");
  std::string_view text = value.text();
  List lines;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of("\r\n"), text.size());
    size_t next = end + (end < text.size()) + (text.substr(end, 2) == "\r\n");
    lines.push_back(make_text(std::string(text.substr(0, keep && keep->truthy() ? next : end))));
    text.remove_prefix(next);
  }
  return make_list(std::move(lines));
}

// startswith and endswith take a string or several.
Value affix(const Value& value, const Arguments& a, bool start) {
  const Value& what = required(a, 0, "prefix");
  auto matches = [&](const Value& affix) {
    check(affix.is_string(), "chat template: startswith and endswith need a string, not {}", affix.kind());
    return start ? value.text().starts_with(affix.text()) : value.text().ends_with(affix.text());
  };
  if (!what.is_list()) return matches(what);
  return std::any_of(what.list().begin(), what.list().end(), matches);
}

Value replace(const Value& value, const Arguments& a) {
  const std::string &from = required_text(a, 0, "old"), &to = required_text(a, 1, "new");
  int64_t count = optional_integer(a, 2, "count", -1);
  std::string_view text = value.text();
  std::string out;
  check(!from.empty(), "chat template: replace needs something to replace");
  for (size_t at; count != 0 && (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size()), --count) {
    spend_bytes(at + to.size());
    out += text.substr(0, at);
    out += to;
  }
  out += text;
  return make_text(std::move(out));
}

Value find(const Value& value, const Arguments& a, bool last) {
  size_t at = last ? value.text().rfind(required_text(a, 0, "sub")) : value.text().find(required_text(a, 0, "sub"));
  if (at == std::string::npos) return int64_t(-1);
  return int64_t(tokenizers::count_characters(std::string_view(value.text()).substr(0, at)));
}

Value count(const Value& value, const Arguments& a) {
  const std::string& what = required_text(a, 0, "sub");
  if (what.empty()) return length(value) + 1;
  int64_t found = 0;
  for (size_t at = value.text().find(what); at != std::string::npos; at = value.text().find(what, at + what.size()))
    ++found;
  return found;
}

// Whether the text is not empty and all its characters are so.
template <class Is>
Value all(const Value& value, Is is) {
  bool result = !value.text().empty();
  tokenizers::each_character(value.text(), [&](char32_t c, std::string_view) { result = result && is(c); });
  return result;
}

Value is_cased(const Value& value, Case to, Case other) {
  return change_case(value.text(), to) == value.text() && change_case(value.text(), other) != value.text();
}

Value remove_affix(const Value& value, const Arguments& a, bool prefix) {
  const std::string &text = value.text(), &affix = required_text(a, 0, "affix");
  if (prefix) return text.starts_with(affix) ? make_text(text.substr(affix.size())) : value;
  return text.ends_with(affix) ? make_text(text.substr(0, text.size() - affix.size())) : value;
}

// "{} and {name}".format(…), without format specifications.
Value format_braces(const Value& value, const Arguments& a) {
  const std::string& text = value.text();
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && (text.substr(i, 2) == "{{" || text.substr(i, 2) == "}}")) {
      out += text[i++];
    } else if (text[i] == '{') {
      size_t close = text.find('}', i);
      check(close != text.npos, "chat template: a format has '{' without '}'");
      std::string name = text.substr(i + 1, close - i - 1);
      bool number = !name.empty() && name.size() < 6 &&
                    std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
      size_t index = name.empty() ? next++ : number ? size_t(std::stoul(name)) : ~size_t(0);
      auto* argument = a.find(index, name);
      check(argument != nullptr, "chat template: a format has no value for '{}'", name);
      out += to_text(*argument);
      spend_bytes(out.size() / 16);
      i = close;
    } else {
      out += text[i];
    }
  }
  return make_text(std::move(out));
}

const Methods& string_methods() {
  static const Methods table{
      {"strip", [](const Value& v, const Arguments& a) { return strip(v, a, true, true); }},
      {"lstrip", [](const Value& v, const Arguments& a) { return strip(v, a, true, false); }},
      {"rstrip", [](const Value& v, const Arguments& a) { return strip(v, a, false, true); }},
      {"split", [](const Value& v, const Arguments& a) { return split(v, a, false); }},
      {"rsplit", [](const Value& v, const Arguments& a) { return split(v, a, true); }},
      {"startswith", [](const Value& v, const Arguments& a) { return affix(v, a, true); }},
      {"endswith", [](const Value& v, const Arguments& a) { return affix(v, a, false); }},
      {"upper", [](const Value& v, const Arguments&) { return make_text(change_case(v.text(), Case::kUpper)); }},
      {"lower", [](const Value& v, const Arguments&) { return make_text(change_case(v.text(), Case::kLower)); }},
      {"title", [](const Value& v, const Arguments&) { return make_text(change_case(v.text(), Case::kTitle)); }},
      {"capitalize",
       [](const Value& v, const Arguments&) { return make_text(change_case(v.text(), Case::kCapitalized)); }},
      {"find", [](const Value& v, const Arguments& a) { return find(v, a, false); }},
      {"rfind", [](const Value& v, const Arguments& a) { return find(v, a, true); }},
      {"join",
       [](const Value& v, const Arguments& a) {
         return apply_filter("join", required(a, 0, "iterable"), {{v}, {}});
       }},
      {"isdigit", [](const Value& v, const Arguments&) { return all(v, tokenizers::is_numeric); }},
      {"isalpha", [](const Value& v, const Arguments&) { return all(v, tokenizers::is_letter); }},
      {"isalnum",
       [](const Value& v, const Arguments&) {
         return all(v, [](char32_t c) { return tokenizers::is_letter(c) || tokenizers::is_numeric(c); });
       }},
      {"isspace", [](const Value& v, const Arguments&) { return all(v, tokenizers::is_whitespace); }},
      {"isupper", [](const Value& v, const Arguments&) { return is_cased(v, Case::kUpper, Case::kLower); }},
      {"islower", [](const Value& v, const Arguments&) { return is_cased(v, Case::kLower, Case::kUpper); }},
      {"removeprefix", [](const Value& v, const Arguments& a) { return remove_affix(v, a, true); }},
      {"removesuffix", [](const Value& v, const Arguments& a) { return remove_affix(v, a, false); }},
      {"splitlines", split_lines},
      {"replace", replace},
      {"count", count},
      {"format", format_braces},
  };
  return table;
}

Value get(const Value& value, const Arguments& a) {
  const Value& key = required(a, 0, "key");
  auto *found = key.is_string() ? value.dict().find(key.text()) : nullptr, *missing = a.find(1, "default");
  return found ? *found : missing ? *missing : Value(None{});
}

const Methods& dict_methods() {
  static const Methods table{
      {"items", [](const Value& v, const Arguments& a) { return apply_filter("items", v, a); }},
      {"keys", [](const Value& v, const Arguments&) { return make_list(elements(v)); }},
      {"values",
       [](const Value& v, const Arguments&) {
         List list;
         for (auto& field : v.dict().fields) list.push_back(field.second);
         return make_list(std::move(list));
       }},
      {"copy", [](const Value& v, const Arguments&) { return make_dict(v.dict()); }},
      {"get", get},
  };
  return table;
}

const Methods& list_methods() {
  static const Methods table{
      {"index",
       [](const Value& v, const Arguments& a) {
         for (size_t i = 0; i < v.list().size(); ++i)
           if (equal(v.list()[i], required(a, 0, "value"))) return Value(int64_t(i));
         throw_error("chat template: index: the value is not in the list");
       }},
      {"count",
       [](const Value& v, const Arguments& a) {
         auto& what = required(a, 0, "value");
         return Value(
             int64_t(std::count_if(v.list().begin(), v.list().end(), [&](auto& each) { return equal(each, what); })));
       }},
      {"copy", [](const Value& v, const Arguments&) { return make_list(elements(v)); }},
  };
  return table;
}

Value range(const Arguments& a) {
  check(!a.positional.empty() && a.positional.size() <= 3, "chat template: range takes one to three numbers");
  int64_t begin = 0, end = optional_integer(a, 0, "stop", 0), step = optional_integer(a, 2, "step", 1);
  if (a.positional.size() > 1) begin = end, end = optional_integer(a, 1, "stop", 0);
  check(step != 0, "chat template: range needs a step that is not zero");
  constexpr int64_t kFar = int64_t(1) << 40;
  check(std::max({begin, end, step}) < kFar && std::min({begin, end, step}) > -kFar,
        "chat template: a range is too large");
  List list;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    spend(1);
    list.push_back(i);
  }
  return make_list(std::move(list));
}

Value make_mapping(const Arguments& a, bool is_namespace) {
  Dict dict;
  if (!a.positional.empty() && a.positional[0].is_dict()) dict = a.positional[0].dict();
  dict.is_namespace = is_namespace;
  for (auto& [key, value] : a.named) dict.set(key, value);
  return make_dict(std::move(dict));
}

Value time_text(const Arguments& a) {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string& pattern = required_text(a, 0, "format");
  check(pattern.size() < 256, "chat template: a time format is too long");
  char buffer[4096];
  return make_text(std::string(buffer, std::strftime(buffer, sizeof buffer, pattern.c_str(), &local)));
}

}  // namespace

Value find_method(const Value& value, const std::string& name) {
  const Methods* methods = value.is_string() ? &string_methods()
                           : value.is_list() ? &list_methods()
                           : value.is_dict() ? &dict_methods()
                                             : nullptr;
  if (!methods) return Undefined{name};
  auto found = methods->find(name);
  if (found == methods->end()) return Undefined{name};
  return Function([value, body = found->second](const Arguments& a) { return body(value, a); });
}

Value find_global(const std::string& name) {
  if (name == "range") return Function(range);
  if (name == "namespace") return Function([](const Arguments& a) { return make_mapping(a, true); });
  if (name == "dict") return Function([](const Arguments& a) { return make_mapping(a, false); });
  if (name == "strftime_now") return Function(time_text);
  if (name == "raise_exception") {
    return Function([](const Arguments& a) -> Value {
      throw_error(
          format("chat template: {}", a.positional.empty() ? "it refuses the conversation" : to_text(a.positional[0])));
    });
  }
  return Undefined{name};
}

}  // namespace sinter::jinja
