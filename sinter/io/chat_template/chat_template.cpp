#include "sinter/io/chat_template/chat_template.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/builtins.h"
#include "sinter/io/chat_template/lexer.h"
#include "sinter/io/chat_template/syntax.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter {

namespace jinja {
namespace {

constexpr int kMaxDepth = 2000;  // of evaluation
constexpr int kMaxCalls = 60;    // of macros and recursive loops inside each other
constexpr size_t kMaxSource = size_t(4) << 20;

struct Scope {
  explicit Scope(Scope* parent) : parent(parent) {}
  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope; scope = scope->parent)
      if (auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
    return nullptr;
  }
  Scope* parent;
  std::map<std::string, Value> names;
};

enum class Flow { kNext, kBreak, kContinue };

class Interpreter {
 public:
  Interpreter(const ChatTemplateLimits& limits, const Value& context) : limits_(limits), root_(nullptr) {
    for (auto& [name, value] : context.dict().fields) root_.names[name] = value;
  }

  std::string run(const Block& block) {
    run(block, root_);
    return std::move(out_);
  }

 private:
  struct Level {
    Level(Interpreter& interpreter, int line) : interpreter(interpreter) {
      if (++interpreter.depth_ > kMaxDepth) fail_at(line, "it is nested too deeply");
      interpreter.line_ = line;
      spend(1);
    }
    ~Level() { --interpreter.depth_; }
    Interpreter& interpreter;
  };
  struct CallLevel {
    CallLevel(Interpreter& interpreter, int line) : interpreter(interpreter) {
      if (++interpreter.calls_ > kMaxCalls) fail_at(line, "macros or loops call each other too deeply");
    }
    ~CallLevel() { --interpreter.calls_; }
    Interpreter& interpreter;
  };

  void write(const std::string& text) {
    spend_bytes(text.size());
    check(out_.size() + text.size() <= limits_.output, "chat template: it writes more than {} bytes", limits_.output);
    out_ += text;
  }

  // What the block writes, as text.
  std::string captured(const Block& block, Scope& scope) {
    std::string outer = std::exchange(out_, {});
    run(block, scope);
    return std::exchange(out_, std::move(outer));
  }

  Flow run(const Block& block, Scope& scope) {
    for (auto& statement : block) {
      Flow flow = run(statement, scope);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  Flow run(const Statement& s, Scope& scope) {
    Level level(*this, s.line);
    switch (s.kind) {
      case Statement::Kind::kText:
        write(s.text);
        break;
      case Statement::Kind::kPrint:
        write(to_text(evaluate(*s.value, scope)));
        break;
      case Statement::Kind::kDo:
        evaluate(*s.value, scope);
        break;
      case Statement::Kind::kBreak:
        return Flow::kBreak;
      case Statement::Kind::kContinue:
        return Flow::kContinue;
      case Statement::Kind::kScope:
        return run(s.bodies[0], scope);
      case Statement::Kind::kIf:
        for (size_t i = 0; i < s.values.size(); ++i)
          if (!s.values[i] || evaluate(*s.values[i], scope).truthy()) return run(s.bodies[i], scope);
        break;
      case Statement::Kind::kFor:
        run_loop(s, evaluate(*s.value, scope), scope, 0);
        break;
      case Statement::Kind::kSet:
        assign(s, scope);
        break;
      case Statement::Kind::kSetBlock: {
        Scope inner(&scope);
        Value text = make_text(captured(s.bodies[0], inner));
        scope.names[s.names[0]] = s.value ? filtered(*s.value, text, scope) : text;
        break;
      }
      case Statement::Kind::kFilter: {
        Scope inner(&scope);
        write(to_text(filtered(*s.value, make_text(captured(s.bodies[0], inner)), scope)));
        break;
      }
      case Statement::Kind::kMacro:
        scope.names[s.text] = macro(s);
        break;
    }
    return Flow::kNext;
  }

  void assign(const Statement& s, Scope& scope) {
    Value value = evaluate(*s.value, scope);
    if (!s.text.empty()) {
      auto* target = scope.find(s.text);
      if (!target || !target->is_dict() || !target->dict().is_namespace)
        fail_at(s.line, format("'{}' is not a namespace, its attributes cannot be set", s.text));
      target->mutable_dict().set(s.names[0], std::move(value));
    } else {
      bind(s.names, value, scope, s.line);
    }
  }

  void bind(const std::vector<std::string>& names, const Value& value, Scope& scope, int line) {
    if (names.size() == 1) {
      scope.names[names[0]] = value;
      return;
    }
    List parts = elements(value);
    if (parts.size() != names.size()) fail_at(line, format("{} names for {} values", names.size(), parts.size()));
    for (size_t i = 0; i < names.size(); ++i) scope.names[names[i]] = parts[i];
  }

  void run_loop(const Statement& s, const Value& over, Scope& scope, int loop_depth) {
    List list = elements(over);
    if (s.condition) {
      List chosen;
      for (auto& element : list) {
        Scope inner(&scope);
        bind(s.names, element, inner, s.line);
        if (evaluate(*s.condition, inner).truthy()) chosen.push_back(element);
      }
      list = std::move(chosen);
    }
    if (list.empty()) {
      if (s.bodies.size() > 1) run(s.bodies[1], scope);
      return;
    }
    LoopLife life(&scope);
    for (size_t i = 0; i < list.size(); ++i) {
      Scope inner(&scope);
      bind(s.names, list[i], inner, s.line);
      inner.names["loop"] = loop_variable(s, list, i, loop_depth, life.state);
      if (run(s.bodies[0], inner) == Flow::kBreak) break;
    }
  }

  // What the functions of `loop` need. A template may keep `loop` longer than the loop lasts: its scope is gone then.
  struct LoopState {
    Scope* scope;
    Value last_seen;
  };
  struct LoopLife {
    explicit LoopLife(Scope* scope) : state(std::make_shared<LoopState>(LoopState{scope, {}})) {}
    ~LoopLife() { state->scope = nullptr; }
    std::shared_ptr<LoopState> state;
  };

  Value loop_variable(const Statement& s, const List& list, size_t i, int loop_depth,
                      std::shared_ptr<LoopState> state) {
    int64_t at = int64_t(i), count = int64_t(list.size());
    Dict loop;
    loop.is_namespace = true;  // attributes only
    loop.fields = {{"index", at + 1},
                   {"index0", at},
                   {"revindex", count - at},
                   {"revindex0", count - at - 1},
                   {"first", i == 0},
                   {"last", at + 1 == count},
                   {"length", count},
                   {"previtem", i == 0 ? Value(Undefined{"previtem"}) : list[i - 1]},
                   {"nextitem", at + 1 == count ? Value(Undefined{"nextitem"}) : list[i + 1]},
                   {"depth", int64_t(loop_depth + 1)},
                   {"depth0", int64_t(loop_depth)}};
    loop.set("cycle", Function([i](const Arguments& a) {
               check(!a.positional.empty(), "chat template: loop.cycle needs values");
               return a.positional[i % a.positional.size()];
             }));
    loop.set("changed", Function([state](const Arguments& a) {
               Value now = make_list(a.positional);
               bool changed = !equal(now, state->last_seen);
               state->last_seen = now;
               return Value(changed);
             }));
    if (s.recursive) {
      loop.set("recurse", Function([this, &s, state, loop_depth](const Arguments& a) {
                 check(!a.positional.empty(), "chat template: loop() needs something to loop over");
                 check(state->scope != nullptr, "chat template: loop() after the loop has ended");
                 CallLevel level(*this, s.line);
                 std::string outer = std::exchange(out_, {});
                 run_loop(s, a.positional[0], *state->scope, loop_depth + 1);
                 return make_text(std::exchange(out_, std::move(outer)));
               }));
    }
    return make_dict(std::move(loop));
  }

  Value macro(const Statement& s) {
    return Function([this, &s](const Arguments& a) {
      CallLevel level(*this, s.line);
      if (a.positional.size() > s.names.size())
        fail_at(line_, format("the macro '{}' takes {} arguments", s.text, s.names.size()));
      Scope scope(&root_);
      for (size_t i = 0; i < s.names.size(); ++i) {
        auto* given = a.find(i, s.names[i]);
        scope.names[s.names[i]] = given         ? *given
                                  : s.values[i] ? evaluate(*s.values[i], scope)
                                                : Value(Undefined{s.names[i]});
      }
      for (auto& [name, value] : a.named)
        if (std::find(s.names.begin(), s.names.end(), name) == s.names.end())
          fail_at(line_, format("the macro '{}' has no argument '{}'", s.text, name));
      return make_text(captured(s.bodies[0], scope));
    });
  }

  // --- expressions ---

  using What = Expression::Kind;

  Arguments arguments(const Expression& e, Scope& scope) {
    Arguments result;
    for (size_t i = 1; i < e.parts.size(); ++i) result.positional.push_back(evaluate(*e.parts[i], scope));
    for (auto& [name, value] : e.named) result.named.emplace_back(name, evaluate(*value, scope));
    return result;
  }

  // A chain of filters whose innermost has no operand of its own: it gets `text`.
  Value filtered(const Expression& e, const Value& text, Scope& scope) {
    Level level(*this, e.line);
    check(e.kind == What::kFilter, "chat template: a block takes filters only");
    Value operand = e.parts[0] ? filtered(*e.parts[0], text, scope) : text;
    return apply_filter(e.name, operand, arguments(e, scope));
  }

  Value evaluate(const Expression& e, Scope& scope) {
    Level level(*this, e.line);
    switch (e.kind) {
      case What::kConstant:
        return e.value;
      case What::kName: {
        auto* found = scope.find(e.name);
        return found ? *found : find_global(e.name);
      }
      case What::kList: {
        List list;
        for (auto& part : e.parts) list.push_back(evaluate(*part, scope));
        return make_list(std::move(list));
      }
      case What::kDict:
        return dict(e, scope);
      case What::kAttribute:
        return attribute(evaluate(*e.parts[0], scope), e.name);
      case What::kItem:
        return item(evaluate(*e.parts[0], scope), evaluate(*e.parts[1], scope));
      case What::kSlice:
        return slice(e, scope);
      case What::kCall:
        return call(e, scope);
      case What::kFilter:
        return apply_filter(e.name, evaluate(*e.parts[0], scope), arguments(e, scope));
      case What::kTest:
        return apply_test(e.name, evaluate(*e.parts[0], scope), arguments(e, scope));
      case What::kUnary:
        return unary(e.name, evaluate(*e.parts[0], scope));
      case What::kBinary: {
        Value left = evaluate(*e.parts[0], scope);
        if (e.name == "and") return left.truthy() ? evaluate(*e.parts[1], scope) : left;
        if (e.name == "or") return left.truthy() ? left : evaluate(*e.parts[1], scope);
        return binary(e.name, left, evaluate(*e.parts[1], scope));
      }
      case What::kCompare:
        return compared(e, scope);
      case What::kTernary:
        if (evaluate(*e.parts[1], scope).truthy()) return evaluate(*e.parts[0], scope);
        return e.parts[2] ? evaluate(*e.parts[2], scope) : Value(Undefined{"the else of an if"});
    }
    return {};
  }

  Value dict(const Expression& e, Scope& scope) {
    Dict dict;
    for (size_t i = 0; i + 1 < e.parts.size(); i += 2) {
      Value key = evaluate(*e.parts[i], scope);
      if (!key.is_string()) fail_at(e.line, format("the key of a mapping must be a string, not {}", key.kind()));
      dict.set(key.text(), evaluate(*e.parts[i + 1], scope));
    }
    return make_dict(std::move(dict));
  }

  Value call(const Expression& e, Scope& scope) {
    Value function = evaluate(*e.parts[0], scope);
    if (function.is_dict() && function.dict().is_namespace)  // loop(…) in a recursive loop
      if (auto* recurse = function.dict().find("recurse")) function = *recurse;
    if (!function.is_function())
      fail_at(e.line, function.is_undefined()
                          ? format("'{}' is undefined and cannot be called", function.undefined_name())
                          : format("{} cannot be called", function.kind()));
    return function.call(arguments(e, scope));
  }

  static Value unary(const std::string& op, const Value& value) {
    if (op == "not") return !value.truthy();
    check(value.is_number(), "chat template: '{}' needs a number, not {}", op, value.kind());
    if (value.is_float()) return op == "-" ? -value.number() : value.number();
    return op == "-" ? binary("-", int64_t(0), value.integer()) : Value(value.integer());
  }

  Value compared(const Expression& e, Scope& scope) {
    Value left = evaluate(*e.parts[0], scope);
    for (size_t i = 0; i < e.names.size(); ++i) {
      Value right = evaluate(*e.parts[i + 1], scope);
      const std::string& op = e.names[i];
      bool holds = op == "=="       ? equal(left, right)
                   : op == "!="     ? !equal(left, right)
                   : op == "in"     ? contains(right, left)
                   : op == "not in" ? !contains(right, left)
                   : op == "<"      ? compare(left, right) < 0
                   : op == "<="     ? compare(left, right) <= 0
                   : op == ">"      ? compare(left, right) > 0
                                    : compare(left, right) >= 0;
      if (!holds) return false;
      left = std::move(right);
    }
    return true;
  }

  Value slice(const Expression& e, Scope& scope) {
    Value value = evaluate(*e.parts[0], scope);
    auto bound = [&](size_t i) -> std::optional<int64_t> {
      if (!e.parts[i]) return {};
      Value given = evaluate(*e.parts[i], scope);
      if (given.is_none()) return {};
      if (given.is_float() || !given.is_number()) fail_at(e.line, "the bounds of a slice must be integers");
      return std::clamp(given.integer(), -(int64_t(1) << 40), int64_t(1) << 40);
    };
    auto from = bound(1), to = bound(2), by = bound(3);
    int64_t step = by.value_or(1);
    if (step == 0) fail_at(e.line, "the step of a slice must not be zero");
    if (!value.is_list() && !value.is_string()) fail_at(e.line, format("{} cannot be sliced", value.kind()));
    List all = elements(value), chosen;
    int64_t count = int64_t(all.size());
    // Python's rules: counted from the end when negative, then clipped.
    auto place = [&](std::optional<int64_t> given, int64_t missing) {
      if (!given) return missing;
      int64_t at = *given < 0 ? *given + count : *given;
      return step > 0 ? std::clamp<int64_t>(at, 0, count) : std::clamp<int64_t>(at, -1, count - 1);
    };
    int64_t begin = place(from, step > 0 ? 0 : count - 1), end = place(to, step > 0 ? count : -1);
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) chosen.push_back(all[size_t(i)]);
    if (value.is_list()) return make_list(std::move(chosen));
    std::string text;
    for (auto& each : chosen) text += each.text();
    return make_text(std::move(text));
  }

 public:
  int line() const { return line_; }

 private:
  const ChatTemplateLimits& limits_;
  Scope root_;
  std::string out_;
  int depth_ = 0, calls_ = 0, line_ = 1;
};

}  // namespace
}  // namespace jinja

struct ChatTemplate::Body {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::string_view source) {
  check(source.size() <= jinja::kMaxSource, "chat template: {} bytes are too many", source.size());
  check(tokenizers::is_valid_utf8(source), "chat template: it is not UTF-8");
  body_ = std::make_shared<const Body>(Body{jinja::parse_template(source)});
}

std::string ChatTemplate::render(std::string_view context, const ChatTemplateLimits& limits) const {
  jinja::ValueArena arena;
  jinja::WorkMeter meter(limits.work);
  jinja::Value variables = jinja::from_json(context, "the context");
  check(variables.is_dict(), "chat template: the context must be a JSON object");
  jinja::Interpreter interpreter(limits, variables);
  try {
    return interpreter.run(body_->block);
  } catch (const Error& error) {
    // Operations do not know where they stand in the template.
    constexpr std::string_view kPlain = "chat template: ";
    if (!error.message().starts_with(kPlain)) throw;
    jinja::fail_at(interpreter.line(), error.message().substr(kPlain.size()));
  }
}

}  // namespace sinter
