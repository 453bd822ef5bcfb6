// Oniguruma's syntax rewritten in PCRE2's.
#include <array>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/regex.h"

namespace sinter::tokenizers {

namespace {

constexpr int kMaxDepth = 50;

// Contents of sets: PCRE2 means something slightly different by the same escapes.
constexpr const char* kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr const char* kWords = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kHex = "0-9a-fA-F";

// Long names of categories, which PCRE2 knows by their letters only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kCategories{{
    {"letter", "L"},
    {"number", "N"},
    {"mark", "M"},
    {"punctuation", "P"},
    {"symbol", "S"},
    {"separator", "Z"},
    {"other", "C"},
    {"alpha", "L"},
    {"punct", "P"},
    {"digit", "Nd"},
    {"upper", "Lu"},
    {"lower", "Ll"},
    {"space", "Z"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"decimalnumber", "Nd"},
}};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : text_(pattern) {}

  std::string run() {
    std::string out;
    while (!at_end()) {
      if (peek() == '\\') {
        out += escape(false);
      } else if (peek() == '[') {
        out += set(0);
      } else {
        out += next();
      }
    }
    return out;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  char next() {
    check(!at_end(), "tokenizer: the pattern '{}' ends too early", text_);
    return text_[at_++];
  }

  // What PCRE2 writes for the escape at the cursor.
  std::string escape(bool in_set) {
    ++at_;
    char c = next();
    const char* contents = c == 's' || c == 'S'   ? kSpaces
                           : c == 'w' || c == 'W' ? kWords
                           : c == 'h' || c == 'H' ? kHex
                                                  : nullptr;
    if (contents) {
      bool negated = c < 'a';
      if (!in_set) return std::string(negated ? "[^" : "[") + contents + "]";
      if (!negated) return contents;
      check(c != 'H', "tokenizer: \\H in a set of the pattern '{}' is not supported", text_);
      return std::string("\\") + c;
    }
    if ((c == 'p' || c == 'P') && !at_end() && peek() == '{') return property(c);
    return std::string("\\") + c;
  }

  std::string property(char letter) {
    size_t close = text_.find('}', at_);
    check(close != text_.npos, "tokenizer: '\\{}{' without '}' in the pattern '{}'", letter, text_);
    std::string_view name = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    std::string out = std::string("\\") + letter + "{";
    if (!name.empty() && name[0] == '^') {
      out += '^';
      name.remove_prefix(1);
    }
    std::string plain;
    for (char c : name)
      if (c != '_' && c != ' ' && c != '-') plain += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (auto& [known, category] : kCategories)
      if (plain == known) name = category;
    return out + std::string(name) + "}";
  }

  // A set, as something that matches one character. Sets within sets, and intersections, become groups.
  std::string set(int depth) {
    check(depth < kMaxDepth, "tokenizer: sets are nested too deeply in the pattern '{}'", text_);
    ++at_;
    bool negated = !at_end() && peek() == '^';
    if (negated) ++at_;
    std::string all;            // the operands of && so far, as lookaheads
    std::string items, nested;  // this operand: plain contents, and alternatives
    bool first = true;
    auto operand = [&] {
      if (nested.empty()) return "[" + items + "]";
      std::string one = items.empty() ? "" : "[" + items + "]|";
      return "(?:" + one + nested.substr(1) + ")";
    };
    for (;; first = false) {
      check(!at_end(), "tokenizer: a set of the pattern '{}' has no end", text_);
      char c = peek();
      if (c == ']' && !first) {
        ++at_;
        break;
      }
      if (c == '[' && text_.substr(at_, 2) == "[:") {
        size_t close = text_.find(":]", at_);
        check(close != text_.npos, "tokenizer: '[:' without ':]' in the pattern '{}'", text_);
        items += text_.substr(at_, close + 2 - at_);
        at_ = close + 2;
      } else if (c == '[') {
        nested += "|" + set(depth + 1);
      } else if (c == '\\') {
        items += escape(true);
      } else if (text_.substr(at_, 2) == "&&") {
        check(!items.empty() || !nested.empty(), "tokenizer: '&&' without a left side in the pattern '{}'", text_);
        all += "(?=" + operand() + ")";
        items.clear(), nested.clear();
        at_ += 2;
      } else {
        if (c == ']' || (c == '^' && items.empty())) items += '\\';
        items += next();
      }
    }
    check(!items.empty() || !nested.empty(), "tokenizer: an empty set in the pattern '{}'", text_);
    if (all.empty() && nested.empty()) return (negated ? "[^" : "[") + items + "]";
    std::string one = "(?:" + all + operand() + ")";
    return negated ? "(?:(?!" + one + ")(?s:.))" : one;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_pcre2(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace sinter::tokenizers
