// Convolutions, their gradients and pools through the kernels of runtime/cpu/conv.
#include "sinter/engine/cpu/convolution.h"

#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/runtime/cpu/conv/pool.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::eager {

namespace {

// The last one to three of `values`, behind what stands for no dimension.
void set_spatial(int64_t* to, std::span<const int64_t> values) {
  std::copy(values.begin(), values.end(), to + 3 - int64_t(values.size()));
}
std::span<const int64_t> spatial(const IntList& sizes) { return std::span<const int64_t>(sizes).subspan(2); }

Tensor result_of(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  if (given) return *given;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  return empty(result.shape, TensorOptions(result.dtype));
}

// A pool over the last dimensions of x; the ones before are planes.
runtime::ConvShape pool_shape(const IntList& x, const IntList& out, const IntList& kernel, const IntList& stride,
                              const IntList& padding) {
  runtime::ConvShape s;
  size_t lead = x.size() - kernel.size();
  for (size_t d = 0; d < lead; ++d) s.images *= x[d];
  set_spatial(s.in, std::span<const int64_t>(x).subspan(lead));
  set_spatial(s.out, std::span<const int64_t>(out).subspan(lead));
  set_spatial(s.kernel, kernel);
  set_spatial(s.stride, stride);
  set_spatial(s.padding, padding);
  return s;
}

// Up to three dimensions, of a type that has kernels.
std::optional<runtime::GemmType> pool_type(const TensorArg& x, const IntList& kernel) {
  if (kernel.size() > 3) return {};
  return gemm_type(x.dtype());
}

runtime::ConvShape max_pool_shape(const Tensor& x, const Tensor& out, const MaxPoolAttrs& a) {
  runtime::ConvShape s = pool_shape(x.impl().sizes, out.impl().sizes, a.kernel, a.stride, a.padding);
  set_spatial(s.dilation, a.dilation);
  return s;
}

}  // namespace

runtime::ConvShape conv_shape(const ConvolutionAttrs& a, const IntList& x, const IntList& weight, const IntList& out) {
  runtime::ConvShape s;
  s.images = x[0];
  s.groups = a.groups;
  s.filters = weight[0] / a.groups;
  s.channels = weight[1];
  set_spatial(s.in, spatial(a.transposed ? out : x));
  set_spatial(s.out, spatial(a.transposed ? x : out));
  set_spatial(s.kernel, spatial(weight));
  set_spatial(s.stride, a.stride);
  set_spatial(s.padding, a.padding);
  set_spatial(s.dilation, a.dilation);
  return s;
}

runtime::ConvOperand conv_operand(const TensorImpl& t) {
  runtime::ConvOperand out{nullptr, {t.strides[0], t.strides[1], 0, 0, 0}, *gemm_type(t.dtype)};
  set_spatial(out.strides + 2, spatial(t.strides));
  return out;
}

bool is_taps_first(const IntList& sizes, const IntList& strides) {
  IntList moved, steps;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d == 1) continue;
    moved.push_back(sizes[d]);
    steps.push_back(strides[d]);
  }
  moved.push_back(sizes[1]);
  steps.push_back(strides[1]);
  return has_format(moved, steps, MemoryFormat::kContiguous);
}

void run_convolution(const ConvolutionAttrs& attrs, const runtime::ConvShape& shape, const runtime::ConvOperand& x,
                     const void* weight, runtime::GemmType weight_type, bool taps_first, void* out, runtime::GemmType out_type,
                     const runtime::Epilogue* epilogue) {
  runtime::ConvOptions options;
  options.epilogue = epilogue;
  options.taps_first = taps_first;
  auto* run = attrs.transposed ? runtime::convolution_transposed : runtime::convolution;
  run(shape, x, weight, weight_type, out, out_type, options);
}

namespace {

bool convolution(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                          TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  if (!type || inputs[1].tensor().impl().numel == 0) return false;
  auto& a = attrs.as<ConvolutionAttrs>();
  const Tensor& x = inputs[0].tensor();
  Tensor w = inputs[1].tensor(), out = result_of(op, inputs, attrs, given);
  const bool taps_first = !w.is_contiguous() && is_taps_first(w.impl().sizes, w.impl().strides);
  if (!taps_first) w = w.contiguous();
  if (out.impl().numel) {
    auto operand = conv_operand(x.impl());
    operand.data = data_of(x.impl());
    run_convolution(a, conv_shape(a, x.impl().sizes, w.impl().sizes, out.impl().sizes), operand, data_of(w.impl()),
                    *type, taps_first, data_of(out.impl()), *type);
  }
  outputs = {std::move(out)};
  return true;
}

bool weight_grad(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                          TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  auto &x = inputs[0].tensor().impl(), &grad = inputs[1].tensor().impl();
  if (!type || x.numel == 0 || grad.numel == 0) return false;
  auto& a = attrs.as<ConvolutionWeightGradAttrs>();
  Tensor out = result_of(op, inputs, attrs, given);
  ConvolutionAttrs forward{a.stride, a.padding, a.dilation, false, {}, a.groups};
  auto xs = conv_operand(x), gs = conv_operand(grad);
  xs.data = data_of(x);
  gs.data = data_of(grad);
  if (out.impl().numel)
    runtime::convolution_weight_grad(conv_shape(forward, x.sizes, out.impl().sizes, grad.sizes), xs, gs,
                                     data_of(out.impl()), *type, {.taps_first = !out.is_contiguous()});
  outputs = {std::move(out)};
  return true;
}

bool max_pool(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                       TensorList& outputs) {
  auto& a = attrs.as<MaxPoolAttrs>();
  auto type = pool_type(inputs[0], a.kernel);
  if (!type) return false;
  Tensor x = inputs[0].tensor().contiguous(), out = result_of(op, inputs, attrs, given);
  if (out.impl().numel) runtime::max_pool(max_pool_shape(x, out, a), data_of(x.impl()), *type, data_of(out.impl()));
  outputs = {std::move(out)};
  return true;
}

bool max_pool_indices(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                               TensorList& outputs) {
  auto& a = attrs.as<MaxPoolAttrs>();
  auto type = pool_type(inputs[0], a.kernel);
  if (!type) return false;
  Tensor x = inputs[0].tensor().contiguous(), out = result_of(op, inputs, attrs, given);
  if (out.impl().numel)
    runtime::max_pool_indices(max_pool_shape(x, out, a), data_of(x.impl()), *type,
                              reinterpret_cast<int64_t*>(data_of(out.impl())));
  outputs = {std::move(out)};
  return true;
}

bool max_pool_grad(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                            TensorList& outputs) {
  auto& a = attrs.as<MaxPoolGradAttrs>();
  auto type = pool_type(inputs[0], a.reach);
  if (!type) return false;
  Tensor grad = inputs[0].tensor().contiguous(), indices = inputs[1].tensor().contiguous(),
         out = result_of(op, inputs, attrs, given);
  if (out.impl().numel)
    runtime::max_pool_grad(pool_shape(out.impl().sizes, grad.impl().sizes, a.reach, a.stride, a.padding),
                           data_of(grad.impl()), reinterpret_cast<const int64_t*>(data_of(indices.impl())), *type,
                           data_of(out.impl()));
  outputs = {std::move(out)};
  return true;
}

bool window_sum(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                         TensorList& outputs) {
  auto& a = attrs.as<WindowSumAttrs>();
  auto type = pool_type(inputs[0], a.kernel);
  if (!type) return false;
  Tensor x = inputs[0].tensor().contiguous(), out = result_of(op, inputs, attrs, given);
  const IntList &from = x.impl().sizes, &to = out.impl().sizes;
  if (out.impl().numel) {
    auto shape = a.transposed ? pool_shape(to, from, a.kernel, a.stride, a.padding)
                              : pool_shape(from, to, a.kernel, a.stride, a.padding);
    auto* run = a.transposed ? runtime::window_sum_transposed : runtime::window_sum;
    run(shape, data_of(x.impl()), *type, data_of(out.impl()), runtime::best_cpu_isa());
  }
  outputs = {std::move(out)};
  return true;
}

const OpKernel kernels[] = {
    {.op = "convolution", .run = convolution, .name = "convolution"},
    {.op = "convolution_weight_grad", .run = weight_grad, .name = "convolution"},
    {.op = "max_pool", .run = max_pool, .name = "pool"},
    {.op = "max_pool_indices", .run = max_pool_indices, .name = "pool"},
    {.op = "max_pool_grad", .run = max_pool_grad, .name = "pool"},
    {.op = "window_sum", .run = window_sum, .name = "pool"},
};

}  // namespace

std::span<const OpKernel> convolution_kernels_of_cpu() { return kernels; }

}  // namespace sinter::eager
