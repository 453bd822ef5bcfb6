#include "sinter/graph/interpreter/elements.h"

#include <bit>
#include <cmath>

#include "sinter/base/fault.h"

namespace sinter::interpreter {

namespace {

bool holds(const Conditions& conditions) {
  for (auto& c : conditions) {
    int64_t value = c.value.number();
    if (value < 0 || value >= c.extent.number() || value % c.multiple != 0) return false;
  }
  return true;
}

// Padding in the operand's own type: minus infinity is the lowest integer.
Number padding(const Scalar& value, DType dtype) {
  double number = value.to_double();
  if (is_floating(dtype) || !std::isinf(number)) return Number(value).as(dtype);
  if (dtype == kBool || dtype == kUInt8) return int64_t(number < 0 ? 0 : dtype == kBool ? 1 : 255);
  int64_t highest = INT64_MAX >> (64 - 8 * item_size(dtype));
  return number < 0 ? -highest - 1 : highest;
}

}  // namespace

ConcreteElements::ConcreteElements(const OpCall& call, std::span<const Array* const> inputs)
    : ElementBuilder(call), inputs_(inputs) {
  for (auto* array : inputs) strides_.push_back(contiguous_strides(array->sizes));
}

Number ConcreteElements::evaluate() {
  values_.clear();
  Elem result = call.op.element(*this);
  return values_[size_t(result.id)];
}

Elem ConcreteElements::push(Number value) {
  values_.push_back(value);
  return {int(values_.size()) - 1};
}

int64_t ConcreteElements::offset(int operand, const Index& at) const {
  SINTER_INTERNAL_ASSERT(size_t(operand) < inputs_.size(), "{} reads operand {}, which it does not have", call.op.name,
                         operand);
  auto& sizes = inputs_[size_t(operand)]->sizes;
  SINTER_INTERNAL_ASSERT(at.size() == sizes.size(), "{} reads operand {} of shape {} by {} coordinates", call.op.name,
                         operand, sizes, at.size());
  int64_t offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t coordinate = at[d].number();
    SINTER_INTERNAL_ASSERT(coordinate >= 0 && coordinate < sizes[d],
                           "{}: index {} is out of range for size {} (dimension {} of operand {})", call.op.name,
                           coordinate, sizes[d], d, operand);
    offset += coordinate * strides_[size_t(operand)][d];
  }
  return offset;
}

Number ConcreteElements::element_of(int operand, int64_t offset) const {
  auto& array = *inputs_[size_t(operand)];
  return array.floating() ? Number(array.f[size_t(offset)]) : Number(array.i[size_t(offset)]);
}

Elem ConcreteElements::load(int operand, const Index& at) { return push(element_of(operand, offset(operand, at))); }

Elem ConcreteElements::load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) {
  if (holds(inside)) return load(operand, at);
  return push(padding(otherwise, call.inputs[size_t(operand)].dtype));
}

Dim ConcreteElements::load_index(int operand, const Index& at, const Dim& extent) {
  int64_t index = element_of(operand, offset(operand, at)).to_int(), size = extent.number();
  check(index >= -size && index < size, "{}", fault_text(call.op.name, index, size));
  return index < 0 ? index + size : index;
}

Elem ConcreteElements::select(const Conditions& conditions, Elem yes, Elem no) { return holds(conditions) ? yes : no; }

Elem ConcreteElements::apply(const Op& pointwise, DType dtype, std::initializer_list<Elem> args) {
  auto& body = *pointwise.pointwise;
  SINTER_INTERNAL_ASSERT(int(args.size()) == body.arity, "{} applies {} to {} scalars", call.op.name, pointwise.name,
                         args.size());
  bool truths = body.typing == Typing::kBool, gives_bool = truths || body.typing == Typing::kCompare;
  DType category = truths ? kBool : dtype;
  if (body.typing == Typing::kFloat && !is_floating(dtype)) category = kFloat32;
  // Seeds need all 64 bits, and the result comes as the bits of a double.
  const bool random = body.typing == Typing::kRandom;
  if (random) category = kInt64;
  double doubles[8] = {};
  int64_t integers[8] = {};
  size_t n = 0;
  for (Elem arg : args) {
    Number value = values_[size_t(arg.id)];
    value = value.as(body.typing == Typing::kSelect && n == 0 ? kBool : category);
    doubles[n] = value.to_double();
    integers[n++] = value.to_int();
  }
  if (is_floating(category)) {
    double result = body.on_double(doubles);
    return push(gives_bool ? Number(int64_t(result != 0)) : Number(result));
  }
  if (random) return push(Number(std::bit_cast<double>(body.on_int(integers))));
  return push(Number(wrap_integer(gives_bool ? kBool : category, body.on_int(integers))));
}

Elem ConcreteElements::number(const Dim& value) { return push(Number(value.number())); }
Elem ConcreteElements::constant(const Scalar& value) { return push(Number(value)); }

}  // namespace sinter::interpreter
