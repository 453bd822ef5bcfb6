#include "sinter/ops/norm.h"

#include <cmath>

#include "sinter/ops/autocast.h"
#include "sinter/ops/batch_norm.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/layer_norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/rerun.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// The operand, checked to be floating.
const Tensor& floating_operand(const char* op, const TensorArg& arg) {
  const Tensor& x = tensor_operand(op, arg);
  check(x.is_floating_point(), "{}: expected a floating dtype, got {}", op, x.dtype());
  return x;
}

// The last dimensions, checked to be those of normalized_shape, weight and bias.
IntList normalized_dims(const char* op, const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias) {
  Shape sizes = x.sizes();
  bool fit = shape.rank() >= 1 && shape.rank() <= sizes.rank();
  IntList dims;
  for (int64_t d = 0; fit && d < shape.rank(); ++d) {
    dims.push_back(sizes.rank() - shape.rank() + d);
    fit = sizes[size_t(dims.back())] == shape[size_t(d)];
  }
  check(fit, "{}: the input {} does not end in the normalized shape {}", op, sizes, shape);
  for (auto* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    Shape have = t->sizes();
    bool same = have.rank() == shape.rank();
    for (size_t d = 0; same && d < shape.size(); ++d) same = have[d] == shape[d];
    check(same, "{}: expected {} of shape {}, got {}", op, t == &weight ? "a weight" : "a bias", shape, have);
  }
  return dims;
}

// Per-channel values as a tensor that broadcasts over [batch, channels, …].
Tensor per_channel(const Tensor& t, int64_t rank) {
  Shape shape(size_t(rank - 1), 1);
  shape[0] = t.size(0);
  return t.view(shape);
}

Tensor scaled_and_shifted(Tensor y, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) y = y * widened(weight);
  if (bias.defined()) y = y + widened(bias);
  return y;
}

struct Moments {
  Tensor mean, centered, var;
};
Moments moments(const Tensor& wide, const IntList& dims) {
  Tensor mean = wide.mean(dims, true), centered = wide - mean;
  return {mean, centered, (centered * centered).mean(dims, true)};
}

void check_channels(const char* op, const Tensor& x, const char* what, const Tensor& t) {
  if (t.defined())
    check(t.dim() == 1 && t.size(0) == x.size(1), "{}: expected {} of shape [{}] for the input {}, got {}", op, what,
          x.size(1), x.sizes(), t.sizes());
}

// running = (1 - momentum) * running + momentum * seen.
void mix_in(const Tensor& running, const Tensor& seen, double momentum) {
  if (running.defined() && !is_rerun) running.copy_(running.detach() * (1 - momentum) + seen.detach() * momentum);
}

// The batch's statistics over `dims`, mixed into the running ones: the variance there is the unbiased one.
void update_running(const Tensor& mean, const Tensor& var, Dim count, const Tensor& running_mean,
                    const Tensor& running_var, double momentum) {
  if (!running_mean.defined() && !running_var.defined()) return;
  mix_in(running_mean, mean.flatten(), momentum);
  mix_in(running_var, var.flatten() * count / (count - 1), momentum);
}

TensorTriple batch_norm_triple(const char* op, const TensorArg& x_arg, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight, const Tensor& bias, bool training,
                               double momentum, double eps) {
  UserPosition here(x_arg.where(), op);
  const Tensor& x = floating_operand(op, x_arg);
  // An empty batch alone need not tell of channels, as in PyTorch.
  if (x.dim() == 1 && x.size(0) == 0)
    return {x.clone(), zeros({0}, widened(x).options()), zeros({0}, widened(x).options())};
  check(x.dim() >= 2, "{}: expected an input [batch, channels, …], got {}", op, x.sizes());
  check_channels(op, x, "a weight", weight);
  check_channels(op, x, "a bias", bias);
  check_channels(op, x, "a running mean", running_mean);
  check_channels(op, x, "a running variance", running_var);
  if (training) {
    Dim count = x.numel() / x.size(1);
    check(count > 1, "{}: training needs more than one value per channel, got an input {}", op, x.sizes());
    auto [y, mean, var] = batch_norm_training(x_arg, weight, bias, eps);
    update_running(mean, var, count, running_mean, running_var, momentum);
    return {y, mean, rsqrt(var + eps)};
  }
  check(running_mean.defined() && running_var.defined(), "{}: running_mean and running_var are needed unless training", op);
  int64_t rank = x.dim();
  Tensor wide = widened(x);
  Tensor y = (wide - per_channel(widened(running_mean), rank)) * per_channel(rsqrt(widened(running_var) + eps), rank);
  y = scaled_and_shifted(y, weight.defined() ? per_channel(weight, rank) : weight,
                         bias.defined() ? per_channel(bias, rank) : bias);
  Tensor none = zeros({0}, wide.options());
  return {narrowed(y, x.dtype()), none, none};
}

}  // namespace

TensorTriple native_layer_norm(const TensorArg& x_arg, const Shape& normalized_shape, const Tensor& weight,
                               const Tensor& bias, double eps) {
  UserPosition here(x_arg.where());
  const Tensor x = in_f32_on_gpu(floating_operand("layer_norm", x_arg));
  normalized_dims("layer_norm", x, normalized_shape, weight, bias);
  return layer_norm_of_rows({x, x_arg.where()}, normalized_shape.rank(), weight, bias, eps);
}

Tensor layer_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  return std::get<0>(native_layer_norm(x, normalized_shape, weight, bias, eps));
}

TensorTriple native_layer_norm_backward(const TensorArg& grad_arg, const TensorArg& x_arg,
                                        const Shape& normalized_shape, const Tensor& mean, const Tensor& rstd,
                                        const Tensor& weight, const Tensor& bias,
                                        const std::array<bool, 3>& output_mask) {
  constexpr auto op = "native_layer_norm_backward";
  UserPosition here(grad_arg.where());
  const Tensor &grad = floating_operand(op, grad_arg), &x = floating_operand(op, x_arg);
  normalized_dims(op, x, normalized_shape, weight, bias);
  auto [dx, dweight, dbias] =
      layer_norm_gradients(grad, x, normalized_shape.rank(), mean, rstd, weight,
                           {output_mask[0], output_mask[1] && weight.defined(), output_mask[2] && bias.defined()});
  if (dx.defined()) dx = narrowed(dx, x.dtype());
  if (dweight.defined()) dweight = narrowed(dweight, weight.dtype());
  if (dbias.defined()) dbias = narrowed(dbias, bias.dtype());
  return {dx, dweight, dbias};
}

Tensor rms_norm(const TensorArg& x_arg, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  UserPosition here(x_arg.where());
  const Tensor& x = floating_operand("rms_norm", x_arg);
  normalized_dims("rms_norm", x, normalized_shape, weight, {});
  DType d = x.dtype();
  double floor = eps ? *eps : std::ldexp(1.0, d == kFloat64 ? -52 : d == kFloat32 ? -23 : d == kFloat16 ? -10 : -7);
  return rms_norm_of_rows(x_arg, normalized_shape.rank(), weight, floor);
}

Tensor batch_norm(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  return std::get<0>(
      batch_norm_triple("batch_norm", x, running_mean, running_var, weight, bias, training, momentum, eps));
}

TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var, bool training,
                                      double momentum, double eps) {
  return batch_norm_triple("_native_batch_norm_legit", x, running_mean, running_var, weight, bias, training, momentum,
                           eps);
}
TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias, bool training,
                                      double momentum, double eps) {
  return batch_norm_triple("_native_batch_norm_legit", x, {}, {}, weight, bias, training, momentum, eps);
}
TensorTriple _native_batch_norm_legit_no_training(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                                  const Tensor& running_mean, const Tensor& running_var,
                                                  double momentum, double eps) {
  return batch_norm_triple("_native_batch_norm_legit_no_training", x, running_mean, running_var, weight, bias, false,
                           momentum, eps);
}

TensorTriple native_group_norm(const TensorArg& x_arg, const Tensor& weight, const Tensor& bias, Dim batch,
                               Dim channels, Dim plane, int64_t groups, double eps) {
  UserPosition here(x_arg.where());
  const Tensor x = in_f32_on_gpu(floating_operand("group_norm", x_arg));
  check(x.dim() >= 2, "group_norm: expected an input [batch, channels, …], got {}", x.sizes());
  check(groups >= 1 && channels % groups == 0,
        "group_norm: {} channels of the input {} are not divisible into {} groups", channels, x.sizes(), groups);
  check_channels("group_norm", x, "a weight", weight);
  check_channels("group_norm", x, "a bias", bias);
  Moments m = moments(widened(x).reshape({batch, groups, channels / groups * plane}), {2});
  Tensor rstd = rsqrt(m.var + eps), y = (m.centered * rstd).view(x.sizes());
  y = scaled_and_shifted(y, weight.defined() ? per_channel(weight, x.dim()) : weight,
                         bias.defined() ? per_channel(bias, x.dim()) : bias);
  return {narrowed(y, x.dtype()), m.mean.squeeze(2), rstd.squeeze(2)};
}

Tensor group_norm(const TensorArg& x_arg, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  UserPosition here(x_arg.where());
  const Tensor& x = floating_operand("group_norm", x_arg);
  check(x.dim() >= 2, "group_norm: expected an input [batch, channels, …], got {}", x.sizes());
  Shape sizes = x.sizes();
  return std::get<0>(native_group_norm(x_arg, weight, bias, sizes[0], sizes[1],
                                       Shape(sizes.begin() + 2, sizes.end()).numel(), num_groups, eps));
}

TensorTriple native_group_norm_backward(const TensorArg& grad_arg, const TensorArg& x_arg, const Tensor& mean,
                                        const Tensor& rstd, const Tensor& weight, Dim batch, Dim channels, Dim plane,
                                        int64_t groups, const std::array<bool, 3>& output_mask) {
  constexpr auto op = "native_group_norm_backward";
  UserPosition here(grad_arg.where());
  const Tensor &grad = floating_operand(op, grad_arg), &x = floating_operand(op, x_arg);
  check(groups >= 1 && channels % groups == 0, "{}: {} channels are not divisible into {} groups", op, channels,
        groups);
  Shape split{batch, groups, channels / groups, plane};
  auto statistic = [&](const Tensor& t) { return t.reshape({batch, groups, 1, 1}); };
  Tensor g = widened(grad).reshape(split), scale = statistic(rstd);
  Tensor normal = (widened(x).reshape(split) - statistic(mean)) * scale, dx, dweight, dbias;
  if (output_mask[0]) {
    Tensor scaled = weight.defined() ? g * widened(weight).view({groups, channels / groups, 1}) : g;
    Tensor centered = scaled - scaled.mean({2, 3}, true) - normal * (scaled * normal).mean({2, 3}, true);
    dx = narrowed((centered * scale).view(x.sizes()), x.dtype());
  }
  DType dtype = weight.defined() ? weight.dtype() : x.dtype();
  if (output_mask[1]) dweight = narrowed((g * normal).sum({0, 3}).view({channels}), dtype);
  if (output_mask[2]) dbias = narrowed(g.sum({0, 3}).view({channels}), dtype);
  return {dx, dweight, dbias};
}

Tensor instance_norm(const TensorArg& x_arg, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  UserPosition here(x_arg.where());
  const Tensor& x = floating_operand("instance_norm", x_arg);
  check(x.dim() >= 3, "instance_norm: expected an input [batch, channels, …] with spatial dimensions, got {}",
        x.sizes());
  if (!use_input_stats) return batch_norm(x_arg, running_mean, running_var, weight, bias, false, momentum, eps);
  check_channels("instance_norm", x, "a weight", weight);
  check_channels("instance_norm", x, "a bias", bias);
  IntList dims;
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  Dim count = x.numel() / max(x.size(0) * x.size(1), 1);
  check(!count.same_as(1), "instance_norm: one value a channel has no variance, in an input {}", x.sizes());
  Moments m = moments(widened(x), dims);
  // The running statistics are the mean over the batch of each sample's own.
  update_running(m.mean.mean({0}), m.var.mean({0}), count, running_mean, running_var, momentum);
  Tensor y =
      scaled_and_shifted(m.centered * rsqrt(m.var + eps), weight.defined() ? per_channel(weight, x.dim()) : weight,
                         bias.defined() ? per_channel(bias, x.dim()) : bias);
  return narrowed(y, x.dtype());
}

Tensor local_response_norm(const TensorArg& x_arg, int64_t size, double alpha, double beta, double k) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("local_response_norm", x_arg);
  check(x.is_floating_point() || x.dtype() == kInt64, "local_response_norm: expected a floating dtype or i64, got {}",
        x.dtype());
  check(x.dim() >= 3, "local_response_norm: expected an input [batch, channels, …] with spatial dimensions, got {}",
        x.sizes());
  check(size >= 1, "local_response_norm: size {} must be positive", size);
  Tensor wide = widened(x), squares = (wide * wide).flatten(2).transpose(1, 2);
  Tensor padded = constant_pad_nd(squares, {size / 2, (size - 1) / 2});
  Tensor mean = avg_pool1d(padded, size, 1).transpose(1, 2).reshape(x.sizes());
  Tensor y = wide / pow(mean * alpha + k, beta);
  return x.is_floating_point() ? narrowed(y, x.dtype()) : y;
}

Tensor normalize(const TensorArg& x_arg, double p, int64_t dim, double eps) {
  UserPosition here(x_arg.where());
  const Tensor& x = floating_operand("normalize", x_arg);
  Tensor wide = widened(x), length;
  // The bound comes before the root: a row of zeros then has a gradient.
  if (p == 2)
    length = sqrt(clamp_min((wide * wide).sum({dim}, true), eps * eps));
  else if (p == 1)
    length = clamp_min(abs(wide).sum({dim}, true), eps);
  else if (std::isinf(p))
    length = clamp_min(abs(wide).amax({dim}, true), eps);
  else
    length = pow(clamp_min(pow(abs(wide), p).sum({dim}, true), std::pow(eps, p)), 1 / p);
  return narrowed(wide / length, x.dtype());
}

}  // namespace sinter
