#include "tests/fuzz/program.h"

#include <algorithm>

namespace sinter::fuzz {

namespace {

template <class F>
auto with_operands(const Choice& choice, const TensorList& variables, const Scalar& s, F f) {
  static const Tensor none;
  auto at = [&](size_t place) -> const Tensor& {
    int variable = choice.variables[place];
    return variable < 0 ? none : variables[size_t(variable)];
  };
  return f(Operands{at(0), at(1), at(2), at(3), at(4), at(5), choice.i, choice.j, choice.n, s});
}

Tensor run(const Call& call, const TensorList& variables, const Scalar& s) {
  return with_operands(call.choice, variables, s, forms()[size_t(call.form)].run);
}

int64_t size_of(int size, const Round& round) {
  return size == kRows ? round.rows : size == kColumns ? round.columns : size;
}

Tensor draw(const Input& input, const Shape& shape, double disturbance) {
  if (input.dtype == kInt64) return randint(0, 2, shape);
  if (input.dtype == kBool) return randint(0, 2, shape).to(kBool);
  Tensor values = rand(shape) * 4 - 2;
  if (disturbance == 0) return values;
  return values * (1 + disturbance * sin(7.3 * arange(values.numel(), kFloat32)).view(shape));
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

Scalar make_number(const Round& round) { return 0.5 + double(round.values % 3); }

Tensor run(const Statement& statement, const TensorList& variables, const Scalar& s) {
  if (statement.condition < 0) return run(statement.call, variables, s);
  bool holds = with_operands(statement.asked, variables, s, conditions()[size_t(statement.condition)].holds);
  return run(holds ? statement.call : statement.otherwise, variables, s);
}

TensorList run(const Program& program, const TensorList& arguments, const TensorList& captured, const Scalar& s) {
  TensorList variables = arguments, results;
  variables.insert(variables.end(), captured.begin(), captured.end());
  for (auto& statement : program.statements) variables.push_back(run(statement, variables, s));
  for (int result : program.results) results.push_back(variables[size_t(result)]);
  return results;
}

}  // namespace sinter::fuzz
