#include "sinter/graph/text_scan.h"

#include "sinter/base/error.h"

namespace sinter {

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

size_t closing_quote(std::string_view text, size_t open) {
  for (size_t i = open + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i;
  }
  return std::string_view::npos;
}

size_t closing_bracket(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      i = closing_quote(text, i);
      if (i == std::string_view::npos) return i;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> pieces;
  if (trim(text).empty()) return pieces;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    size_t end = i;
    if (c == '"')
      end = closing_quote(text, i);
    else if (c == '(' || c == '[' || c == '{')
      end = closing_bracket(text, i);
    check(end != std::string_view::npos, "'{}' is not closed in '{}'", c, text);
    i = end;
    if (c == ',') {
      pieces.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  pieces.push_back(trim(text.substr(begin)));
  return pieces;
}

std::vector<std::pair<std::string, std::string>> split_fields(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (auto item : split_list(text)) {
    size_t equals = item.find('=');
    check(equals != std::string_view::npos, "'{}' is not an attribute: write name=value", item);
    fields.emplace_back(trim(item.substr(0, equals)), trim(item.substr(equals + 1)));
  }
  return fields;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string unquote(std::string_view text) {
  check(text.size() >= 2 && text[0] == '"' && closing_quote(text, 0) == text.size() - 1, "{} is not a quoted text",
        text);
  std::string out;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace sinter
