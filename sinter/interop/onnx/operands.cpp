#include "sinter/interop/onnx/operands.h"

#include "sinter/base/error.h"

namespace sinter::interop::onnx {

DType dtype_of(Any value) {
  if (auto* host = host_of(value)) return host->dtype;
  return value_to<Tensor>(value).dtype();
}

Shape sizes_of(Any value) {
  if (auto* host = host_of(value)) return Shape(host->sizes);
  return value_to<Tensor>(value).sizes();
}

namespace {

// A number in the place of a constant of one element, unless it gives the result a dimension.
std::optional<Scalar> number_beside(Any value, Any other) {
  const HostTensor* host = host_of(value);
  auto* tensor = std::get_if<Tensor>(&other.held);
  if (!host || !tensor || !tensor->defined() || host->count() != 1 || !host->is_constant()) return std::nullopt;
  if (tensor->dtype() != host->dtype || tensor->dim() < int64_t(host->sizes.size())) return std::nullopt;
  if (host->is_real()) return Scalar(host->real[0]);
  if (host->dtype == kBool) return Scalar(host->whole[0].number() != 0);
  return Scalar(host->whole[0].number());
}

TensorArg operand(Any value, Any other) {
  if (auto number = number_beside(value, other)) return *number;
  return value_to<Tensor>(value);
}

IntList broadcast(const IntList& a, const IntList& b) {
  return IntList(broadcast_shapes("load_onnx", Shape(a), Shape(b)));
}

// The place of an element of the broadcast tensor in one of its operands.
int64_t broadcast_place(const IntList& at, const IntList& sizes) {
  int64_t out = 0;
  const size_t before = at.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) out = out * sizes[d] + (sizes[d] == 1 ? 0 : at[before + d]);
  return out;
}

}  // namespace

Pair pair_of(Any a, Any b) { return {operand(a, b), operand(b, a)}; }

std::optional<Value> combine_on_host(Any a, Any b, OfWhole of_whole, std::optional<DType> result) {
  const HostTensor *x = host_of(a), *y = host_of(b);
  if (!x || !y || x->is_real() || y->is_real()) return std::nullopt;
  HostTensor out{.dtype = result.value_or(x->dtype), .sizes = broadcast(x->sizes, y->sizes), .device = x->place()};
  if (checked_numel("load_onnx", out.sizes) > HostTensor::kMostElements) return std::nullopt;
  for_coordinates(out.sizes, [&](const IntList& at) {
    out.whole.push_back(of_whole(x->whole[size_t(broadcast_place(at, x->sizes))], y->whole[size_t(broadcast_place(at, y->sizes))]));
  });
  return host_value(std::move(out));
}

std::optional<Value> combine_constants(Any a, Any b, OfReal of_real) {
  const HostTensor *x = host_of(a), *y = host_of(b);
  if (!x || !y || !x->is_real() || x->dtype != y->dtype) return std::nullopt;
  HostTensor out{.dtype = x->dtype, .sizes = broadcast(x->sizes, y->sizes), .device = x->place()};
  if (checked_numel("load_onnx", out.sizes) > HostTensor::kMostElements) return std::nullopt;
  for_coordinates(out.sizes, [&](const IntList& at) {
    const double value = of_real(x->real[size_t(broadcast_place(at, x->sizes))], y->real[size_t(broadcast_place(at, y->sizes))]);
    out.real.push_back(x->dtype == kFloat64 ? value : double(float(value)));
  });
  return host_value(std::move(out));
}

Value pick(const HostTensor& x, const IntList& sizes, const std::vector<int64_t>& places) {
  HostTensor out{.dtype = x.dtype, .sizes = sizes, .device = x.place()};
  for (int64_t place : places) {
    if (x.is_real())
      out.real.push_back(x.real.at(size_t(place)));
    else
      out.whole.push_back(x.whole.at(size_t(place)));
  }
  return host_value(std::move(out));
}

void for_coordinates(const IntList& sizes, const std::function<void(const IntList& at)>& visit) {
  int64_t count = checked_numel("load_onnx", sizes);
  IntList at(sizes.size(), 0);
  for (; count > 0; --count) {
    visit(at);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

int64_t place_of(const IntList& at, const IntList& sizes) {
  int64_t out = 0;
  for (size_t d = 0; d < sizes.size(); ++d) out = out * sizes[d] + at[d];
  return out;
}

IntList wrapped(const char* op, const IntList& dims, int64_t rank) {
  IntList out;
  for (int64_t dim : dims) out.push_back(wrap_dim(op, dim, rank));
  return out;
}

}  // namespace sinter::interop::onnx
