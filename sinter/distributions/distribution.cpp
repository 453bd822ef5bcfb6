#include "sinter/distributions/distribution.h"

#include <atomic>

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"
#include "sinter/ops/checked.h"
#include "sinter/ops/draws.h"
#include "sinter/tensor/tracer.h"

namespace sinter::distributions {

namespace {

std::atomic<bool> validates{true};

// Of the first parameter that is a tensor.
TensorOptions options_of(std::initializer_list<detail::Given> given) {
  for (auto& g : given)
    if (!g.value.is_scalar() && is_floating(g.value.dtype())) return g.value.tensor().options();
  return {};
}

Shape without_last(const Shape& shape, int64_t count) { return Shape(shape.begin(), shape.end() - count); }

Shape joined(Shape first, const Shape& second) {
  for (auto& d : second) first.push_back(d);
  return first;
}

}  // namespace

Tensor obeying(const Tensor& x, const detail::Rule& rule, Fault fault, const char* distribution, const char* what) {
  if (Tracer::current() || !x.device().is_cpu()) return checked(x, rule.holds, fault);
  check(all(rule.holds).item<bool>(), "{}: {} must be {}, got a tensor of shape {} with {} that are not:\n{}",
        distribution, what, rule.text, x.sizes(), count_nonzero(~rule.holds).item<int64_t>(), x);
  return x;
}

Distribution::Distribution(const char* name, std::initializer_list<detail::Given> given, int64_t event_dims)
    : name_(name) {
  const TensorOptions options = options_of(given);
  for (auto& g : given) {
    Tensor value = g.value.is_scalar() ? full({}, g.value, options) : g.value.tensor();
    check(value.dim() >= g.event_dims, "{}: {} needs {} dimensions or more, got the shape {}", name, g.name,
          g.event_dims, value.sizes());
    if (!is_floating(value.dtype())) value = to(value, options.dtype_);
    if (validates) value = obeying(value, g.rule(value), Fault::kDistributionParameter, name, g.name);
    batch_shape_ = broadcast_shapes(name, batch_shape_, without_last(value.sizes(), g.event_dims));
    parameters_.push_back({value, g.event_dims});
  }
  const Shape& first = parameters_[0].value.sizes();
  event_shape_ = Shape(first.end() - event_dims, first.end());
  expand_parameters(batch_shape_);
}

void Distribution::expand_parameters(const Shape& batch_shape) {
  for (auto& [value, event_dims] : parameters_) {
    Shape sizes = value.sizes();
    value = value.expand(joined(batch_shape, Shape(sizes.end() - event_dims, sizes.end())));
  }
  batch_shape_ = batch_shape;
}

void Distribution::require_parameters(const Tensor& holds, const char* rule) {
  if (!validates) return;
  parameters_[0].value = obeying(parameter(0), {rule, holds}, Fault::kDistributionParameter, name_, "its parameters");
}

Shape Distribution::extended(const Shape& shape) const { return joined(joined(shape, batch_shape_), event_shape_); }

void Distribution::lacks(const char* what) const { throw_error(format("{} has no {}", name_, what)); }

Tensor Distribution::sample(const Shape& shape) const { return draw(extended(shape)).detach(); }
Tensor Distribution::sample(const Shape& shape, Generator& generator) const {
  DrawFrom from(generator);
  return sample(shape);
}
Tensor Distribution::rsample(const Shape& shape) const {
  if (!has_rsample()) lacks("rsample: a draw does not move with the parameters; use sample(), and log_prob() of it");
  return draw(extended(shape));
}
Tensor Distribution::rsample(const Shape& shape, Generator& generator) const {
  DrawFrom from(generator);
  return rsample(shape);
}

Tensor Distribution::as_tensor(const TensorArg& x) const {
  if (!x.is_scalar()) return x.tensor();
  return full({}, x, parameters_.empty() ? TensorOptions() : parameter(0).options());
}

Tensor Distribution::checked_value(const char* what, const TensorArg& given) const {
  Tensor value = as_tensor(given);
  if (!validates) return value;
  const int64_t event_dims = event_shape_.rank();
  Shape sizes = value.sizes();
  check(value.dim() >= event_dims, "{}: {} needs a value of {} dimensions or more, got the shape {}", name_, what,
        event_dims, sizes);
  for (int64_t d = 1; d <= event_dims; ++d)
    check(sizes[size_t(value.dim() - d)] == event_shape_[size_t(event_dims - d)],
          "{}: {} of a value of shape {}, whose last dimensions must be {}", name_, what, sizes, event_shape_);
  broadcast_shapes(name_, without_last(sizes, event_dims), batch_shape_);
  return obeying(value, support(value), Fault::kDistributionValue, name_, "the value");
}

Tensor Distribution::log_prob(const TensorArg& value) const {
  UserPosition here(value.where());
  return log_density(checked_value("log_prob", value));
}
Tensor Distribution::cdf(const TensorArg& value) const {
  UserPosition here(value.where());
  return share_below(checked_value("cdf", value));
}
Tensor Distribution::icdf(const TensorArg& share) const {
  UserPosition here(share.where());
  return quantile(as_tensor(share));
}

Tensor Distribution::share_below(const Tensor&) const { lacks("cdf"); }
Tensor Distribution::quantile(const Tensor&) const { lacks("icdf"); }
Tensor Distribution::entropy() const { lacks("entropy in closed form"); }
Tensor Distribution::mean() const { lacks("mean in closed form"); }
Tensor Distribution::mode() const { lacks("mode in closed form"); }
Tensor Distribution::variance() const { lacks("variance in closed form"); }
Tensor Distribution::stddev() const { return sqrt(variance()); }
Tensor Distribution::perplexity() const { return exp(entropy()); }

void Distribution::set_default_validate_args(bool on) { validates = on; }

Tensor open_uniform(const Shape& shape, const TensorOptions& options) {
  const finfo limits(options.dtype_);
  return clamp(rand(shape, options.requires_grad(false)), limits.tiny, 1 - limits.eps / 2);
}

Tensor exponential_noise(const Shape& shape, const TensorOptions& options) {
  return -log1p(-open_uniform(shape, options));
}

Tensor sum_rightmost(const Tensor& x, int64_t count) {
  IntList dims;
  for (int64_t d = 1; d <= count; ++d) dims.push_back(-d);
  return count == 0 ? x : x.sum(dims);
}

}  // namespace sinter::distributions
