#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/lexer.h"
#include "sinter/io/chat_template/syntax.h"

namespace sinter::jinja {

namespace {

constexpr int kMaxDepth = 150;       // of nested brackets and blocks
constexpr int kMaxTreeDepth = 1000;  // of an expression, which evaluation walks

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Block run() {
    Block block = statements({});
    if (!is(Kind::kEnd)) fail("a tag is not expected here");
    return block;
  }

 private:
  using Kind = Token::Kind;
  using What = Expression::Kind;

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(Kind kind) const { return peek().kind == kind; }
  bool is_name(std::string_view text) const { return is(Kind::kName) && peek().text == text; }
  bool is_operator(std::string_view text) const { return is(Kind::kOperator) && peek().text == text; }
  [[noreturn]] void fail(const std::string& message) const { fail_at(peek().line, message); }
  const Token& take() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
  bool skip_name(std::string_view text) { return is_name(text) && (take(), true); }
  bool skip_operator(std::string_view text) { return is_operator(text) && (take(), true); }
  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail(format("'{}' is expected", text));
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) fail(format("'{}' is expected", text));
  }
  std::string name() {
    if (!is(Kind::kName)) fail("a name is expected");
    return take().text;
  }
  void end_tag() {
    if (!is(Kind::kBlockEnd)) fail("the end of the tag is expected");
    take();
  }

  // Guards the recursion: a hostile template must not exhaust the stack.
  struct Level {
    explicit Level(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxDepth) parser.fail("it is nested too deeply");
    }
    ~Level() { --parser.depth_; }
    Parser& parser;
  };

  // --- statements ---

  // Up to a tag that opens with one of `ends`, which is left for the caller (the cursor stands on its name).
  Block statements(std::initializer_list<std::string_view> ends) {
    Level level(*this);
    Block block;
    for (;;) {
      if (is(Kind::kEnd)) {
        if (ends.size() != 0) fail(format("'{}' is missing", *(ends.end() - 1)));
        return block;
      }
      int line = peek().line;
      if (is(Kind::kText)) {
        block.push_back({Statement::Kind::kText, line, take().text});
      } else if (is(Kind::kPrintBegin)) {
        take();
        Statement print{Statement::Kind::kPrint, line};
        print.value = tuple();
        if (!is(Kind::kPrintEnd)) fail("'}}' is expected");
        take();
        block.push_back(std::move(print));
      } else {
        take();
        if (!is(Kind::kName)) fail("the name of a tag is expected");
        for (auto end : ends)
          if (peek().text == end) return block;
        block.push_back(statement(take().text, line));
      }
    }
  }

  Statement statement(const std::string& tag, int line) {
    Statement s{Statement::Kind::kScope, line};
    if (tag == "if") {
      if_statement(s);
    } else if (tag == "for") {
      for_statement(s);
    } else if (tag == "set") {
      set_statement(s);
    } else if (tag == "macro") {
      macro_statement(s);
    } else if (tag == "filter") {
      s.kind = Statement::Kind::kFilter;
      s.value = filters(nullptr, true);
      body(s, "endfilter");
    } else if (tag == "generation") {  // marks what a model wrote, for training
      body(s, "endgeneration");
    } else if (tag == "do") {
      s.kind = Statement::Kind::kDo;
      s.value = tuple();
      end_tag();
    } else if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail(format("'{}' outside a loop", tag));
      s.kind = tag == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
      end_tag();
    } else {
      fail_at(line, format("the tag '{}' is not known or not expected here", tag));
    }
    return s;
  }

  void body(Statement& s, std::string_view end) {
    end_tag();
    s.bodies.push_back(statements({end}));
    take();
    end_tag();
  }

  void if_statement(Statement& s) {
    s.kind = Statement::Kind::kIf;
    s.values.push_back(tuple());
    end_tag();
    for (;;) {
      s.bodies.push_back(statements({"elif", "else", "endif"}));
      std::string next = take().text;
      if (next == "elif") {
        s.values.push_back(tuple());
        end_tag();
        continue;
      }
      end_tag();
      if (next == "endif") return;
      s.values.push_back(nullptr);
      s.bodies.push_back(statements({"endif"}));
      take();
      return end_tag();
    }
  }

  void for_statement(Statement& s) {
    s.kind = Statement::Kind::kFor;
    bool parenthesis = skip_operator("(");
    do s.names.push_back(name());
    while (skip_operator(","));
    if (parenthesis) expect_operator(")");
    expect_name("in");
    s.value = tuple(false);
    if (skip_name("if")) s.condition = expression();
    s.recursive = skip_name("recursive");
    end_tag();
    ++loops_;
    s.bodies.push_back(statements({"else", "endfor"}));
    --loops_;
    std::string next = take().text;
    end_tag();
    if (next == "endfor") return;
    s.bodies.push_back(statements({"endfor"}));
    take();
    end_tag();
  }

  void set_statement(Statement& s) {
    s.kind = Statement::Kind::kSet;
    s.names.push_back(name());
    if (skip_operator(".")) {
      s.text = s.names[0];
      s.names[0] = name();
    }
    while (skip_operator(",")) s.names.push_back(name());
    if (skip_operator("=")) {
      s.value = tuple();
      return end_tag();
    }
    if (!s.text.empty() || s.names.size() != 1) fail("'=' is expected");
    s.kind = Statement::Kind::kSetBlock;
    if (is_operator("|")) s.value = filters(nullptr, false);
    body(s, "endset");
  }

  void macro_statement(Statement& s) {
    s.kind = Statement::Kind::kMacro;
    s.text = name();
    expect_operator("(");
    while (!is_operator(")")) {
      s.names.push_back(name());
      s.values.push_back(skip_operator("=") ? expression() : nullptr);
      if (!skip_operator(",")) break;
    }
    expect_operator(")");
    int loops = std::exchange(loops_, 0);
    body(s, "endmacro");
    loops_ = loops;
  }

  // --- expressions ---

  ExpressionPtr make(What kind, int line, std::string name = {}) {
    return std::make_unique<Expression>(Expression{kind, line, std::move(name), {}, {}, {}, {}});
  }
  ExpressionPtr adopt(Expression& parent, ExpressionPtr part) {
    if (part) parent.depth = std::max(parent.depth, part->depth + 1);
    if (parent.depth > kMaxTreeDepth) fail("an expression is too long");
    return part;
  }
  void add_part(Expression& parent, ExpressionPtr part) { parent.parts.push_back(adopt(parent, std::move(part))); }
  template <class... Parts>
  ExpressionPtr make_of(What kind, int line, std::string name, Parts... parts) {
    auto e = make(kind, line, std::move(name));
    (add_part(*e, std::move(parts)), ...);
    return e;
  }

  // One expression, or several with commas between: a list.
  ExpressionPtr tuple(bool ternaries = true) {
    auto first = ternaries ? expression() : disjunction();
    if (!is_operator(",")) return first;
    auto list = make_of(What::kList, first->line, "", std::move(first));
    while (skip_operator(",")) add_part(*list, expression());
    return list;
  }

  ExpressionPtr expression() {
    Level level(*this);
    auto e = disjunction();
    while (is_name("if")) {
      int line = take().line;
      auto condition = disjunction();
      ExpressionPtr otherwise = skip_name("else") ? expression() : nullptr;
      e = make_of(What::kTernary, line, "", std::move(e), std::move(condition), std::move(otherwise));
    }
    return e;
  }

  template <class Next, class IsOperator>
  ExpressionPtr left_to_right(Next next, IsOperator is_one) {
    auto e = (this->*next)();
    while (is_one()) {
      const Token& token = take();
      e = make_of(What::kBinary, token.line, token.text, std::move(e), (this->*next)());
    }
    return e;
  }

  ExpressionPtr disjunction() {
    return left_to_right(&Parser::conjunction, [&] { return is_name("or"); });
  }
  ExpressionPtr conjunction() {
    return left_to_right(&Parser::negation, [&] { return is_name("and"); });
  }
  ExpressionPtr negation() {
    Level level(*this);
    if (!is_name("not")) return comparison();
    int line = take().line;
    return make_of(What::kUnary, line, "not", negation());
  }

  ExpressionPtr comparison() {
    auto e = sum();
    ExpressionPtr chain;
    for (;;) {
      std::string op;
      if (is(Kind::kOperator) && (peek().text == "==" || peek().text == "!=" || peek().text == "<" ||
                                  peek().text == ">" || peek().text == "<=" || peek().text == ">=")) {
        op = take().text;
      } else if (skip_name("in")) {
        op = "in";
      } else if (is_name("not") && peek(1).kind == Kind::kName && peek(1).text == "in") {
        take(), take();
        op = "not in";
      } else {
        return chain ? std::move(chain) : std::move(e);
      }
      if (!chain) {
        int line = e->line;
        chain = make_of(What::kCompare, line, "", std::move(e));
      }
      chain->names.push_back(op);
      add_part(*chain, sum());
    }
  }

  ExpressionPtr sum() {
    return left_to_right(&Parser::concatenation, [&] { return is_operator("+") || is_operator("-"); });
  }
  ExpressionPtr concatenation() {
    return left_to_right(&Parser::product, [&] { return is_operator("~"); });
  }
  ExpressionPtr product() {
    return left_to_right(&Parser::power,
                         [&] { return is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%"); });
  }
  ExpressionPtr power() {
    return left_to_right(&Parser::unary, [&] { return is_operator("**"); });
  }
  ExpressionPtr unary() { return filters(signed_primary(), false); }

  ExpressionPtr signed_primary() {
    Level level(*this);
    if (!is_operator("-") && !is_operator("+")) return postfix(primary());
    const Token& sign = take();
    return make_of(What::kUnary, sign.line, sign.text, signed_primary());
  }

  ExpressionPtr primary() {
    const Token& token = take();
    if (token.kind == Kind::kName) return named_constant(token);
    auto e = make(What::kConstant, token.line);
    if (token.kind == Kind::kString) {
      std::string text = token.text;
      while (is(Kind::kString)) text += take().text;
      e->value = Value(std::move(text));
    } else if (token.kind == Kind::kInteger) {
      if (token.text.size() > 18) fail_at(token.line, "a number is too large");
      e->value = Value(int64_t(std::strtoll(token.text.c_str(), nullptr, 10)));
    } else if (token.kind == Kind::kFloat) {
      e->value = Value(std::strtod(token.text.c_str(), nullptr));
    } else if (token.kind == Kind::kOperator && token.text == "(") {
      if (skip_operator(")")) return make(What::kList, token.line);
      e = expression();
      if (is_operator(",")) {
        e = make_of(What::kList, token.line, "", std::move(e));
        while (skip_operator(",") && !is_operator(")")) add_part(*e, expression());
      }
      expect_operator(")");
    } else if (token.kind == Kind::kOperator && token.text == "[") {
      e->kind = What::kList;
      while (!is_operator("]")) {
        add_part(*e, expression());
        if (!skip_operator(",")) break;
      }
      expect_operator("]");
    } else if (token.kind == Kind::kOperator && token.text == "{") {
      e->kind = What::kDict;
      while (!is_operator("}")) {
        add_part(*e, expression());
        expect_operator(":");
        add_part(*e, expression());
        if (!skip_operator(",")) break;
      }
      expect_operator("}");
    } else {
      fail_at(token.line, "an expression is expected");
    }
    return e;
  }

  ExpressionPtr named_constant(const Token& token) {
    auto e = make(What::kConstant, token.line);
    if (token.text == "true" || token.text == "True") {
      e->value = Value(true);
    } else if (token.text == "false" || token.text == "False") {
      e->value = Value(false);
    } else if (token.text == "none" || token.text == "None") {
      e->value = Value(None{});
    } else {
      e->kind = What::kName;
      e->name = token.text;
    }
    return e;
  }

  ExpressionPtr postfix(ExpressionPtr e) {
    for (;;) {
      int line = peek().line;
      if (skip_operator(".")) {
        if (is(Kind::kInteger)) {
          auto index = primary();
          e = make_of(What::kItem, line, "", std::move(e), std::move(index));
        } else {
          e = make_of(What::kAttribute, line, name(), std::move(e));
        }
      } else if (skip_operator("[")) {
        e = subscript(std::move(e), line);
      } else if (is_operator("(")) {
        e = make_of(What::kCall, line, "", std::move(e));
        arguments(*e);
      } else {
        return e;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr object, int line) {
    std::vector<ExpressionPtr> bounds;
    bool slice = false;
    while (bounds.size() < 3) {
      bounds.push_back(is_operator(":") || is_operator("]") ? nullptr : expression());
      if (!skip_operator(":")) break;
      slice = true;
    }
    expect_operator("]");
    if (!slice) {
      if (!bounds[0]) fail_at(line, "an index is expected");
      return make_of(What::kItem, line, "", std::move(object), std::move(bounds[0]));
    }
    bounds.resize(3);
    return make_of(What::kSlice, line, "", std::move(object), std::move(bounds[0]), std::move(bounds[1]),
                   std::move(bounds[2]));
  }

  void arguments(Expression& e) {
    expect_operator("(");
    while (!is_operator(")")) {
      if (is(Kind::kName) && peek(1).kind == Kind::kOperator && peek(1).text == "=") {
        std::string key = take().text;
        take();
        e.named.emplace_back(key, adopt(e, expression()));
      } else {
        add_part(e, expression());
      }
      if (!skip_operator(",")) break;
    }
    expect_operator(")");
  }

  // Filters and tests behind an expression. `named_first`: the first filter stands without its bar.
  ExpressionPtr filters(ExpressionPtr e, bool named_first) {
    for (;;) {
      int line = peek().line;
      if (std::exchange(named_first, false) || skip_operator("|")) {
        e = make_of(What::kFilter, line, name(), std::move(e));
        if (is_operator("(")) arguments(*e);
      } else if (is_name("is")) {
        take();
        bool negated = skip_name("not");
        e = make_of(What::kTest, line, name(), std::move(e));
        if (is_operator("(")) {
          arguments(*e);
        } else if (is(Kind::kString) || is(Kind::kInteger) || is(Kind::kFloat) || is_operator("[") ||
                   (is(Kind::kName) && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("if") &&
                    !is_name("is") && !is_name("in") && !is_name("not"))) {
          add_part(*e, postfix(primary()));
        }
        if (negated) e = make_of(What::kUnary, line, "not", std::move(e));
      } else if (e && is_operator("(")) {
        e = make_of(What::kCall, line, "", std::move(e));
        arguments(*e);
      } else {
        return e;
      }
    }
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Block parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace sinter::jinja
