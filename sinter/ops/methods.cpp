// Methods of Tensor that are no function of their name with the tensor in front.
#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

ItemIndex::ItemIndex(const Tensor& i, Where where) : value(i.item<int64_t>(where)), where(where) {}

void Tensor::operator=(const TensorArg& value) && { copy_(value); }

const Tensor& Tensor::operator+=(const TensorArg& b) const { return add_(b); }
const Tensor& Tensor::operator-=(const TensorArg& b) const { return sub_(b); }
const Tensor& Tensor::operator*=(const TensorArg& b) const { return mul_(b); }
const Tensor& Tensor::operator/=(const TensorArg& b) const { return div_(b); }
const Tensor& Tensor::operator&=(const TensorArg& b) const { return bitwise_and_(b); }
const Tensor& Tensor::operator|=(const TensorArg& b) const { return bitwise_or_(b); }
const Tensor& Tensor::operator^=(const TensorArg& b) const { return bitwise_xor_(b); }

Tensor Tensor::where(const TensorArg& condition, const TensorArg& other) const {
  return sinter::where(condition, {*this, condition.where()}, other);
}

// --- new tensors like this one

Tensor Tensor::new_empty(const Shape& size, const TensorOptions& options, Where where) const {
  return empty(size, options.over(this->options(where)), MemoryFormat::kContiguous, where);
}
Tensor Tensor::new_empty_strided(const Shape& size, const IntList& strides, const TensorOptions& options, Where where) const {
  return empty_strided(size, strides, options.over(this->options(where)), where);
}
Tensor Tensor::new_zeros(const Shape& size, const TensorOptions& options, Where where) const {
  return zeros(size, options.over(this->options(where)), where);
}
Tensor Tensor::new_ones(const Shape& size, const TensorOptions& options, Where where) const {
  return ones(size, options.over(this->options(where)), where);
}
Tensor Tensor::new_full(const Shape& size, const TensorArg& value, const TensorOptions& options) const {
  return full(size, value, options.over(this->options(value.where())));
}
Tensor Tensor::new_tensor(const Tensor& values, const TensorOptions& options, Where where) const {
  UserPosition here(where);
  TensorOptions wanted = options.over(this->options(where));
  Tensor out = values.detach().to(wanted, /*non_blocking=*/false, /*copy=*/true, where);
  return wanted.requires_grad_ ? out.requires_grad_(true, where) : out;
}

// --- in place

const Tensor& Tensor::fill_diagonal_(const TensorArg& value, bool wrap) const {
  UserPosition here(value.where());
  check(dim() >= 2, "fill_diagonal_: a tensor of shape {} has no diagonal: it needs two dimensions", sizes());
  if (dim() > 2) {
    Tensor along = *this;
    for (int64_t d = 1; d < dim(); ++d) {
      check(size(d) == size(0), "fill_diagonal_: the sizes {} of more than two dimensions must all be equal", sizes());
      along = along.diagonal(0, 0, -1);
    }
    along.fill_(value);
    return *this;
  }
  diagonal().fill_(value);
  if (!wrap) return *this;
  int64_t rows = size(0).to_int(value.where()), columns = size(1).to_int(value.where());
  for (int64_t top = columns + 1; columns > 0 && top < rows; top += columns + 1)
    slice(0, top).diagonal().fill_(value);
  return *this;
}

// --- other contents, or another shape, for the tensor itself

void Tensor::set_data(const Tensor& contents, Where where) const {
  UserPosition here(where);
  if (auto* effects = HostEffects::current()) effects->refuse("a conversion or assignment of parameters");
  check(!is_traced() && !contents.is_traced(), "set_data: a compiled function cannot change what a tensor is");
  TensorImpl& to = impl();
  const TensorImpl& from = contents.impl();
  to.dtype = from.dtype;
  to.device = from.device;
  to.contiguous = from.contiguous;
  to.offset = from.offset;
  to.numel = from.numel;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.buffer = from.buffer;
  to.base = nullptr;
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
}

const Tensor& store_out(const char* function, const Tensor& out, const Tensor& result) {
  if (out.numel().same_as(0) && !result.numel().same_as(0)) {
    check(!result.is_traced(), "{}: a compiled function cannot change what a tensor is: write out = ... in place of an empty out",
          function);
    check(out.dtype() == result.dtype(), "{}: the result is {}, out is {}", function, result.dtype(), out.dtype());
    out.set_data(result.detach());
    return out;
  }
  check(out.sizes().same_as(result.sizes()), "{}: the result is {}, out is {}: make out with these sizes, or empty", function,
        result.sizes(), out.sizes());
  return out.copy_(result);
}

const Tensor& Tensor::take_shape(const char* function, const Tensor& view) const {
  check(!Tracer::current() && !is_traced(), "{}: a compiled function cannot change the shape of a tensor itself: write "
        "x = x.view(...), x = x.unsqueeze(dim) and the like", function);
  check(!requires_grad(), "{}: a tensor that takes part in gradients cannot change its shape itself: write x = x.view(...), "
        "x = x.unsqueeze(dim) and the like", function);
  TensorImpl& body = impl();
  const TensorImpl& like = view.impl();
  body.sizes = like.sizes;
  body.strides = like.strides;
  body.contiguous = like.contiguous;
  body.numel = like.numel;
  body.marks = nullptr;
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
  return *this;
}

const Tensor& Tensor::squeeze_(Where where) const {
  UserPosition here(where);
  return take_shape("squeeze_", sinter::squeeze({*this, where}));
}
const Tensor& Tensor::squeeze_(int64_t dim, Where where) const {
  UserPosition here(where);
  return take_shape("squeeze_", sinter::squeeze({*this, where}, dim));
}
const Tensor& Tensor::unsqueeze_(int64_t dim, Where where) const {
  UserPosition here(where);
  return take_shape("unsqueeze_", sinter::unsqueeze({*this, where}, dim));
}
const Tensor& Tensor::transpose_(int64_t a, int64_t b, Where where) const {
  UserPosition here(where);
  return take_shape("transpose_", sinter::transpose({*this, where}, a, b));
}
const Tensor& Tensor::t_(Where where) const {
  UserPosition here(where);
  return take_shape("t_", sinter::t({*this, where}));
}
const Tensor& Tensor::resize_(const Shape& shape, Where where) const {
  UserPosition here(where);
  check(!Tracer::current() && !is_traced(), "resize_: a compiled function cannot change the size of a tensor itself: write x = "
        "empty(shape)");
  IntList sizes = IntList(shape.vec());
  int64_t room = int64_t(impl().buffer->bytes()) / element_size() - impl().offset, numel = checked_numel("resize_", sizes);
  check(numel <= room, "resize_: {} elements do not fit the memory of {}, which is not made larger: write x = empty({})", numel,
        room, shape);
  return take_shape("resize_", make_view(*this, sizes, contiguous_strides(sizes), impl().offset));
}

}  // namespace sinter
