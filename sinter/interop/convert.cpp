#include "sinter/interop/convert.h"

#include "sinter/base/error.h"
#include "sinter/interop/host_tensor.h"
#include "sinter/ops/creation.h"

namespace sinter::interop {

namespace detail {

void fail_conversion(const char* wanted, const Value& value) {
  throw_error(format("{} was expected, not {}", wanted, describe(value)));
}

namespace {

// The one element of a tensor that the host knows.
std::optional<Value> only_element(const Value& value) {
  const HostTensor* host = host_of(value);
  if (!host || host->count() != 1) return std::nullopt;
  return element_of(*host, 0);
}

// What a tensor of one integer holds; under capture the program is asked.
std::optional<Value> read_integer(const Value& value) {
  auto* t = std::get_if<Tensor>(&value.held);
  if (!t || !t->defined() || is_differentiable(t->dtype()) || !(t->numel() == 1)) return std::nullopt;
  return Value{Dim(t->item().to_int())};
}

}  // namespace

bool to_bool(const Value& value) {
  if (auto element = only_element(value)) return to_bool(*element);
  if (auto element = read_integer(value)) return to_bool(*element);
  if (auto* b = std::get_if<bool>(&value.held)) return *b;
  if (auto* s = std::get_if<Scalar>(&value.held); s && s->dtype() == kBool) return s->to_bool();
  if (auto* d = std::get_if<Dim>(&value.held)) return d->to_int() != 0;
  fail_conversion("True or False", value);
}

Dim to_dim(const Value& value) {
  if (auto element = only_element(value)) return to_dim(*element);
  if (auto element = read_integer(value)) return to_dim(*element);
  if (auto* d = std::get_if<Dim>(&value.held)) return *d;
  if (auto* s = std::get_if<Scalar>(&value.held); s && !s->is_floating()) return s->to_int();
  if (auto* b = std::get_if<bool>(&value.held)) return int64_t(*b);
  fail_conversion("an integer", value);
}

Scalar to_scalar(const Value& value) {
  if (auto element = only_element(value)) return to_scalar(*element);
  if (auto* s = std::get_if<Scalar>(&value.held)) return *s;
  if (auto* d = std::get_if<Dim>(&value.held)) return d->to_int();
  if (auto* b = std::get_if<bool>(&value.held)) return *b;
  if (auto* t = std::get_if<Tensor>(&value.held); t && t->defined() && t->numel() == 1) return t->item();
  fail_conversion("a number", value);
}

// None is a tensor that is not there.
Tensor to_tensor(const Value& value) {
  if (auto* t = std::get_if<Tensor>(&value.held)) return *t;
  if (auto* host = host_of(value)) return tensor_of(*host);
  if (value.is<Value::None>()) return {};
  if (value.is<Dim>() || value.is<Scalar>() || value.is<bool>()) {
    TensorArg number = to_operand(value);
    return number.is_scalar() ? scalar_tensor(number.scalar(), number.scalar().dtype()) : number.tensor();
  }
  fail_conversion("a tensor", value);
}

TensorArg to_operand(const Value& value) {
  if (auto* t = std::get_if<Tensor>(&value.held)) return *t;
  if (auto* host = host_of(value)) return tensor_of(*host);
  if (auto* d = std::get_if<Dim>(&value.held)) return *d;
  if (auto* s = std::get_if<Scalar>(&value.held)) return *s;
  if (auto* b = std::get_if<bool>(&value.held)) return *b;
  fail_conversion("a tensor or a number", value);
}

const std::string& to_text(const Value& value) {
  if (auto* s = std::get_if<std::string>(&value.held)) return *s;
  fail_conversion("a text", value);
}

DType to_dtype(const Value& value) {
  if (auto* d = std::get_if<DType>(&value.held)) return *d;
  fail_conversion("a dtype", value);
}

MemoryFormat to_memory_format(const Value& value) {
  if (auto* m = std::get_if<MemoryFormat>(&value.held)) return *m;
  fail_conversion("a memory format", value);
}

Device to_device(const Value& value) {
  if (auto* d = std::get_if<Device>(&value.held)) return *d;
  fail_conversion("a device", value);
}

ValueList to_list(const Value& value) {
  if (auto* list = std::get_if<ValueList>(&value.held)) return *list;
  if (value.is<Value::None>()) fail_conversion("a list", value);
  return {value};
}

ValueList to_numbers(const Value& value) {
  auto* tensor = std::get_if<Tensor>(&value.held);
  if (tensor && tensor->defined() && tensor->dim() == 1) return to_numbers(host_value(read_elements(*tensor)));
  const HostTensor* host = host_of(value);
  if (!host) return to_list(value);
  ValueList out;
  for (int64_t i = 0; i < host->count(); ++i) out.push_back(element_of(*host, i));
  return out;
}

// Tensor?[]: None takes a whole dimension.
std::vector<TensorIndex> to_indices(const Value& value) {
  std::vector<TensorIndex> out;
  for (auto& entry : to_list(value)) {
    Tensor index = to_tensor(entry);
    if (index.defined())
      out.push_back(index);
    else
      out.push_back(Slice());
  }
  return out;
}

void expect_unset(const Value& value) {
  auto* b = std::get_if<bool>(&value.held);
  if (!value.is<Value::None>() && !(b && !*b)) fail_conversion("nothing but the default", value);
}

}  // namespace detail

ValueList results_of(const TensorList& result) {
  ValueList list;
  for (auto& tensor : result) list.push_back({tensor});
  return {Value{std::move(list)}};
}

}  // namespace sinter::interop
