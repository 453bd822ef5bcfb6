#include "sinter/io/chat_template/lexer.h"

#include <algorithm>
#include <array>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::jinja {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string one_kind_of_newline(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(one_kind_of_newline(source)), text_(source_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_text();
    add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  using Kind = Token::Kind;

  bool looking_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(size_t count) {
    line_ += int(std::count(text_.begin() + ptrdiff_t(at_), text_.begin() + ptrdiff_t(at_ + count), '\n'));
    at_ += count;
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) advance(1);
  }

  // Text up to the next tag, and that tag.
  void read_text() {
    size_t open = at_;
    for (;; ++open) {
      open = text_.find('{', open);
      if (open == text_.npos || open + 1 >= text_.size()) open = text_.size();
      if (open == text_.size() || text_[open + 1] == '{' || text_[open + 1] == '%' || text_[open + 1] == '#') break;
    }
    std::string_view text = text_.substr(at_, open - at_);
    bool has_tag = open < text_.size();
    char sign = has_tag && open + 2 < text_.size() ? text_[open + 2] : ' ';
    size_t keep = text.size();
    if (has_tag && sign == '-') {
      while (keep > 0 && is_space(text[keep - 1])) --keep;
    } else if (has_tag && sign != '+' && text_[open + 1] != '{') {
      size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
      bool blank = std::all_of(text.begin() + ptrdiff_t(line_begin), text.end(), is_space);
      if (blank && (line_begin > 0 || line_starts_)) keep = line_begin;
    }
    if (keep > 0) add(Kind::kText, std::string(text.substr(0, keep)));
    advance(text.size());
    if (!has_tag) return;
    char type = text_[at_ + 1];
    advance(sign == '-' || sign == '+' ? 3 : 2);
    if (type == '#') {
      read_comment();
    } else {
      read_tag(type == '{');
    }
  }

  void read_comment() {
    int line = line_;
    size_t end = text_.find("#}", at_);
    if (end == text_.npos) fail_at(line, "a comment has no end");
    char before = end > at_ ? text_[end - 1] : ' ';
    advance(end - at_ + 2);
    after_tag(before, true);
  }

  // What a tag's end does to the text behind it.
  void after_tag(char sign, bool trim_newline) {
    line_starts_ = false;
    if (sign == '-') {
      size_t before = at_;
      skip_space();
      line_starts_ = at_ > before && text_[at_ - 1] == '\n';
    } else if (trim_newline && sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
      advance(1);
      line_starts_ = true;
    }
  }

  void read_tag(bool print) {
    int line = line_;
    add(print ? Kind::kPrintBegin : Kind::kBlockBegin, "");
    size_t first = tokens_.size();
    std::string open;  // brackets that wait for their other half
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) fail_at(line, "a tag has no end");
      std::string_view end = print ? "}}" : "%}";
      char sign = text_[at_];
      bool signed_end = (sign == '-' || sign == '+') && text_.substr(at_ + 1, 2) == end;
      if (open.empty() && (signed_end || looking_at(end))) {
        add(print ? Kind::kPrintEnd : Kind::kBlockEnd, "");
        advance(signed_end ? 3 : 2);
        after_tag(signed_end ? sign : ' ', !print);
        break;
      }
      read_token(open);
    }
    if (!print && tokens_.size() == first + 2 && tokens_[first].kind == Kind::kName && tokens_[first].text == "raw")
      read_raw(first - 1);
  }

  // {% raw %} … {% endraw %}: the tokens of the opening tag give way to the text as it stands.
  void read_raw(size_t first_token) {
    int line = line_;
    tokens_.resize(first_token);
    for (size_t open = at_;; ++open) {
      open = text_.find("{%", open);
      if (open == text_.npos) fail_at(line, "'raw' without 'endraw'");
      size_t p = open + 2;
      if (p < text_.size() && text_[p] == '-') ++p;
      while (p < text_.size() && is_space(text_[p])) ++p;
      if (text_.substr(p, 6) != "endraw") continue;
      p += 6;
      while (p < text_.size() && is_space(text_[p])) ++p;
      char sign = p < text_.size() ? text_[p] : ' ';
      if (sign == '-' || sign == '+') ++p;
      if (text_.substr(p, 2) != "%}") continue;
      std::string body(text_.substr(at_, open - at_));
      if (text_[open + 2] == '-')
        while (!body.empty() && is_space(body.back())) body.pop_back();
      if (!body.empty()) add(Kind::kText, std::move(body));
      advance(p + 2 - at_);
      return after_tag(sign, true);
    }
  }

  void read_token(std::string& open) {
    char c = text_[at_];
    if (c == '"' || c == '\'') return read_string(c);
    if (is_digit(c)) return read_number();
    if (is_name(c)) {
      size_t end = at_;
      while (end < text_.size() && is_name(text_[end])) ++end;
      add(Kind::kName, std::string(text_.substr(at_, end - at_)));
      return advance(end - at_);
    }
    constexpr std::array<std::string_view, 6> kLong{"//", "**", "==", "!=", "<=", ">="};
    for (auto text : kLong)
      if (looking_at(text)) {
        add(Kind::kOperator, std::string(text));
        return advance(2);
      }
    if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
      fail_at(line_, format("the character '{}' is not expected", c));
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) fail_at(line_, format("'{}' without its other half", c));
      open.pop_back();
    }
    add(Kind::kOperator, std::string(1, c));
    advance(1);
  }

  void read_string(char quote) {
    int line = line_;
    std::string value;
    size_t p = at_ + 1;
    for (;; ++p) {
      if (p >= text_.size()) fail_at(line, "a string has no end");
      if (text_[p] == quote) break;
      if (text_[p] != '\\' || p + 1 >= text_.size()) {
        value += text_[p];
        continue;
      }
      char c = text_[++p];
      size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      char32_t code = 0;
      size_t read = 0;
      for (; read < digits && p + 1 + read < text_.size(); ++read) {
        char d = text_[p + 1 + read];
        int digit = is_digit(d)            ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : -1;
        if (digit < 0) break;
        code = code * 16 + char32_t(digit);
      }
      if (digits > 0) {
        if (read != digits || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
          fail_at(line, "an escape is not a character");
        tokenizers::append_utf8(value, code);
        p += digits;
      } else if (c == 'n' || c == 't' || c == 'r' || c == '0') {
        value += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : '\0';
      } else if (c == '\\' || c == '\'' || c == '"') {
        value += c;
      } else if (c != '\n') {  // a line that goes on
        value += {'\\', c};
      }
    }
    add(Kind::kString, std::move(value));
    advance(p + 1 - at_);
  }

  void read_number() {
    size_t end = at_;
    bool is_float = false;
    auto digits = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) ++end;
    };
    digits();
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      is_float = true;
      ++end;
      digits();
    }
    if (end + 1 < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t sign = text_[end + 1] == '-' || text_[end + 1] == '+' ? 2 : 1;
      if (end + sign < text_.size() && is_digit(text_[end + sign])) {
        is_float = true;
        end += sign;
        digits();
      }
    }
    std::string number(text_.substr(at_, end - at_));
    std::erase(number, '_');
    add(is_float ? Kind::kFloat : Kind::kInteger, std::move(number));
    advance(end - at_);
  }

  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

void fail_at(int line, const std::string& message) { throw_error(format("chat template, line {}: {}", line, message)); }

}  // namespace sinter::jinja
