// Random programs. Every statement is tried out eagerly while the program grows, so that few are refused.
#include <cstdlib>
#include <random>

#include "sinter/graph/text_scan.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/op_uses.h"

namespace sinter::fuzz {

namespace {

constexpr double kLargest = 200;
constexpr int64_t kMostElements = 600;

// SINTER_FUZZ_AVOID="manual_seed,.step()" leaves out forms and ops whose text has one of these: what is known to fail.
bool is_avoided(std::string_view text) {
  static const std::string avoided = [] {
    const char* words = std::getenv("SINTER_FUZZ_AVOID");
    return std::string(words ? words : "");
  }();
  for (auto word : split_list(avoided))
    if (text.find(word) != std::string_view::npos) return true;
  return false;
}

class Generator {
 public:
  Generator(uint32_t seed, const Kind& kind) : kind_(kind), random_(seed) { program_.seed = seed; }

  Program generate() {
    int arguments = 1 + draw(4), captured = draw(3) == 0 ? 1 + draw(2) : 0;
    for (int k = 0; k < arguments; ++k) program_.arguments.push_back(input(program_.arguments, false));
    for (int k = 0; k < captured; ++k) program_.captured.push_back(input(program_.captured, true));
    if (kind_.training || chance(4)) add_state();
    start();
    for (int k = 0; k <= kPairs && !fails_; ++k) {
      for (int steps = draw(4); steps > 0 && !fails_; --steps) add_statement();
      if (k < kPairs && !fails_) add_pair(pair_of(program_.seed, k));
    }
    // What is not returned is not computed: the pairs are.
    for (int results = 1 + draw(3); results > 0; --results) program_.results.push_back(recent(int(variables_.size())));
    return program_;
  }

 private:
  int draw(int below) { return int(random_() % uint32_t(below)); }
  bool chance(int one_in) { return draw(one_in) == 0; }
  // Later ones are more likely.
  int recent(int count) { return chance(3) ? draw(count) : count - 1 - draw(std::min(count, 3)); }

  Input input(const std::vector<Input>& earlier, bool fixed) {
    static const std::vector<std::vector<int>> kShapes = {
        {kRows, kColumns}, {kRows, kColumns}, {kColumns}, {kRows},
        {kRows, kRows},    {kRows, 1},        {},         {2, kRows, kColumns}};
    static const std::vector<std::vector<int>> kFixed = {{1}, {}, {3, 3}, {4, 6}, {6}};
    Input out;
    if (!earlier.empty() && chance(10) && !(fixed && kind_.gradients)) {
      int of = draw(int(earlier.size()));
      out = earlier[size_t(of)];
      while (out.layout == Input::Layout::kSame || out.layout == Input::Layout::kRow)
        out = earlier[size_t(of = out.of)];
      out.of = of;
      out.layout = out.sizes.size() > 1 && out.sizes[0] != 1 && chance(2) ? Input::Layout::kRow : Input::Layout::kSame;
      return out;
    }
    static const DType kRare[] = {kFloat64, kBFloat16, kInt32, kUInt8};
    int kind = draw(30);
    out.dtype = kind < 3 ? kInt64 : kind < 6 ? kBool : kind == 6 ? kRare[draw(4)] : kFloat32;
    out.sizes = fixed ? kFixed[size_t(draw(int(kFixed.size())))] : kShapes[size_t(draw(int(kShapes.size())))];
    if (out.dtype == kInt64) out.sizes = {fixed ? 2 : kRows};
    if (!out.sizes.empty() && chance(3))
      out.layout =
          std::vector{Input::Layout::kTransposed, Input::Layout::kSpread, Input::Layout::kExpanded}[size_t(draw(3))];
    out.requires_grad = kind_.gradients && is_floating(out.dtype) && !chance(3);
    out.leaf = fixed || !chance(4);
    return out;
  }

  // One or two layers; where there are gradients, mostly an optimiser, with or without a schedule.
  void add_state() {
    StateSpec& state = program_.state;
    for (int k = chance(3) ? 2 : 1; k > 0; --k) state.layers.push_back(draw(int(layer_forms().size())));
    program_.as_module = chance(3);
    if (!kind_.gradients || chance(4)) return;
    state.optimizer = draw(int(optimizer_forms().size()));
    state.schedule = chance(2) ? draw(int(schedule_forms().size())) : -1;
    state.steps_around = chance(2);
    state.clips = chance(3);
    state.before = StateSpec::Before(draw(3));
  }

  void start() {
    Round round;
    state_ = make_state(program_.state, 0);
    Data arguments = make_inputs(program_.arguments, round, 0), captured = make_inputs(program_.captured, round, 1);
    number_ = make_number(round);
    variables_ = arguments.tensors;
    variables_.insert(variables_.end(), captured.tensors.begin(), captured.tensors.end());
    manual_seed(1);
  }

  // Runs the program so far again: a statement that was tried and dropped may have written.
  void restart() {
    start();
    for (auto& statement : program_.statements) variables_.push_back(run(statement, variables_, number_, state_));
  }

  int find(char name) {
    std::vector<int> fitting;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const Tensor& tensor = variables_[v];
      bool fits = name == 't' || (name == 'x'   ? tensor.dtype() == kInt64
                                  : name == 'm' ? tensor.dtype() == kBool
                                                : tensor.is_floating_point());
      if (fits) fitting.push_back(int(v));
    }
    return fitting.empty() ? -1 : fitting[size_t(recent(int(fitting.size())))];
  }

  template <class F>
  bool choose(const F& form, Choice& choice) {
    const StateSpec& state = program_.state;
    if ((form.names('l') && state.layers.empty()) || (form.names('p') && state_.parameters.empty())) return false;
    if ((form.names('o') && state.optimizer < 0) || (form.names('r') && state.schedule < 0)) return false;
    for (size_t place = 0; place < kTensorNames.size(); ++place) {
      if (!form.names(kTensorNames[place])) continue;
      int variable = choice.tensors[place].variable = find(kTensorNames[place]);
      if (variable < 0) return false;
    }
    if (form.names('l')) choose_layer(choice);
    static const double kNumbers[] = {0.5, -1.5, 2, 0.25, 1};
    choice.i = std::vector<int64_t>{0, 1, -1, 0, -1, 2}[size_t(draw(6))];
    choice.j = std::vector<int64_t>{0, 1, -1}[size_t(draw(3))];
    choice.n = kNumbers[draw(5)];
    return true;
  }

  // The operand a becomes what the layer takes.
  void choose_layer(Choice& choice) {
    choice.layer = draw(int(program_.state.layers.size()));
    const LayerForm& layer = layer_forms()[size_t(program_.state.layers[size_t(choice.layer)])];
    Operand& operand = choice.tensors[0];
    if (operand.variable < 0) return;
    operand.fit.sizes = layer.sizes;
    operand.fit.like = operand.variable;
    if (layer.below > 0) {
      operand.fit.below = layer.below;
      operand.fit.by_place = any_coarse(variables_);
    } else if (variables_[size_t(operand.variable)].dtype() != kFloat32) {
      operand.fit.dtype = kFloat32;
    }
  }

  bool choose(Call& call) {
    static const FormGroup kWeights[] = {kPointwiseForms, kPointwiseForms, kReduceForms, kMoveForms,   kViewForms,
                                         kViewForms,      kWriteForms,     kWriteForms,  kNumberForms, kOtherForms};
    if (chance(3)) return choose_op(call, *drawn_ops()[size_t(draw(int(drawn_ops().size())))], {.exact = chance(2)});
    bool state = !program_.state.layers.empty() && !chance(kind_.training ? 2 : 3);
    auto [begin, end] = forms_of(state ? kStateForms : kWeights[draw(int(std::size(kWeights)))]);
    call.form = begin + draw(end - begin);
    if (is_avoided(forms()[size_t(call.form)].text)) return false;
    return choose(forms()[size_t(call.form)], call.choice);
  }

  bool choose_op(Call& call, const Op& op, const Wish& wish) {
    if (is_avoided(op.name)) return false;
    auto use = draw_use(op, variables_, wish, drawer_);
    if (use) call.use = *use;
    return bool(use);
  }

  // The consumer on the producer's result, which has the sizes that the consumer's sample wants where it can.
  void add_pair(const OpPair& pair) {
    bool pointwise = pair.producer->kind == OpKind::kPointwise && !chance(3);
    auto [text, sizes] = draw_sample(*pair.consumer, drawer_);
    Wish first, second{.first = 0, .exact = pointwise, .text = pointwise ? text : ""};
    if (pointwise) first = {.exact = true, .sizes = sizes};
    if (!add_op(*pair.producer, first)) return;
    second.first = int(variables_.size()) - 1;
    if (add_op(*pair.consumer, second) || add_op(*pair.consumer, {.first = second.first, .exact = true}))
      program_.results.push_back(int(variables_.size()) - 1);
  }

  bool add_op(const Op& op, Wish wish) {
    for (int tries = 0; tries < 6; ++tries) {
      Statement statement;
      if (!choose_op(statement.call, op, wish) || !attempt(statement)) continue;
      program_.statements.push_back(statement);
      return true;
    }
    return false;
  }

  static bool is_tame(const Tensor& tensor) {
    if (!tensor.defined() || tensor.numel() > kMostElements || tensor.dim() > 5) return false;
    for (double value : tensor.to_vector<double>())
      if (!(std::abs(value) < kLargest)) return false;
    return true;
  }

  bool attempt(const Statement& statement) {
    size_t before = variables_.size();
    try {
      variables_.push_back(run(statement, variables_, number_, state_));
      for (auto& variable : variables_)
        if (!is_tame(variable)) throw_error("wild");
      for (auto& parameter : state_.parameters)
        if (!is_tame(parameter)) throw_error("wild");
      program_.coarse = program_.coarse || any_coarse(variables_);
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
  const Draw drawer_ = [this](int below) { return draw(below); };
  Program program_;
  TensorList variables_;
  State state_;
  Scalar number_;
  bool fails_ = false;
};

}  // namespace

Program generate(uint32_t seed, const Kind& kind) { return Generator(seed, kind).generate(); }

}  // namespace sinter::fuzz
