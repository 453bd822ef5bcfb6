#include "sinter/distributions/transformed.h"

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"

namespace sinter::distributions {

using detail::Rule;

namespace {

Shape batch_of(const Distribution& base, int64_t count) {
  const Shape& batch = base.batch_shape();
  check(count >= 0 && count <= batch.rank(), "Independent: {} dimensions of the batch {} of a {}", count, batch,
        base.name());
  return Shape(batch.begin(), batch.end() - count);
}
Shape event_of(const Distribution& base, int64_t count) {
  const Shape& batch = base.batch_shape();
  Shape event(batch.end() - count, batch.end());
  for (auto& d : base.event_shape()) event.push_back(d);
  return event;
}
Tensor as_tensor(const TensorArg& x) { return x.is_scalar() ? full({}, x, TensorOptions(kFloat64)) : x.tensor(); }
// A number counts as one of the dtype of what it meets.
Tensor beside(const Tensor& x, const Tensor& parameter) {
  return parameter.dim() == 0 ? parameter.to(x.options()) : parameter;
}

}  // namespace

// --- Independent

Independent::Independent(DistributionPtr base, int64_t reinterpreted_batch_ndims)
    : Distribution("Independent", batch_of(*base, reinterpreted_batch_ndims),
                   event_of(*base, reinterpreted_batch_ndims)),
      base_(std::move(base)),
      count_(reinterpreted_batch_ndims) {}
Tensor Independent::entropy() const { return sum_rightmost(base_->entropy(), count_); }
Independent Independent::expand(const Shape& batch_shape) const {
  Shape whole = batch_shape;
  for (int64_t d = count_; d > 0; --d) whole.push_back(base_->batch_shape()[size_t(base_->batch_shape().rank() - d)]);
  return {DistributionPtr(base_->expanded(whole)), count_};
}
std::shared_ptr<Distribution> Independent::expanded(const Shape& batch_shape) const {
  return std::make_shared<Independent>(expand(batch_shape));
}
Tensor Independent::draw(const Shape& shape) const { return base_->draw(shape); }
Tensor Independent::log_density(const Tensor& value) const { return sum_rightmost(base_->log_density(value), count_); }
Rule Independent::support(const Tensor& value) const { return base_->support(value); }

// --- transforms

AffineTransform::AffineTransform(const TensorArg& loc, const TensorArg& scale)
    : loc_(as_tensor(loc)), scale_(as_tensor(scale)) {}
Tensor AffineTransform::forward(const Tensor& x) const { return beside(x, loc_) + beside(x, scale_) * x; }
Tensor AffineTransform::inverse(const Tensor& y) const { return (y - beside(y, loc_)) / beside(y, scale_); }
Tensor AffineTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  return log(abs(beside(x, scale_))).expand(broadcast_shapes("AffineTransform", x.sizes(), scale_.sizes()));
}
Tensor AffineTransform::sign() const { return sinter::sign(scale_); }
Rule AffineTransform::codomain(const Tensor& y) const { return detail::real(y); }

Tensor ExpTransform::forward(const Tensor& x) const { return exp(x); }
Tensor ExpTransform::inverse(const Tensor& y) const { return log(y); }
Tensor ExpTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const { return x; }
Rule ExpTransform::codomain(const Tensor& y) const { return detail::positive(y); }

// Kept within (0, 1), whose logits are finite.
Tensor SigmoidTransform::forward(const Tensor& x) const {
  const finfo limits(x.dtype());
  return clamp(sigmoid(x), limits.tiny, 1 - limits.eps);
}
Tensor SigmoidTransform::inverse(const Tensor& y) const {
  const finfo limits(y.dtype());
  Tensor share = clamp(y, limits.tiny, 1 - limits.eps);
  return log(share) - log1p(-share);
}
Tensor SigmoidTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  return logsigmoid(x) + logsigmoid(-x);
}
Rule SigmoidTransform::codomain(const Tensor& y) const { return detail::share(y); }

Tensor TanhTransform::forward(const Tensor& x) const { return tanh(x); }
Tensor TanhTransform::inverse(const Tensor& y) const { return atanh(y); }
Tensor TanhTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  return 2 * (kLog2 - x - softplus(-2 * x));
}
Rule TanhTransform::codomain(const Tensor& y) const { return {"between -1 and 1", (y >= -1) & (y <= 1)}; }

Tensor PowerTransform::forward(const Tensor& x) const { return pow(x, exponent_); }
Tensor PowerTransform::inverse(const Tensor& y) const { return pow(y, 1 / exponent_); }
Tensor PowerTransform::log_abs_det_jacobian(const Tensor& x, const Tensor& y) const {
  return log(abs(exponent_ * y / x));
}
Tensor PowerTransform::sign() const { return full({}, exponent_ < 0 ? -1.0 : 1.0); }
Rule PowerTransform::codomain(const Tensor& y) const { return detail::positive(y); }

// --- TransformedDistribution

TransformedDistribution::TransformedDistribution(DistributionPtr base, Transforms transforms)
    : Distribution("TransformedDistribution", base->batch_shape(), base->event_shape()),
      base_(std::move(base)),
      transforms_(std::move(transforms)) {}
TransformedDistribution TransformedDistribution::expand(const Shape& batch_shape) const {
  return {DistributionPtr(base_->expanded(batch_shape)), transforms_};
}
std::shared_ptr<Distribution> TransformedDistribution::expanded(const Shape& batch_shape) const {
  return std::make_shared<TransformedDistribution>(expand(batch_shape));
}
Tensor TransformedDistribution::draw(const Shape& shape) const {
  Tensor value = base_->draw(shape);
  for (auto& transform : transforms_) value = transform->forward(value);
  return value;
}
Tensor TransformedDistribution::log_density(const Tensor& value) const {
  Tensor y = value, correction;
  for (size_t i = transforms_.size(); i-- > 0;) {
    Tensor x = transforms_[i]->inverse(y), term = transforms_[i]->log_abs_det_jacobian(x, y);
    correction = correction.defined() ? correction + term : term;
    y = x;
  }
  Tensor density = base_->log_density(y);
  return correction.defined() ? density - sum_rightmost(correction, event_shape().rank()) : density;
}
Tensor TransformedDistribution::turned(const Tensor& share) const {
  Tensor sign = ones({}, share.options());
  for (auto& transform : transforms_) sign = sign * transform->sign().to(share.options());
  return sign * (share - 0.5) + 0.5;
}
Tensor TransformedDistribution::share_below(const Tensor& value) const {
  Tensor y = value;
  for (size_t i = transforms_.size(); i-- > 0;) y = transforms_[i]->inverse(y);
  return turned(base_->share_below(y));
}
Tensor TransformedDistribution::quantile(const Tensor& share) const {
  Tensor value = base_->quantile(turned(share));
  for (auto& transform : transforms_) value = transform->forward(value);
  return value;
}
Rule TransformedDistribution::support(const Tensor& value) const {
  return transforms_.empty() ? base_->support(value) : transforms_.back()->codomain(value);
}

}  // namespace sinter::distributions
