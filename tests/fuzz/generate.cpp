// Random programs. Every statement is tried out eagerly while the program grows, so that few are refused.
#include <random>

#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {

const std::vector<std::pair<int, int>>& form_groups();

namespace {

constexpr double kLargest = 200;
constexpr int64_t kMostElements = 600;

class Generator {
 public:
  Generator(uint32_t seed, const Kind& kind) : kind_(kind), random_(seed) { program_.seed = seed; }

  Program generate() {
    int arguments = 1 + draw(4), captured = draw(3) == 0 ? 1 + draw(2) : 0, steps = 1 + draw(9);
    for (int k = 0; k < arguments; ++k) program_.arguments.push_back(input(program_.arguments, false));
    for (int k = 0; k < captured; ++k) program_.captured.push_back(input(program_.captured, true));
    start();
    for (int k = 0; k < steps && !fails_; ++k) add_statement();
    int results = 1 + draw(3);
    for (int k = 0; k < results; ++k) program_.results.push_back(recent(int(variables_.size())));
    return program_;
  }

 private:
  int draw(int below) { return int(random_() % uint32_t(below)); }
  bool chance(int one_in) { return draw(one_in) == 0; }
  // Later ones are more likely.
  int recent(int count) { return chance(3) ? draw(count) : count - 1 - draw(std::min(count, 3)); }

  Input input(const std::vector<Input>& earlier, bool fixed) {
    static const std::vector<std::vector<int>> kShapes = {{kRows, kColumns}, {kRows, kColumns}, {kColumns}, {kRows},
                                                          {kRows, kRows},    {kRows, 1},        {},         {2, kRows, kColumns}};
    static const std::vector<std::vector<int>> kFixed = {{1}, {}, {3, 3}, {4, 6}, {6}};
    Input out;
    if (!earlier.empty() && chance(10) && !(fixed && kind_.gradients)) {
      int of = draw(int(earlier.size()));
      out = earlier[size_t(of)];
      while (out.layout == Input::Layout::kSame || out.layout == Input::Layout::kRow) out = earlier[size_t(of = out.of)];
      out.of = of;
      out.layout = out.sizes.size() > 1 && out.sizes[0] != 1 && chance(2) ? Input::Layout::kRow : Input::Layout::kSame;
      return out;
    }
    int kind = draw(10);
    out.dtype = kind == 0 ? kInt64 : kind == 1 ? kBool : kFloat32;
    out.sizes = fixed ? kFixed[size_t(draw(int(kFixed.size())))] : kShapes[size_t(draw(int(kShapes.size())))];
    if (out.dtype == kInt64) out.sizes = {fixed ? 2 : kRows};
    if (!out.sizes.empty() && chance(3)) out.layout = std::vector{Input::Layout::kTransposed, Input::Layout::kSpread, Input::Layout::kExpanded}[size_t(draw(3))];
    out.requires_grad = kind_.gradients && out.dtype == kFloat32 && !chance(3);
    out.leaf = fixed || !chance(4);
    return out;
  }

  void start() {
    Round round;
    Data arguments = make_inputs(program_.arguments, round, 0), captured = make_inputs(program_.captured, round, 1);
    number_ = make_number(round);
    variables_ = arguments.tensors;
    variables_.insert(variables_.end(), captured.tensors.begin(), captured.tensors.end());
    manual_seed(1);
  }

  // Runs the program so far again: a statement that was tried and dropped may have written.
  void restart() {
    start();
    for (auto& statement : program_.statements) variables_.push_back(run(statement, variables_, number_));
  }

  int find(char name) {
    std::vector<int> fitting;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const Tensor& tensor = variables_[v];
      bool fits = name == 't' || (name == 'x' ? tensor.dtype() == kInt64 : name == 'm' ? tensor.dtype() == kBool : tensor.is_floating_point());
      if (fits) fitting.push_back(int(v));
    }
    return fitting.empty() ? -1 : fitting[size_t(recent(int(fitting.size())))];
  }

  template <class F>
  bool choose(const F& form, Choice& choice) {
    for (size_t place = 0; place < kTensorNames.size(); ++place)
      if (form.names(kTensorNames[place]) && (choice.variables[place] = find(kTensorNames[place])) < 0) return false;
    static const double kNumbers[] = {0.5, -1.5, 2, 0.25, 1};
    choice.i = std::vector<int64_t>{0, 1, -1, 0, -1, 2}[size_t(draw(6))];
    choice.j = std::vector<int64_t>{0, 1, -1}[size_t(draw(3))];
    choice.n = kNumbers[draw(5)];
    return true;
  }

  bool choose(Call& call) {
    static const int kWeights[] = {0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4, 5};
    auto [begin, end] = form_groups()[size_t(kWeights[draw(12)])];
    call.form = begin + draw(end - begin);
    return choose(forms()[size_t(call.form)], call.choice);
  }

  static bool is_tame(const Tensor& tensor) {
    if (!tensor.defined() || tensor.numel() > kMostElements || tensor.dim() > 4) return false;
    for (double value : tensor.to_vector<double>())
      if (!(std::abs(value) < kLargest)) return false;
    return true;
  }

  bool attempt(const Statement& statement) {
    size_t before = variables_.size();
    try {
      variables_.push_back(run(statement, variables_, number_));
      for (auto& variable : variables_)
        if (!is_tame(variable)) throw_error("wild");
      return true;
    } catch (const std::exception&) {
      variables_.resize(before);
      restart();
      return false;
    }
  }

  void add_statement() {
    for (int tries = 0; tries < 30; ++tries) {
      Statement statement;
      if (!choose(statement.call)) continue;
      if (!attempt(statement)) {
        fails_ = chance(400);  // now and then a program that does
        if (!fails_) continue;
        program_.statements.push_back(statement);
        return;
      }
      if (chance(8)) branch(statement);
      program_.statements.push_back(statement);
      return;
    }
  }

  // The other arm gives something of the same type.
  void branch(Statement& statement) {
    Tensor made = variables_.back();
    variables_.pop_back();
    for (int tries = 0; tries < 20; ++tries) {
      Statement other;
      if (!choose(other.call)) continue;
      restart();
      if (!attempt(other)) continue;
      bool alike = variables_.back().dtype() == made.dtype() && variables_.back().impl().sizes == made.impl().sizes;
      variables_.pop_back();
      int condition = draw(int(conditions().size()));
      if (!alike || !choose(conditions()[size_t(condition)], statement.asked)) continue;
      statement.condition = condition;
      statement.otherwise = other.call;
      break;
    }
    restart();
    if (attempt(statement)) return;
    statement.condition = -1;
    attempt(statement);
  }

  const Kind kind_;
  std::mt19937 random_;
  Program program_;
  TensorList variables_;
  Scalar number_;
  bool fails_ = false;
};

}  // namespace

Program generate(uint32_t seed, const Kind& kind) { return Generator(seed, kind).generate(); }

}  // namespace sinter::fuzz
