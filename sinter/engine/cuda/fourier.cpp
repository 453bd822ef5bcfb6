// Fourier transforms by cuFFT: dimensions that are transformed are moved behind the others, and back.
#include "sinter/ops/fourier.h"

#include <algorithm>
#include <span>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/cufft.h"

namespace sinter::eager {

namespace {

using runtime::CudaFft;
using runtime::CudaFftKind;

constexpr size_t kMostDims = 3;  // of one plan

// Row-major, at an address that the library takes; memory of its own where it is going to be `overwritten`.
Tensor packed(const Tensor& x, bool overwritten = false) {
  Tensor out = x.contiguous();
  const auto address = reinterpret_cast<uintptr_t>(data_of(out.impl()));
  const bool is_callers = out.impl().buffer == x.impl().buffer;
  if (is_callers && (overwritten || is_place(data_of(x.impl())) || address % uintptr_t(2 * item_size(x.dtype())) != 0))
    out = out.clone();
  refuse_place("cuFFT", data_of(out.impl()));
  return out;
}

void queue(const CudaFft& fft, const Tensor& x, const Tensor& y) {
  CudaScratch workspace(x.device(), size_t(runtime::cuda_fft_workspace(fft)));
  runtime::cuda_fft(fft, data_of(x.impl()), data_of(y.impl()), workspace.data());
}

// The order that brings `last` behind the others, in front of the pairs where there are any; and the way back.
IntList moved_last(std::span<const int64_t> last, int64_t elements, bool pairs) {
  IntList order;
  for (int64_t d = 0; d < elements; ++d)
    if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
  order.append(last);
  if (pairs) order.push_back(elements);
  return order;
}
IntList inverse_of(const IntList& order) {
  IntList inverse(order);
  for (size_t i = 0; i < order.size(); ++i) inverse[size_t(order[i])] = int64_t(i);
  return inverse;
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// x[..., 2] over all of `dims`.
Tensor complex_transform(Tensor x, std::span<const int64_t> dims, bool forward) {
  for (; !dims.empty(); dims = dims.subspan(std::min(dims.size(), kMostDims))) {
    const auto group = dims.first(std::min(dims.size(), kMostDims));
    const IntList order = moved_last(group, x.dim() - 1, true);
    Tensor from = packed(x.permute(order)), to = empty(from.sizes(), from.options());
    CudaFft fft{
        .device = x.device().index(), .dtype = x.dtype(), .kind = CudaFftKind::kComplex, .forward = forward, .n = {}};
    for (int64_t d : group) fft.n.push_back(x.impl().sizes[size_t(d)]);
    fft.batch = x.impl().numel / 2 / product(fft.n);
    queue(fft, from, to);
    x = to.permute(inverse_of(order));
  }
  return x;
}

// Along one dimension of a real tensor: its first half.
Tensor real_transform(const Tensor& x, int64_t dim) {
  const int64_t n = x.impl().sizes[size_t(dim)], last[] = {dim};
  const IntList order = moved_last(last, x.dim(), false);
  Tensor from = packed(x.permute(order));
  Shape shape = from.sizes();
  shape.back() = n / 2 + 1;
  shape.push_back(2);
  Tensor to = empty(shape, from.options());
  queue({.device = x.device().index(),
         .dtype = x.dtype(),
         .kind = CudaFftKind::kRealToComplex,
         .n = {n},
         .batch = x.impl().numel / n},
        from, to);
  return to.permute(inverse_of(moved_last(last, x.dim(), true)));
}

// Back, to n elements. The library is not told what it does with imaginary parts that a real tensor's transform has not.
Tensor real_from_half(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t last[] = {dim}, elements = x.dim() - 1;
  const IntList order = moved_last(last, elements, true);
  Tensor from = packed(x.permute(order), /*overwritten=*/true);
  Tensor imaginary = from.select(-1, 1);
  imaginary.narrow(-1, 0, 1).zero_();
  if (n % 2 == 0) imaginary.narrow(-1, n / 2, 1).zero_();
  Shape shape = from.sizes();
  shape.pop_back();
  shape.back() = n;
  Tensor to = empty(shape, from.options());
  queue({.device = x.device().index(),
         .dtype = x.dtype(),
         .kind = CudaFftKind::kComplexToReal,
         .forward = false,
         .n = {n},
         .batch = to.impl().numel / n},
        from, to);
  return to.permute(inverse_of(moved_last(last, elements, false)));
}

std::span<const int64_t> without_last(const IntList& dims) { return {dims.data(), dims.size() - 1}; }

Tensor run(const ComplexToComplexAttrs& a, const Tensor& x) { return complex_transform(x, a.dims, a.forward); }
Tensor run(const RealToComplexAttrs& a, const Tensor& x) {
  if (!a.onesided) return complex_transform(stack({x, zeros_like(x)}, -1), a.dims, true);
  return complex_transform(real_transform(x, a.dims.back()), without_last(a.dims), true);
}
Tensor run(const ComplexToRealAttrs& a, const Tensor& x) {
  return real_from_half(complex_transform(x, without_last(a.dims), false), a.dims.back(), a.last_size);
}

// The product of the sizes that are transformed, of the side that has all of them.
double count_of(const IntList& dims, const IntList& sizes) {
  double n = 1;
  for (int64_t d : dims) n *= double(sizes[size_t(d)]);
  return n;
}

template <class A>
bool transform(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
               TensorList& outputs) {
  auto types = operand_types(inputs);
  op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
  const Tensor x = inputs[0].tensor();
  if (!runtime::cufft_problem().empty() || x.impl().numel == 0) return false;
  auto& a = attrs.as<A>();
  Tensor y = run(a, x).contiguous();
  constexpr bool to_real = std::is_same_v<A, ComplexToRealAttrs>;
  const double factor = fourier_factor(a.norm, count_of(a.dims, (to_real ? y : x).impl().sizes));
  if (factor != 1) y.mul_(factor);
  outputs = {y};
  return true;
}

const OpKernel kernels[] = {
    {.op = "_fft_c2c", .run = transform<ComplexToComplexAttrs>, .name = "fft"},
    {.op = "_fft_r2c", .run = transform<RealToComplexAttrs>, .name = "fft"},
    {.op = "_fft_c2r", .run = transform<ComplexToRealAttrs>, .name = "fft"},
};

}  // namespace

std::span<const OpKernel> fourier_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
