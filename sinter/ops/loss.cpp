#include "sinter/ops/norm.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "sinter/ops/autocast.h"
#include "sinter/ops/checked.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/loss_parts.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

Tensor reduced_loss(const char* op, const Tensor& loss, Reduction reduction) {
  check(reduction != Reduction::kBatchMean, "{}: kBatchMean is for kl_div", op);
  return reduction == Reduction::kNone ? loss : reduction == Reduction::kSum ? loss.sum() : loss.mean();
}

LossOperands loss_operands(const char* op, const TensorArg& x, const TensorArg& target) {
  tensor_operand(op, x), tensor_operand(op, target);
  const TensorArg x32 = in_f32(x), target32 = in_f32(target);
  const Tensor &a = x32.tensor(), &b = target32.tensor();
  check(a.is_floating_point(), "{}: expected a floating input, got {}", op, a.dtype());
  return {widened(a), widened(b), b.is_floating_point() ? promote_types(a.dtype(), b.dtype()) : a.dtype()};
}

LossOperands numeric_operands(const char* op, const TensorArg& x, const TensorArg& target) {
  const Tensor &a = tensor_operand(op, x), &b = tensor_operand(op, target);
  if (a.is_floating_point() && b.is_floating_point()) return loss_operands(op, x, target);
  const DType both = promote_types(a.dtype(), b.dtype()), dtype = is_floating(both) ? both : get_default_dtype();
  return {widened(a.to(dtype)), widened(b.to(dtype)), dtype};
}

namespace {

// What class-index losses need of their target: the classes with ignored ones made valid, and a weight per element.
struct Classes {
  Tensor index, weight;  // weight: of the target's class, 0 where ignored
};
Classes classes(const char* op, const Tensor& input, const Tensor& target, const Tensor& class_weight,
                int64_t ignore_index, Fault fault) {
  check(is_integral(target.dtype()), "{}: expected integer classes as target, got {}", op, target.dtype());
  int64_t class_dim = input.dim() == 1 ? 0 : 1;
  Shape expected = removed(input.sizes(), class_dim), got = target.sizes();
  bool same = got.rank() == expected.rank();
  for (size_t d = 0; same && d < got.size(); ++d) same = got[d] == expected[d];
  check(same, "{}: for an input {} the target must have shape {}, got {}", op, input.sizes(), expected, got);
  if (class_weight.defined())
    check(class_weight.dim() == 1 && class_weight.size(0) == input.size(class_dim),
          "{}: expected a weight of shape [{}], got {}", op, input.size(class_dim), class_weight.sizes());
  Tensor kept = target != ignore_index, index = target.to(kInt64);
  // Indices count from the end when negative; classes do not.
  if (Tracer::current() || !target.device().is_cpu()) {
    index = checked_index(index, (index >= 0) & (index < input.size(class_dim)), fault);
  } else {
    for (int64_t t : target.to_vector<int64_t>())
      check(t == ignore_index || (t >= 0 && t < input.size(class_dim)), "{}: the target {} is not among the {} classes",
            op, t, input.size(class_dim));
  }
  index = where(kept, index, 0);
  if (!class_weight.defined()) return {index, kept.to(input.dtype())};
  Tensor weights = index_select(class_weight.to(input.dtype()), 0, index.flatten()).view(index.sizes());
  return {index, where(kept, weights, 0)};
}

// nll_loss of f32 or f64 log-probabilities.
Tensor negative_likelihood(const Tensor& log_p, const Classes& c, Reduction reduction) {
  int64_t class_dim = log_p.dim() == 1 ? 0 : 1;
  Tensor picked = gather(log_p, class_dim, c.index.unsqueeze(class_dim)).squeeze(class_dim);
  // An ignored element's probability may be 0: its product with a weight of 0 would be NaN.
  Tensor loss = where(c.weight == 0, 0, -picked * c.weight);
  if (reduction == Reduction::kMean) return loss.sum() / c.weight.sum();
  return reduced_loss("nll_loss", loss, reduction);
}

void check_class_dim(const char* op, const Tensor& input) {
  check(input.is_floating_point() && input.dim() >= 1,
        "{}: expected a floating input with a class dimension, got {} {}", op, input.dtype(), input.sizes());
}

}  // namespace

Tensor mse_loss(const TensorArg& x, const TensorArg& target, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("mse_loss", x, target);
  Tensor d = p.x - p.target;
  return narrowed(reduced_loss("mse_loss", d * d, reduction), p.dtype);
}

Tensor l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("l1_loss", x, target);
  return narrowed(reduced_loss("l1_loss", abs(p.x - p.target), reduction), p.dtype);
}

Tensor smooth_l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction, double beta) {
  UserPosition here(x.where());
  check(beta >= 0, "smooth_l1_loss: beta {} must not be negative", beta);
  if (beta == 0) return l1_loss(x, target, reduction);
  auto p = loss_operands("smooth_l1_loss", x, target);
  Tensor d = abs(p.x - p.target);
  return narrowed(reduced_loss("smooth_l1_loss", where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction), p.dtype);
}

Tensor huber_loss(const TensorArg& x, const TensorArg& target, Reduction reduction, double delta) {
  UserPosition here(x.where());
  check(delta > 0, "huber_loss: delta {} must be positive", delta);
  auto p = loss_operands("huber_loss", x, target);
  Tensor d = abs(p.x - p.target);
  return narrowed(reduced_loss("huber_loss", where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction), p.dtype);
}

Tensor nll_loss(const TensorArg& log_probabilities, const TensorArg& target, const Tensor& weight, Reduction reduction,
                int64_t ignore_index) {
  UserPosition here(log_probabilities.where());
  tensor_operand("nll_loss", log_probabilities);
  const Tensor log_p = in_f32(log_probabilities).tensor();
  check_class_dim("nll_loss", log_p);
  Tensor wide = widened(log_p);
  auto c = classes("nll_loss", wide, tensor_operand("nll_loss", target), weight, ignore_index, Fault::kNllLoss);
  return narrowed(negative_likelihood(wide, c, reduction), log_p.dtype());
}

Tensor cross_entropy(const TensorArg& logits_arg, const TensorArg& target_arg, const Tensor& weight,
                     Reduction reduction, int64_t ignore_index, double label_smoothing) {
  constexpr auto op = "cross_entropy";
  UserPosition here(logits_arg.where());
  tensor_operand(op, logits_arg);
  const Tensor logits = in_f32(logits_arg).tensor(), &target = tensor_operand(op, target_arg);
  check_class_dim(op, logits);
  check(label_smoothing >= 0 && label_smoothing <= 1, "cross_entropy: label_smoothing {} is not between 0 and 1",
        label_smoothing);
  check(reduction != Reduction::kBatchMean, "cross_entropy: kBatchMean is for kl_div");
  int64_t class_dim = logits.dim() == 1 ? 0 : 1;
  Tensor log_p = widened(logits).log_softmax(class_dim), class_weight;
  if (weight.defined()) {
    check(weight.dim() == 1 && weight.size(0) == logits.size(class_dim),
          "cross_entropy: expected a weight of shape [{}], got {}", logits.size(class_dim), weight.sizes());
    Shape shape(size_t(logits.dim() - class_dim), 1);
    shape[0] = weight.size(0);
    class_weight = weight.to(log_p.dtype()).view(shape);
  }
  auto over_classes = [&](const Tensor& t) {
    return -(class_weight.defined() ? t * class_weight : t).sum({class_dim});
  };
  if (target.is_floating_point()) {
    check(target.dim() == logits.dim(), "cross_entropy: probabilities {} must have the shape of the logits {}",
          target.sizes(), logits.sizes());
    Tensor p = target.to(log_p.dtype());
    if (label_smoothing > 0) p = p * (1 - label_smoothing) + label_smoothing / double(logits.size(class_dim).to_int());
    Tensor loss = over_classes(log_p * p);
    return narrowed(reduced_loss(op, loss, reduction), logits.dtype());
  }
  auto c = classes(op, log_p, target, weight, ignore_index, Fault::kCrossEntropy);
  Tensor loss = negative_likelihood(log_p, c, reduction);
  if (label_smoothing > 0) {
    Tensor smooth = where(target == ignore_index, 0, over_classes(log_p));
    if (reduction == Reduction::kMean)
      smooth = smooth.sum() / c.weight.sum();
    else
      smooth = reduced_loss(op, smooth, reduction);
    loss = loss * (1 - label_smoothing) + smooth * (label_smoothing / double(logits.size(class_dim).to_int()));
  }
  return narrowed(loss, logits.dtype());
}

Tensor binary_cross_entropy(const TensorArg& x, const TensorArg& target, const Tensor& weight, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("binary_cross_entropy", x, target);
  p.x = checked(p.x, (p.x >= 0) & (p.x <= 1), Fault::kBinaryCrossEntropy);
  // The value inside the logarithm is replaced where the bound holds, so that no infinity enters the gradient. In f32
  // that is below the normal numbers, which kernels flush to zero.
  double smallest = p.x.dtype() == kFloat64 ? std::exp(-100.0) : double(std::numeric_limits<float>::min());
  auto bounded_log = [&](const Tensor& v) {
    Tensor tiny = v < smallest;
    return where(tiny, -100.0, log(where(tiny, 1.0, v)));
  };
  Tensor loss = -(p.target * bounded_log(p.x) + (1 - p.target) * bounded_log(1 - p.x));
  if (weight.defined()) loss = loss * widened(weight);
  return narrowed(reduced_loss("binary_cross_entropy", loss, reduction), p.dtype);
}

Tensor binary_cross_entropy_with_logits(const TensorArg& x, const TensorArg& target, const Tensor& weight,
                                        const Tensor& pos_weight, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("binary_cross_entropy_with_logits", x, target);
  Tensor penalty = -logsigmoid(p.x);
  if (pos_weight.defined()) penalty = penalty * (1 + (widened(pos_weight) - 1) * p.target);
  Tensor loss = (1 - p.target) * p.x + penalty;
  if (weight.defined()) loss = loss * widened(weight);
  return narrowed(reduced_loss("binary_cross_entropy_with_logits", loss, reduction), p.dtype);
}

Tensor kl_div(const TensorArg& x, const TensorArg& target, Reduction reduction, bool log_target) {
  UserPosition here(x.where());
  auto p = loss_operands("kl_div", x, target);
  Tensor loss = log_target ? exp(p.target) * (p.target - p.x) : xlogy(p.target, p.target) - p.target * p.x;
  if (reduction == Reduction::kBatchMean) return narrowed(loss.sum() / loss.size(0), p.dtype);
  return narrowed(reduced_loss("kl_div", loss, reduction), p.dtype);
}

Tensor cosine_similarity(const TensorArg& a, const TensorArg& b, int64_t dim, double eps) {
  UserPosition here(a.where());
  auto p = loss_operands("cosine_similarity", a, b);
  Shape both = broadcast_shapes("cosine_similarity", p.x.sizes(), p.target.sizes());
  dim = wrap_dim("cosine_similarity", dim, both.rank());
  Tensor u = p.x.expand(both), v = p.target.expand(both);
  auto length = [&](const Tensor& t) { return sqrt(clamp_min((t * t).sum({dim}), eps * eps)); };
  return narrowed((u * v).sum({dim}) / (length(u) * length(v)), p.dtype);
}

Tensor pairwise_distance(const TensorArg& a, const TensorArg& b, double p, double eps, bool keepdim) {
  UserPosition here(a.where());
  auto o = numeric_operands("pairwise_distance", a, b);
  return narrowed(norm(o.x - o.target + eps, p, {-1}, keepdim), o.dtype);
}

Tensor poisson_nll_loss(const TensorArg& x, const TensorArg& target, bool log_input, bool full, double eps,
                        Reduction reduction) {
  UserPosition here(x.where());
  auto p = numeric_operands("poisson_nll_loss", x, target);
  Tensor loss = log_input ? exp(p.x) - p.target * p.x : p.x - p.target * log(p.x + eps);
  if (full) {
    // Stirling's formula for the logarithm of the factorial, from 2 on.
    Tensor large = p.target > 1, t = where(large, p.target, 1.0);
    loss = loss + where(large, t * log(t) - t + 0.5 * log(2 * std::numbers::pi * t), 0);
  }
  return narrowed(reduced_loss("poisson_nll_loss", loss, reduction), p.dtype);
}

Tensor gaussian_nll_loss(const TensorArg& x, const TensorArg& target, const TensorArg& var_arg, bool full, double eps,
                         Reduction reduction) {
  constexpr auto op = "gaussian_nll_loss";
  UserPosition here(x.where());
  auto p = loss_operands(op, x, target);
  check(eps > 0, "{}: eps {} must be positive", op, eps);
  Tensor var = var_arg.is_scalar() ? full_like(p.x, var_arg) : widened(var_arg.tensor());
  if (var.dim() == p.x.dim() - 1) var = var.unsqueeze(-1);
  // The bound changes the value alone: PyTorch's gradient passes it.
  var = var + (clamp_min(var, eps) - var).detach();
  Tensor loss = 0.5 * (log(var) + square(p.x - p.target) / var);
  if (full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return narrowed(reduced_loss(op, loss, reduction), p.dtype);
}

}  // namespace sinter
