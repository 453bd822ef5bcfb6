#pragma once
// Templates as trees, and the parser that makes them.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/io/chat_template/value.h"

namespace sinter::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    kConstant,   // value
    kName,       // name
    kList,       // parts
    kDict,       // parts: key, value, key, value, …
    kAttribute,  // parts[0].name
    kItem,       // parts[0][parts[1]]
    kSlice,      // parts[0][parts[1]:parts[2]:parts[3]], null where left out
    kCall,       // parts[0](parts[1], …, named)
    kFilter,     // parts[0] | name(parts[1], …, named); no first part inside a filter block
    kTest,       // parts[0] is name(parts[1], …)
    kUnary,      // name parts[0]
    kBinary,     // parts[0] name parts[1]
    kCompare,    // parts[0] names[0] parts[1] names[1] parts[2] …
    kTernary,    // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind;
  int line;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> names;
  int depth = 1;  // of the tree
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind {
    kText,      // text
    kPrint,     // value
    kIf,        // for each branch: values[i] (null for else), bodies[i]
    kFor,       // names in value [if condition], bodies[0], else bodies[1]
    kSet,       // names = value, or text.names[0] = value for an attribute
    kSetBlock,  // names[0] = bodies[0], through value when there is one
    kMacro,     // text(names with values as defaults, null for none), bodies[0]
    kFilter,    // bodies[0] through value
    kScope,     // bodies[0]
    kDo,        // value
    kBreak,
    kContinue,
  };
  Kind kind;
  int line;
  std::string text = {};
  std::vector<std::string> names = {};
  ExpressionPtr value = {}, condition = {};
  std::vector<ExpressionPtr> values = {};
  std::vector<Block> bodies = {};
  bool recursive = false;
};

Block parse_template(std::string_view source);

}  // namespace sinter::jinja
