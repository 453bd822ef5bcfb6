#include "tests/fuzz/program.h"

#include <algorithm>

namespace sinter::fuzz {

namespace {

// A size or limit as Fit codes it.
Dim resolve(int64_t code, const Fit& fit, const TensorList& variables) {
  return code >= 0 ? Dim(code) : variables[size_t(fit.like)].size(-1 - code);
}

Tensor fitted(const Operand& operand, const TensorList& variables) {
  if (operand.variable < 0) return {};
  const Fit& how = operand.fit;
  Tensor t = variables[size_t(operand.variable)];
  if (how.sizes) {
    Shape sizes;
    for (int64_t code : *how.sizes) sizes.push_back(resolve(code, how, variables));
    t = RoundingScope::applied_to(fit(t, sizes), variables);  // copies of one number are no longer all alike
  }
  if (how.below) t = (how.by_place ? places : indices)(t, resolve(*how.below, how, variables));
  if (how.dtype) t = *how.dtype == kBool ? t > 0 : t.to(*how.dtype);
  if (how.domain) t = RoundingScope::applied_to(into(t, how.domain->low, how.domain->high), variables);
  if (how.contiguous) t = t.contiguous();
  return t;
}

template <class F>
auto with_operands(const Choice& choice, const TensorList& variables, const Scalar& s, const State& state, F f) {
  Tensor tensors[kTensorNames.size()];
  for (size_t place = 0; place < kTensorNames.size(); ++place)
    tensors[place] = fitted(choice.tensors[place], variables);
  auto& [a, b, c, x, m, t] = tensors;
  return f(Operands{a, b, c, x, m, t, choice.i, choice.j, choice.n, s, state.layers[size_t(std::max(choice.layer, 0))],
                    *state.optimizer, *state.schedule, state.parameters});
}

Tensor run(const OpUse& use, const TensorList& variables) {
  TensorList tensors;
  for (auto& argument : use.arguments) tensors.push_back(fitted(argument.tensor, variables));
  std::vector<TensorArg> operands;
  for (size_t k = 0; k < tensors.size(); ++k) {
    auto& number = use.arguments[k].number;
    operands.push_back(number ? TensorArg(*number) : TensorArg(tensors[k]));
  }
  return op(use.op->name.data(), operands, use.attributes.c_str()).at(size_t(use.result));
}

Tensor run(const Call& call, const TensorList& variables, const Scalar& s, const State& state) {
  if (call.use.op) return run(call.use, variables);
  return with_operands(call.choice, variables, s, state, forms()[size_t(call.form)].run);
}

int64_t size_of(int size, const Round& round) {
  return size == kRows ? round.rows : size == kColumns ? round.columns : size;
}

Tensor draw(const Input& input, const Shape& shape, double disturbance) {
  if (!is_floating(input.dtype)) return randint(0, 2, shape).to(input.dtype);
  Tensor values = rand(shape) * 4 - 2;
  if (disturbance != 0) values = disturbed(values, disturbance);
  return values.to(input.dtype);
}

Tensor lay_out(const Input& input, const Round& round) {
  Shape shape, around;
  for (int size : input.sizes) shape.push_back(size_of(size, round));
  around = shape;
  switch (input.layout) {
    case Input::Layout::kTransposed:
      std::reverse(around.begin(), around.end());
      return draw(input, around, round.disturbance).transpose(0, -1);
    case Input::Layout::kSpread:
      around.back() = around.back() * 2;
      return draw(input, around, round.disturbance).slice(-1, {}, {}, 2);
    case Input::Layout::kExpanded:
      around[0] = 1;
      return draw(input, around, round.disturbance).expand(shape);
    default:
      return draw(input, shape, round.disturbance);
  }
}

}  // namespace

Data make_inputs(const std::vector<Input>& inputs, const Round& round, uint32_t stream) {
  Data data;
  manual_seed(round.values * 2 + stream);
  for (auto& input : inputs) {
    if (input.layout == Input::Layout::kSame) {
      data.tensors.push_back(data.tensors[size_t(input.of)]);
      continue;
    }
    if (input.layout == Input::Layout::kRow) {
      data.tensors.push_back(data.tensors[size_t(input.of)].select(0, -1));
      continue;
    }
    Tensor made = lay_out(input, round);
    if (input.requires_grad) {
      made.requires_grad_();
      data.leaves.push_back(made);
      if (!input.leaf) made = made * 1.5;
    }
    data.tensors.push_back(made);
  }
  return data;
}

static thread_local const RoundingScope* rounding = nullptr;
RoundingScope::RoundingScope(double step, int pattern) : step_(step), pattern_(pattern) { rounding = this; }
RoundingScope::~RoundingScope() { rounding = nullptr; }

Tensor RoundingScope::applied_to(const Tensor& made, const TensorList& variables) {
  if (!rounding || !made.is_floating_point()) return made;
  for (auto& variable : variables)
    if (made.is_alias_of(variable)) return made;
  // Which sign a zero has, nobody says: those of every other statement get one.
  if (rounding->pattern_ % 4 == 1 && rounding->pattern_ < kAlike) {
    if ((variables.size() + size_t(rounding->pattern_) / 8) % 2) return made;
    return rounding->pattern_ % 8 == 1 ? made + 0.0 : -(-made + 0.0);
  }
  Tensor value = made.detach().to(kFloat64), size = value.abs() + 1;
  // Equal numbers are rounded alike.
  if (rounding->pattern_ >= kAlike) return made + (size * (rounding->pattern_ / 2 % 2 ? rounding->step_ : -rounding->step_)).to(made.dtype());
  // What is almost a round number is one, or was: zero, above all.
  if (rounding->pattern_ % 4 == 3)
    return made + (round(value / (64 * rounding->step_)) * (64 * rounding->step_) - value).to(made.dtype());
  return made + (size * rounding->ways(made.sizes()) * rounding->step_).to(made.dtype());
}

// Of each element the way it goes, in [-1, 1).
Tensor RoundingScope::ways(const Shape& sizes) const {
  Tensor scattered = sin(arange(sizes.numel().number(), kFloat64) * 12.9898 + 78.233 * (pattern_ + 1)) * 43758.5453;
  return ((scattered - floor(scattered)) * 2 - 1).view(sizes);
}

TensorList RoundingScope::weighted(const TensorList& results) {
  if (!rounding) return results;
  TensorList out;
  for (auto& result : results) {
    bool moves = result.defined() && result.requires_grad();
    out.push_back(moves ? result * (rounding->ways(result.sizes()) * rounding->step_ + 1).to(kFloat32) : result);
  }
  return out;
}

Scalar make_number(const Round& round) { return 0.5 + double(round.values % 3); }

Tensor run(const Statement& statement, const TensorList& variables, const Scalar& s, const State& state) {
  if (statement.condition < 0) return run(statement.call, variables, s, state);
  bool holds = with_operands(statement.asked, variables, s, state, conditions()[size_t(statement.condition)].holds);
  return run(holds ? statement.call : statement.otherwise, variables, s, state);
}

bool any_coarse(const TensorList& variables) {
  return std::any_of(variables.begin(), variables.end(),
                     [](const Tensor& t) { return t.dtype() == kBFloat16 || t.dtype() == kFloat16; });
}

TensorList run(const Program& program, const TensorList& arguments, const TensorList& captured, const Scalar& s,
               const State& state) {
  TensorList variables = arguments, results;
  variables.insert(variables.end(), captured.begin(), captured.end());
  for (auto& statement : program.statements)
    variables.push_back(RoundingScope::applied_to(run(statement, variables, s, state), variables));
  for (int result : program.results) results.push_back(variables[size_t(result)]);
  return results;
}

}  // namespace sinter::fuzz
