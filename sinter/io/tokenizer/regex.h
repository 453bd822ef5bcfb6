#pragma once
// Regular expressions as tokenizer files write them (Oniguruma's Ruby syntax: nested sets, `&&`, `^` and `$` at lines,
// \h for hexadecimal digits), run by PCRE2. A match that would take too long throws instead.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

// A part of a text; `match` says whether a pattern found it or it lies between two that were found.
struct Span {
  size_t begin, end;
  bool match;
};

class Regex {
 public:
  // Throws when the pattern is not understood.
  explicit Regex(std::string_view pattern);
  // Matches the text itself.
  static Regex literal(std::string_view text);

  // Appends the parts of valid UTF-8 text, in order and without gaps; an empty match is an empty part.
  void find_all(std::string_view text, std::vector<Span>& parts) const;
  std::string replace(std::string_view text, std::string_view with) const;

 private:
  Regex() = default;

  struct Code;
  std::shared_ptr<const Code> code_;
  std::string literal_;  // used when there is no code
};

// A pattern as files give it: `{"Regex": …}`, `{"String": …}`, or a plain string.
Regex read_pattern(JsonRef json);

// The same pattern in PCRE2's syntax.
std::string to_pcre2(std::string_view pattern);

}  // namespace sinter::tokenizers
