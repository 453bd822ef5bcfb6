// Losses that ask for a distance between what belongs together and what does not.
#include "sinter/ops/checked.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/loss_parts.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

Tensor hinge_embedding_loss(const TensorArg& x, const TensorArg& target, double margin, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("hinge_embedding_loss", x, target);
  Tensor loss = where(p.target != 1, clamp_min(margin - p.x, 0), 0) + where(p.target != -1, p.x, 0);
  return narrowed(reduced_loss("hinge_embedding_loss", loss, reduction), p.dtype);
}

Tensor margin_ranking_loss(const TensorArg& x1, const TensorArg& x2, const TensorArg& target, double margin,
                           Reduction reduction) {
  constexpr auto op = "margin_ranking_loss";
  UserPosition here(x1.where());
  auto p = numeric_operands(op, x1, x2);
  Tensor loss = clamp_min(-widened(tensor_operand(op, target)) * (p.x - p.target) + margin, 0);
  return narrowed(reduced_loss(op, loss, reduction), p.dtype);
}

Tensor soft_margin_loss(const TensorArg& x, const TensorArg& target, Reduction reduction) {
  UserPosition here(x.where());
  auto p = loss_operands("soft_margin_loss", x, target);
  return narrowed(reduced_loss("soft_margin_loss", -logsigmoid(p.target * p.x), reduction), p.dtype);
}

Tensor cosine_embedding_loss(const TensorArg& x1, const TensorArg& x2, const TensorArg& target, double margin,
                             Reduction reduction) {
  constexpr auto op = "cosine_embedding_loss";
  constexpr double kEps = 1e-12;
  UserPosition here(x1.where());
  auto p = numeric_operands(op, x1, x2);
  const Tensor& t = tensor_operand(op, target);
  check(p.x.dim() >= 1 && t.dim() == p.x.dim() - 1, "{}: for inputs {} the target must have {} dimensions, got {}", op,
        p.x.sizes(), p.x.dim() - 1, t.sizes());
  Tensor lengths = ((p.x * p.x).sum({-1}) + kEps) * ((p.target * p.target).sum({-1}) + kEps);
  Tensor cosine = (p.x * p.target).sum({-1}) / sqrt(lengths);
  Tensor loss = where(t == 1, 1 - cosine, 0) + where(t == -1, clamp_min(cosine - margin, 0), 0);
  return narrowed(reduced_loss(op, loss, reduction), p.dtype);
}

Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                                         const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                                         double margin, bool swap, Reduction reduction) {
  constexpr auto op = "triplet_margin_loss";
  UserPosition here(anchor.where());
  const Tensor &a = tensor_operand(op, anchor), &p = tensor_operand(op, positive), &n = tensor_operand(op, negative);
  check(a.dim() == p.dim() && a.dim() == n.dim(), "{}: anchor {}, positive {} and negative {} differ in rank", op,
        a.sizes(), p.sizes(), n.sizes());
  Tensor near = distance(a, p), far = distance(a, n);
  if (swap) far = minimum(far, distance(p, n));
  return reduced_loss(op, clamp_min(near - far + margin, 0), reduction);
}

Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative, double margin,
                           double p, double eps, bool swap, Reduction reduction) {
  auto distance = [&](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b, p, eps); };
  return triplet_margin_with_distance_loss(anchor, positive, negative, distance, margin, swap, reduction);
}

Tensor multi_margin_loss(const TensorArg& x_arg, const TensorArg& target_arg, double p, double margin,
                         const Tensor& weight, Reduction reduction) {
  constexpr auto op = "multi_margin_loss";
  UserPosition here(x_arg.where());
  const Tensor &given = tensor_operand(op, x_arg), &target = tensor_operand(op, target_arg);
  check(given.is_floating_point() && (given.dim() == 1 || given.dim() == 2) && target.dim() == given.dim() - 1 &&
            is_integral(target.dtype()),
        "{}: expected a floating input [n, classes] and integer classes [n] (or without n), got {} {} and {} {}", op,
        given.dtype(), given.sizes(), target.dtype(), target.sizes());
  check(p == 1 || p == 2, "{}: p is 1 or 2, not {}", op, p);
  Tensor x = widened(given), index = target.to(kInt64), valid = (index >= 0) & (index < x.size(-1));
  if (!Tracer::current() && x.device().is_cpu()) index = checked(index, valid, Fault::kMultiMarginLoss);
  index = checked_index(index, valid, Fault::kMultiMarginLoss).unsqueeze(-1);
  Tensor excess = clamp_min(x - gather(x, -1, index) + margin, 0);
  if (p == 2) excess = square(excess);
  if (weight.defined()) {
    check(weight.dim() == 1 && weight.size(0) == x.size(-1), "{}: expected a weight of shape [{}], got {}", op,
          x.size(-1), weight.sizes());
    excess = excess * index_select(widened(weight), 0, index.flatten()).view(index.sizes());
  }
  Tensor others = arange_of_size(x.size(-1), index.options()) != index;
  Tensor loss = where(others, excess, 0).sum({-1}) / x.size(-1);
  return narrowed(reduced_loss(op, loss, reduction), given.dtype());
}

Tensor multilabel_margin_loss(const TensorArg& x_arg, const TensorArg& target_arg, Reduction reduction) {
  constexpr auto op = "multilabel_margin_loss";
  UserPosition here(x_arg.where());
  const Tensor &given = tensor_operand(op, x_arg), &target = tensor_operand(op, target_arg);
  check(
      given.is_floating_point() && (given.dim() == 1 || given.dim() == 2) && target.dim() == given.dim() &&
          target.size(-1) == given.size(-1) && is_integral(target.dtype()),
      "{}: expected a floating input [n, classes] and integer targets of its shape (or without n), got {} {} and {} {}",
      op, given.dtype(), given.sizes(), target.dtype(), target.sizes());
  Tensor x = widened(given), t = target.to(kInt64);
  // The labels of a row end before the first negative one.
  Tensor listed = cumsum((t < 0).to(kInt64), -1) == 0, index = where(listed, t, 0);
  Tensor is_label = scatter_add(zeros_like(index), -1, index, listed.to(kInt64)) > 0;
  Tensor excess = clamp_min(1 - gather(x, -1, index).unsqueeze(-1) + x.unsqueeze(-2), 0);
  Tensor counted = listed.unsqueeze(-1) & logical_not(is_label).unsqueeze(-2);
  Tensor loss = where(counted, excess, 0).sum({-2, -1}) / x.size(-1);
  return narrowed(reduced_loss(op, loss, reduction), given.dtype());
}

Tensor multilabel_soft_margin_loss(const TensorArg& x, const TensorArg& target, const Tensor& weight,
                                   Reduction reduction) {
  constexpr auto op = "multilabel_soft_margin_loss";
  UserPosition here(x.where());
  auto p = loss_operands(op, x, target);
  check(p.x.dim() >= 1, "{}: expected an input with a class dimension, got {}", op, p.x.sizes());
  Tensor loss = -(p.target * logsigmoid(p.x) + (1 - p.target) * logsigmoid(-p.x));
  if (weight.defined()) loss = loss * widened(weight);
  return narrowed(reduced_loss(op, loss.mean({-1}), reduction), p.dtype);
}

}  // namespace sinter
