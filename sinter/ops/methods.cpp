// Methods of Tensor that only call the free function of their name.
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

void Tensor::operator=(const TensorArg& value) && { copy_(value); }

Tensor Tensor::floor(Where where) const { return sinter::floor({*this, where}); }
Tensor Tensor::ceil(Where where) const { return sinter::ceil({*this, where}); }
Tensor Tensor::round(Where where) const { return sinter::round({*this, where}); }
Tensor Tensor::trunc(Where where) const { return sinter::trunc({*this, where}); }
Tensor Tensor::sign(Where where) const { return sinter::sign({*this, where}); }
Tensor Tensor::reciprocal(Where where) const { return sinter::reciprocal({*this, where}); }
Tensor Tensor::erf(Where where) const { return sinter::erf({*this, where}); }
Tensor Tensor::log1p(Where where) const { return sinter::log1p({*this, where}); }
Tensor Tensor::log2(Where where) const { return sinter::log2({*this, where}); }
Tensor Tensor::isnan(Where where) const { return sinter::isnan({*this, where}); }
Tensor Tensor::isinf(Where where) const { return sinter::isinf({*this, where}); }
Tensor Tensor::isfinite(Where where) const { return sinter::isfinite({*this, where}); }
Tensor Tensor::logical_not(Where where) const { return sinter::logical_not({*this, where}); }
Tensor Tensor::nonzero(Where where) const { return sinter::nonzero({*this, where}); }

Tensor Tensor::floor_divide(const TensorArg& other) const {
  return sinter::floor_divide({*this, other.where()}, other);
}
Tensor Tensor::fmod(const TensorArg& other) const { return sinter::fmod({*this, other.where()}, other); }
Tensor Tensor::remainder(const TensorArg& other) const { return sinter::remainder({*this, other.where()}, other); }
Tensor Tensor::maximum(const TensorArg& other) const { return sinter::maximum({*this, other.where()}, other); }
Tensor Tensor::minimum(const TensorArg& other) const { return sinter::minimum({*this, other.where()}, other); }
Tensor Tensor::dot(const TensorArg& other) const { return sinter::dot({*this, other.where()}, other); }
Tensor Tensor::outer(const TensorArg& other) const { return sinter::outer({*this, other.where()}, other); }
Tensor Tensor::masked_select(const TensorArg& other) const {
  return sinter::masked_select({*this, other.where()}, other);
}
Tensor Tensor::clamp_min(const TensorArg& other) const { return sinter::clamp_min({*this, other.where()}, other); }
Tensor Tensor::clamp_max(const TensorArg& other) const { return sinter::clamp_max({*this, other.where()}, other); }
Tensor Tensor::logical_and(const TensorArg& other) const { return sinter::logical_and({*this, other.where()}, other); }
Tensor Tensor::logical_or(const TensorArg& other) const { return sinter::logical_or({*this, other.where()}, other); }

Tensor Tensor::lerp(const TensorArg& end, const TensorArg& weight) const {
  return sinter::lerp({*this, end.where()}, end, weight);
}
Tensor Tensor::logsumexp(const IntList& dims, bool keepdim, Where where) const {
  return sinter::logsumexp({*this, where}, dims, keepdim);
}
Tensor Tensor::prod(int64_t dim, bool keepdim, Where where) const {
  return sinter::prod({*this, where}, dim, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending, Where where) const {
  return sinter::sort({*this, where}, dim, descending);
}
Tensor Tensor::argsort(int64_t dim, bool descending, Where where) const {
  return sinter::argsort({*this, where}, dim, descending);
}
std::tuple<Tensor, Tensor> Tensor::topk(Dim k, int64_t dim, bool largest, Where where) const {
  return sinter::topk({*this, where}, k, dim, largest);
}
Tensor Tensor::tril(int64_t diagonal, Where where) const {
  return sinter::tril({*this, where}, diagonal);
}
Tensor Tensor::triu(int64_t diagonal, Where where) const {
  return sinter::triu({*this, where}, diagonal);
}
Tensor Tensor::roll(const Shape& shifts, const IntList& dims, Where where) const {
  return sinter::roll({*this, where}, shifts, dims);
}
Tensor Tensor::unflatten(int64_t dim, const Shape& sizes, Where where) const {
  return sinter::unflatten({*this, where}, dim, sizes);
}
Tensor Tensor::movedim(int64_t source, int64_t destination, Where where) const {
  return sinter::movedim({*this, where}, source, destination);
}
Tensor Tensor::scatter(int64_t dim, const TensorArg& index, const TensorArg& source) const {
  return sinter::scatter({*this, index.where()}, dim, index, source);
}
Tensor Tensor::scatter_add(int64_t dim, const TensorArg& index, const TensorArg& source) const {
  return sinter::scatter_add({*this, index.where()}, dim, index, source);
}
Tensor Tensor::index_add(int64_t dim, const TensorArg& index, const TensorArg& source) const {
  return sinter::index_add({*this, index.where()}, dim, index, source);
}
bool Tensor::equal(const TensorArg& other) const {
  return sinter::equal({*this, other.where()}, other);
}
bool Tensor::allclose(const TensorArg& other, double rtol, double atol) const {
  return sinter::allclose({*this, other.where()}, other, rtol, atol);
}

}  // namespace sinter
