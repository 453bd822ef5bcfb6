#include <bit>

#include "sinter/graph/interpreter/kinds.h"
#include "sinter/graph/interpreter/number.h"

namespace sinter::interpreter {

namespace {

constexpr int kMaxArity = 8;

// An operand seen through broadcasting: how far each result coordinate moves it.
struct Operand {
  const Array* array;
  IntList strides;
  int64_t at = 0;
  bool truth = false;     // taken as 0 or 1
  bool narrowed = false;  // rounded to f32 on the way in, as a kernel converts it

  Number read() const {
    Number value = array->floating() ? Number(array->f[size_t(at)]) : Number(array->i[size_t(at)]);
    if (truth) return Number(int64_t(value.truth()));
    return narrowed ? Number(double(float(value.to_double()))) : value;
  }
};

Operand make_operand(const Array& array, const IntList& result_sizes) {
  Operand out{&array, IntList(result_sizes.size(), 0)};
  IntList strides = contiguous_strides(array.sizes);
  size_t shift = result_sizes.size() - array.sizes.size();
  for (size_t d = 0; d < array.sizes.size(); ++d)
    if (array.sizes[d] != 1) out.strides[d + shift] = strides[d];
  return out;
}

// The scalar function with the conversions around it.
struct Evaluator {
  const PointwiseBody& body;
  DType computing;
  Array& out;
  bool rounds;

  void operator()(int64_t at, const Number* args) const {
    if (is_floating(computing)) {
      double values[kMaxArity];
      for (int j = 0; j < body.arity; ++j) values[j] = args[j].to_double();
      double result = body.on_double(values);
      out.set(at, rounds ? round_to(out.dtype, result) : result);
      return;
    }
    int64_t values[kMaxArity];
    for (int j = 0; j < body.arity; ++j) values[j] = args[j].to_int();
    int64_t result = body.on_int(values);
    if (body.typing == Typing::kRandom)
      out.set(at, std::bit_cast<double>(result));
    else if (rounds && out.floating())
      out.set(at, round_to(out.dtype, double(result)));
    else
      // Bitwise functions of bool act on the lowest bit alone.
      out.set(at, body.typing == Typing::kInteger && computing == kBool ? result & 1 : result);
  }
};

}  // namespace

Array run_pointwise(const OpCall& call, Arrays inputs, const Type& type) {
  auto& body = *call.op.pointwise;
  SINTER_INTERNAL_ASSERT(body.arity <= kMaxArity && inputs.size() == size_t(body.arity), "{} takes {} operands, not {}",
                         call.op.name, body.arity, inputs.size());
  Array out(type.dtype, type.shape.numbers());
  DType computing = computing_type(call);
  std::vector<Operand> operands;
  for (size_t j = 0; j < inputs.size(); ++j) {
    auto& operand = operands.emplace_back(make_operand(*inputs[j], out.sizes));
    operand.truth = computing == kBool || (body.typing == Typing::kSelect && j == 0);
    DType from = inputs[j]->dtype;
    operand.narrowed = compute_dtype(computing) == kFloat32 && (from == kFloat64 || !is_floating(from));
  }
  Evaluator evaluate{body, computing, out, body.typing == Typing::kAttr};
  Number args[kMaxArity];
  IntList at(out.sizes.size(), 0);
  for (int64_t n = 0, count = out.numel(); n < count; ++n) {
    for (size_t j = 0; j < operands.size(); ++j) args[j] = operands[j].read();
    evaluate(n, args);
    for (size_t d = at.size(); d-- > 0;) {
      for (auto& operand : operands) operand.at += operand.strides[d];
      if (++at[d] < out.sizes[d]) break;
      for (auto& operand : operands) operand.at -= operand.strides[d] * out.sizes[d];
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace sinter::interpreter
