#pragma once
// Probability distributions with PyTorch's names (torch.distributions), as values: made of parameters, which are tensors or
// numbers and broadcast, they draw, tell densities and moments, and are differentiable in their parameters.
//
//   distributions::Normal prior(0, 1), posterior(mean, scale);
//   Tensor z = posterior.rsample();
//   Tensor loss = distributions::kl_divergence(posterior, prior).sum() - posterior.log_prob(z).sum();
//
// The leading dimensions of a draw are those asked for, then batch_shape (what the parameters broadcast to), then event_shape
// (of one draw). Parameters and the values given to log_prob and cdf are checked, unless set_default_validate_args(false): on the
// CPU at once, in compiled functions and on a GPU by the kernels that read them.
#include <initializer_list>
#include <memory>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/ops/creation.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace distributions {

namespace detail {
// A parameter as its distribution was given it, and what a tensor must obey (checks.h).
struct Given;
struct Rule;
}  // namespace detail

class Distribution {
 public:
  virtual ~Distribution() = default;

  const Shape& batch_shape() const { return batch_shape_; }
  const Shape& event_shape() const { return event_shape_; }

  // Draws of this leading shape, without gradients.
  Tensor sample(const Shape& shape = {}) const;
  Tensor sample(const Shape& shape, Generator& generator) const;
  // The same with gradients to the parameters; an Error where has_rsample() is false.
  Tensor rsample(const Shape& shape = {}) const;
  Tensor rsample(const Shape& shape, Generator& generator) const;
  virtual bool has_rsample() const { return true; }

  // The logarithm of the density, or of the probability.
  Tensor log_prob(const TensorArg& value) const;
  // The share below a value, and the value below which a share lies.
  Tensor cdf(const TensorArg& value) const;
  Tensor icdf(const TensorArg& share) const;
  virtual Tensor entropy() const;
  virtual Tensor mean() const;
  virtual Tensor mode() const;
  virtual Tensor variance() const;
  Tensor stddev() const;
  Tensor perplexity() const;

  // The same distribution with its parameters broadcast to a batch of this shape.
  virtual std::shared_ptr<Distribution> expanded(const Shape& batch_shape) const = 0;

  // The name of its class.
  const char* name() const { return name_; }
  // Whether parameters and values of distributions are checked; at first they are.
  static void set_default_validate_args(bool on);

 protected:
  Distribution(const char* name, std::initializer_list<detail::Given> given, int64_t event_dims = 0);
  // One that is made of others.
  Distribution(const char* name, const Shape& batch_shape, const Shape& event_shape)
      : name_(name), batch_shape_(batch_shape), event_shape_(event_shape) {}

  const Tensor& parameter(size_t i) const { return parameters_[i].value; }
  // `shape`, then the batch's, then the event's.
  Shape extended(const Shape& shape) const;
  void expand_parameters(const Shape& batch_shape);
  // An Error unless it holds everywhere, which the parameters must obey together. In the first of them, which is then read with it.
  void require_parameters(const Tensor& holds, const char* rule);
  [[noreturn]] void lacks(const char* what) const;

 private:
  friend class Independent;
  friend class TransformedDistribution;
  struct Parameter {
    Tensor value;
    int64_t event_dims;
  };
  virtual Tensor draw(const Shape& shape) const = 0;
  virtual Tensor log_density(const Tensor& value) const = 0;
  virtual Tensor share_below(const Tensor& value) const;
  virtual Tensor quantile(const Tensor& share) const;
  virtual detail::Rule support(const Tensor& value) const = 0;
  Tensor as_tensor(const TensorArg& x) const;
  Tensor checked_value(const char* what, const TensorArg& value) const;

  const char* name_;
  Shape batch_shape_, event_shape_;
  std::vector<Parameter> parameters_;
};

// What every class of distributions has by its type.
template <class Self, class Base = Distribution>
class Family : public Base {
 public:
  using Base::Base;
  Self expand(const Shape& batch_shape) const {
    Self out = static_cast<const Self&>(*this);
    out.expand_parameters(batch_shape);
    return out;
  }
  std::shared_ptr<Distribution> expanded(const Shape& batch_shape) const override {
    return std::make_shared<Self>(expand(batch_shape));
  }
};

}  // namespace distributions
}  // namespace SINTER_API
