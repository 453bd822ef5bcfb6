// Makes failing programs smaller, one change at a time, as long as they fail.
#include <algorithm>
#include <chrono>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {

namespace {

constexpr double kSeconds = 20;

class Shrinker {
 public:
  Shrinker(Program program, Failure failure) : program_(std::move(program)), failure_(std::move(failure)) {}

  void run() {
    for (bool smaller = true; smaller && !late();) {
      smaller = false;
      smaller |= drop_rounds();
      for (int k = int(program_.statements.size()); k-- > 0;) smaller |= drop_statement(k);
      for (int k = int(program_.results.size()); k-- > 0 && program_.results.size() > 1;)
        smaller |= attempt([&](Program& p) { p.results.erase(p.results.begin() + k); });
      for (int k = program_.inputs(); k-- > 0;) smaller |= drop_input(k);
      smaller |= simplify();
    }
  }

  Program program_;
  Failure failure_;

 private:
  bool late() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count() > kSeconds;
  }

  bool fails(const Program& program, const Failure& as) {
    if (late()) return false;
    auto found = check(program, &as);
    if (found) failure_ = *found;
    return bool(found);
  }

  template <class F>
  bool attempt(F change) {
    Program smaller = program_;
    change(smaller);
    if (!fails(smaller, failure_)) return false;
    program_ = std::move(smaller);
    return true;
  }

  bool drop_rounds() {
    bool any = false;
    for (size_t k = failure_.rounds.size(); k-- > 0 && failure_.rounds.size() > 1;) {
      Failure fewer = failure_;
      if (k >= fewer.rounds.size()) continue;
      fewer.rounds.erase(fewer.rounds.begin() + long(k));
      any |= fails(program_, fewer);
    }
    return any;
  }

  template <class F>
  static void each_variable(Program& program, F f) {
    auto visit = [&](Operand& operand) {
      if (operand.variable >= 0) f(operand.variable);
      if (operand.fit.like >= 0) f(operand.fit.like);
    };
    auto visit_choice = [&](Choice& choice) {
      for (auto& operand : choice.tensors) visit(operand);
    };
    auto visit_call = [&](Call& call) {
      visit_choice(call.choice);
      for (auto& argument : call.use.arguments) visit(argument.tensor);
    };
    for (auto& statement : program.statements) {
      visit_call(statement.call);
      visit_choice(statement.asked);
      visit_call(statement.otherwise);
    }
    for (int& result : program.results) f(result);
  }

  // Uses of a variable become uses of another, and it goes.
  static void replace(Program& program, int gone, int by) {
    each_variable(program, [&](int& variable) {
      if (variable == gone) variable = by;
      if (variable > gone) --variable;
    });
  }

  bool drop_statement(int k) {
    if (k >= int(program_.statements.size())) return false;
    int variable = program_.inputs() + k;
    std::vector<int> stand_ins;
    const Call& call = program_.statements[size_t(k)].call;
    for (auto& operand : call.choice.tensors)
      if (operand.variable >= 0) stand_ins.push_back(operand.variable);
    for (auto& argument : call.use.arguments)
      if (argument.tensor.variable >= 0) stand_ins.push_back(argument.tensor.variable);
    for (int v = 0; v < variable; ++v) stand_ins.push_back(v);
    for (int by : stand_ins)
      if (attempt([&](Program& p) {
            p.statements.erase(p.statements.begin() + k);
            replace(p, variable, by);
          }))
        return true;
    return false;
  }

  bool drop_input(int k) {
    if (k >= program_.inputs()) return false;
    bool used = false;
    each_variable(program_, [&](int& variable) { used = used || variable == k; });
    bool captured = k >= int(program_.arguments.size());
    auto& list = captured ? program_.captured : program_.arguments;
    int place = captured ? k - int(program_.arguments.size()) : k;
    for (auto& input : list) used = used || input.of == place;
    if (used) return false;
    return attempt([&](Program& p) {
      auto& inputs = captured ? p.captured : p.arguments;
      inputs.erase(inputs.begin() + place);
      for (auto& input : inputs)
        if (input.of > place) --input.of;
      replace(p, k, 0);
    });
  }

  bool simplify() {
    bool any = false;
    auto try_set = [&](auto member, auto value) {
      Program smaller = program_;
      if (member(smaller) == value) return;
      any |= attempt([&](Program& p) { member(p) = value; });
    };
    for (size_t k = 0; k < program_.statements.size(); ++k) {
      if (program_.statements[k].condition >= 0) {
        any |= attempt([&](Program& p) { p.statements[k].condition = -1; });
        any |= attempt([&](Program& p) {
          p.statements[k].condition = -1;
          p.statements[k].call = p.statements[k].otherwise;
        });
      }
      try_set([&](Program& p) -> int64_t& { return p.statements[k].call.choice.i; }, int64_t(0));
      try_set([&](Program& p) -> int64_t& { return p.statements[k].call.choice.j; }, int64_t(0));
    }
    any |= simplify_state(try_set);
    for (bool captured : {false, true})
      for (size_t k = 0; k < (captured ? program_.captured : program_.arguments).size(); ++k) {
        auto input = [=](Program& p) -> Input& { return (captured ? p.captured : p.arguments)[k]; };
        Input now = input(program_);
        if (now.layout == Input::Layout::kSame || now.layout == Input::Layout::kRow) continue;
        try_set([&](Program& p) -> Input::Layout& { return input(p).layout; }, Input::Layout::kRowMajor);
        try_set([&](Program& p) -> bool& { return input(p).requires_grad; }, false);
        try_set([&](Program& p) -> bool& { return input(p).leaf; }, true);
        if (now.sizes.size() > 1) any |= attempt([&](Program& p) { input(p).sizes.pop_back(); });
      }
    return any;
  }

  // Operands as they are, less state around the program.
  template <class F>
  bool simplify_state(F try_set) {
    bool any = false;
    for (size_t k = 0; k < program_.statements.size(); ++k)
      for (size_t o = 0; o < program_.statements[k].call.use.arguments.size(); ++o) {
        if (program_.statements[k].call.use.arguments[o].tensor.variable < 0) continue;
        auto fit = [=](Program& p) -> Fit& { return p.statements[k].call.use.arguments[o].tensor.fit; };
        any |= attempt_if(bool(fit(program_).domain), [&](Program& p) { fit(p).domain.reset(); });
        any |= attempt_if(fit(program_).sizes && !fit(program_).contiguous, [&](Program& p) { fit(p).sizes.reset(); });
      }
    using Before = StateSpec::Before;
    try_set([](Program& p) -> bool& { return p.as_module; }, false);
    try_set([](Program& p) -> bool& { return p.state.steps_around; }, false);
    try_set([](Program& p) -> bool& { return p.state.clips; }, false);
    try_set([](Program& p) -> Before& { return p.state.before; }, Before::kSetToNone);
    if (!names_state("r")) try_set([](Program& p) -> int& { return p.state.schedule; }, -1);
    bool steps = program_.state.steps_around || names_state("or");
    if (!steps) try_set([](Program& p) -> int& { return p.state.optimizer; }, -1);
    if (!steps && !names_state("lp"))
      any |= attempt_if(!program_.state.layers.empty(), [](Program& p) { p.state = {}; });
    return any;
  }

  template <class F>
  bool attempt_if(bool worthwhile, F change) {
    return worthwhile && attempt(change);
  }

  bool names_state(std::string_view letters) const {
    auto names = [&](const auto& form) {
      return std::any_of(letters.begin(), letters.end(), [&](char c) { return form.names(c); });
    };
    auto in_call = [&](const Call& call) { return !call.use.op && names(forms()[size_t(call.form)]); };
    return std::any_of(program_.statements.begin(), program_.statements.end(), [&](const Statement& s) {
      return in_call(s.call) ||
             (s.condition >= 0 && (in_call(s.otherwise) || names(conditions()[size_t(s.condition)])));
    });
  }

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

Program shrink(Program program, Failure& failure) {
  Shrinker shrinker(std::move(program), failure);
  shrinker.run();
  failure = shrinker.failure_;
  return shrinker.program_;
}

}  // namespace sinter::fuzz
