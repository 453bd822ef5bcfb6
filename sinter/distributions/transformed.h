#pragma once
// Distributions that are made of others: batches taken as one event, and draws that are transformed.
#include <memory>
#include <vector>

#include "sinter/distributions/distribution.h"

namespace sinter SINTER_API {
namespace distributions {

using DistributionPtr = std::shared_ptr<const Distribution>;

// The last batch dimensions of another distribution as dimensions of one event: their log_prob is added up.
class Independent : public Distribution {
 public:
  Independent(DistributionPtr base, int64_t reinterpreted_batch_ndims);
  template <std::derived_from<Distribution> D>
  Independent(const D& base, int64_t reinterpreted_batch_ndims)
      : Independent(std::make_shared<D>(base), reinterpreted_batch_ndims) {}
  const Distribution& base() const { return *base_; }
  int64_t reinterpreted_batch_ndims() const { return count_; }
  bool has_rsample() const override { return base_->has_rsample(); }
  Tensor entropy() const override;
  Tensor mean() const override { return base_->mean(); }
  Tensor mode() const override { return base_->mode(); }
  Tensor variance() const override { return base_->variance(); }
  Independent expand(const Shape& batch_shape) const;
  std::shared_ptr<Distribution> expanded(const Shape& batch_shape) const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;

  DistributionPtr base_;
  int64_t count_;
};

// A function of each element with an inverse.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual Tensor forward(const Tensor& x) const = 0;
  virtual Tensor inverse(const Tensor& y) const = 0;
  // Of y = forward(x): log |dy/dx|.
  virtual Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const = 0;
  // Where it falls -1, where it rises 1.
  virtual Tensor sign() const { return ones({}); }
  // What it makes.
  virtual detail::Rule codomain(const Tensor& y) const = 0;
  Tensor operator()(const Tensor& x) const { return forward(x); }
};

// loc + scale * x.
class AffineTransform : public Transform {
 public:
  AffineTransform(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return loc_; }
  const Tensor& scale() const { return scale_; }
  Tensor forward(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  Tensor sign() const override;
  detail::Rule codomain(const Tensor& y) const override;

 private:
  Tensor loc_, scale_;
};

class ExpTransform : public Transform {
 public:
  Tensor forward(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  detail::Rule codomain(const Tensor& y) const override;
};

class SigmoidTransform : public Transform {
 public:
  Tensor forward(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  detail::Rule codomain(const Tensor& y) const override;
};

class TanhTransform : public Transform {
 public:
  Tensor forward(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  detail::Rule codomain(const Tensor& y) const override;
};

// x to the power of a number.
class PowerTransform : public Transform {
 public:
  explicit PowerTransform(double exponent) : exponent_(exponent) {}
  Tensor forward(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  Tensor sign() const override;
  detail::Rule codomain(const Tensor& y) const override;

 private:
  double exponent_;
};

// Draws of another distribution, put through transforms one after the other.
class TransformedDistribution : public Distribution {
 public:
  using Transforms = std::vector<std::shared_ptr<const Transform>>;
  TransformedDistribution(DistributionPtr base, Transforms transforms);
  template <std::derived_from<Distribution> D, std::derived_from<Transform>... T>
  TransformedDistribution(const D& base, const T&... transforms)
      : TransformedDistribution(std::make_shared<D>(base), Transforms{std::make_shared<T>(transforms)...}) {}
  const Distribution& base() const { return *base_; }
  const Transforms& transforms() const { return transforms_; }
  bool has_rsample() const override { return base_->has_rsample(); }
  TransformedDistribution expand(const Shape& batch_shape) const;
  std::shared_ptr<Distribution> expanded(const Shape& batch_shape) const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
  // Shares of the base where the transforms rise as a whole, what is left of 1 where they fall.
  Tensor turned(const Tensor& share) const;

  DistributionPtr base_;
  Transforms transforms_;
};

}  // namespace distributions
}  // namespace SINTER_API
