#pragma once
// Templates as tokens.
#include <string>
#include <string_view>
#include <vector>

namespace sinter::jinja {

struct Token {
  enum class Kind {
    kText,
    kPrintBegin,
    kPrintEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind;
  std::string text;
  int line;
};

// Text has its white space removed already as `-`, trim_blocks and lstrip_blocks say. Ends in kEnd.
std::vector<Token> tokenize(std::string_view source);

// Throws an Error for this line of the template.
[[noreturn]] void fail_at(int line, const std::string& message);

}  // namespace sinter::jinja
