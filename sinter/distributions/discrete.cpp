#include "sinter/distributions/discrete.h"

#include <limits>

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"
#include "sinter/ops/norm.h"

namespace sinter::distributions {

using detail::Rule;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// Away from 0 and 1, so that logits are finite.
Tensor inside(const Tensor& probs) {
  const double eps = finfo(probs.dtype()).eps;
  return clamp(probs, eps, 1 - eps);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& value) {
  TensorList both = broadcast_tensors({logits, value});
  return binary_cross_entropy_with_logits(both[0], both[1], {}, {}, Reduction::kNone);
}

// The class of each draw from rows of probabilities, expanded to one row for each.
Tensor draw_classes(const Tensor& probs) {
  Shape sizes = probs.sizes();
  const Dim classes = sizes.back();
  sizes.pop_back();
  return multinomial(probs.reshape({-1, classes}), 1, true).reshape(sizes);
}

}  // namespace

// --- forms of chances

Tensor Chances::chance_probs(const Tensor& given, Form form) { return form == Form::kProbs ? given : sigmoid(given); }
Tensor Chances::chance_logits(const Tensor& given, Form form) {
  if (form == Form::kLogits) return given;
  Tensor probs = inside(given);
  return log(probs) - log1p(-probs);
}
Tensor Chances::class_probs(const Tensor& given, Form form) {
  return form == Form::kProbs ? given / given.sum({-1}, true) : softmax(given, -1);
}
Tensor Chances::class_logits(const Tensor& given, Form form) {
  return form == Form::kProbs ? log(inside(class_probs(given, form))) : given - logsumexp(given, {-1}, true);
}

// --- Bernoulli

Bernoulli::Bernoulli(const TensorArg& given, Form form)
    : Family("Bernoulli", {form == Form::kProbs ? detail::Given{"probs", given, detail::share}
                                                : detail::Given{"logits", given, detail::real}}) {
  form_ = form;
}
Tensor Bernoulli::entropy() const { return cross_entropy(logits(), probs()); }
Tensor Bernoulli::mode() const {
  Tensor p = probs();
  return where(p == 0.5, kNan, (p >= 0.5).to(p.dtype()));
}
Tensor Bernoulli::variance() const {
  Tensor p = probs();
  return p * (1 - p);
}
Tensor Bernoulli::draw(const Shape& shape) const { return bernoulli(probs().expand(shape)); }
Tensor Bernoulli::log_density(const Tensor& value) const { return -cross_entropy(logits(), value); }
Rule Bernoulli::support(const Tensor& value) const { return detail::truth(value); }

// --- Geometric

Geometric::Geometric(const TensorArg& given, Form form)
    : Family("Geometric", {form == Form::kProbs ? detail::Given{"probs", given, detail::share}
                                                : detail::Given{"logits", given, detail::real}}) {
  form_ = form;
  if (form == Form::kProbs) require_parameters(parameter(0) > 0, "positive");
}
Tensor Geometric::entropy() const { return cross_entropy(logits(), probs()) / probs(); }
Tensor Geometric::mean() const { return 1 / probs() - 1; }
Tensor Geometric::mode() const { return zeros_like(parameter(0)); }
Tensor Geometric::variance() const { return (1 / probs() - 1) / probs(); }
Tensor Geometric::draw(const Shape& shape) const {
  Tensor p = probs();
  return floor(-exponential_noise(shape, p.options()) / log1p(-p));
}
Tensor Geometric::log_density(const Tensor& value) const {
  Tensor p = probs();
  return xlogy(value, 1 - p) + log(p);
}
Rule Geometric::support(const Tensor& value) const { return detail::count(value); }

// --- Binomial

Binomial::Binomial(const TensorArg& total_count, const TensorArg& given, Form form)
    : Family("Binomial", {{"total_count", total_count, detail::count},
                          form == Form::kProbs ? detail::Given{"probs", given, detail::share}
                                               : detail::Given{"logits", given, detail::real}}) {
  form_ = form;
}
Tensor Binomial::entropy() const {
  const auto count = total_count().max().item<int64_t>();
  check(total_count().min().item<double>() == double(count),
        "Binomial: the entropy of several total_counts at once is not implemented");
  Shape column(size_t(batch_shape().rank() + 1), Dim(1));
  column[0] = count + 1;
  Tensor l = log_prob(arange(count + 1, parameter(1).options().requires_grad(false)).reshape(column));
  return -(exp(l) * l).sum({0});
}
Tensor Binomial::mean() const { return total_count() * probs(); }
Tensor Binomial::mode() const { return clamp_max(floor((total_count() + 1) * probs()), total_count()); }
Tensor Binomial::variance() const {
  Tensor p = probs();
  return total_count() * p * (1 - p);
}
Tensor Binomial::draw(const Shape& shape) const { return binomial(total_count().expand(shape), probs().expand(shape)); }
Tensor Binomial::log_density(const Tensor& value) const {
  Tensor l = logits(), rest = total_count() - value, log_failure = logsigmoid(-l);
  return value * l + total_count() * log_failure + lgamma(total_count() + 1) - lgamma(value + 1) - lgamma(rest + 1);
}
Rule Binomial::support(const Tensor& value) const {
  return {"whole numbers from 0 to total_count", detail::count(value).holds & (value <= total_count())};
}

// --- Categorical

Categorical::Categorical(const TensorArg& given, Form form)
    : Family("Categorical", {form == Form::kProbs ? detail::Given{"probs", given, detail::weights, 1}
                                                  : detail::Given{"logits", given, detail::real_vector, 1}}) {
  form_ = form;
}
Tensor Categorical::entropy() const {
  Tensor l = logits();
  return -(clamp_min(l, finfo(l.dtype()).min) * probs()).sum({-1});
}
Tensor Categorical::mean() const { return full(batch_shape(), kNan, parameter(0).options()); }
Tensor Categorical::mode() const { return argmax(probs(), -1); }
Tensor Categorical::variance() const { return mean(); }
Tensor Categorical::draw(const Shape& shape) const {
  Shape rows = shape;
  rows.push_back(parameter(0).size(-1));
  return draw_classes(probs().expand(rows));
}
Tensor Categorical::log_density(const Tensor& value) const {
  Tensor l = logits(), index = value.to(kInt64).unsqueeze(-1);
  Shape sizes = broadcast_shapes("Categorical", index.sizes(), l.narrow(-1, 0, 1).sizes()), rows = sizes;
  rows.back() = l.size(-1);
  return gather(l.expand(rows), -1, index.expand(sizes)).squeeze(-1);
}
Rule Categorical::support(const Tensor& value) const {
  return {"numbers of classes", detail::count(value).holds & (value < parameter(0).size(-1))};
}

// --- OneHotCategorical

OneHotCategorical::OneHotCategorical(const TensorArg& given, Form form)
    : Family("OneHotCategorical",
             {form == Form::kProbs ? detail::Given{"probs", given, detail::weights, 1}
                                   : detail::Given{"logits", given, detail::real_vector, 1}},
             1) {
  form_ = form;
}
Tensor OneHotCategorical::entropy() const { return classes().entropy(); }
Tensor OneHotCategorical::mode() const {
  Tensor p = probs();
  return one_hot(argmax(p, -1), p.size(-1)).to(p.dtype());
}
Tensor OneHotCategorical::variance() const {
  Tensor p = probs();
  return p * (1 - p);
}
Tensor OneHotCategorical::draw(const Shape& shape) const {
  Tensor p = probs();
  return one_hot(draw_classes(p.expand(shape)), p.size(-1)).to(p.dtype());
}
Tensor OneHotCategorical::log_density(const Tensor& value) const { return classes().log_prob(argmax(value, -1)); }
Rule OneHotCategorical::support(const Tensor& value) const { return detail::one_hot_vector(value); }

// --- Multinomial

Multinomial::Multinomial(int64_t total_count, const TensorArg& given, Form form)
    : Family("Multinomial",
             {form == Form::kProbs ? detail::Given{"probs", given, detail::weights, 1}
                                   : detail::Given{"logits", given, detail::real_vector, 1}},
             1),
      total_count_(total_count) {
  check(total_count >= 0, "Multinomial: total_count is {}", total_count);
  form_ = form;
}
// Of each count by itself, which is binomial: the counts' own factorials do not cancel.
Tensor Multinomial::entropy() const {
  Tensor p = probs();
  const double count = double(total_count_);
  Shape column(size_t(p.dim() + 1), Dim(1));
  column[0] = total_count_;
  Tensor k = arange(1, total_count_ + 1, p.options().requires_grad(false)).reshape(column);
  Tensor factorials = exp(Binomial(count, p).log_prob(k)) * lgamma(k + 1);
  return count * Categorical(p).entropy() - std::lgamma(count + 1) + factorials.sum({0, -1});
}
Tensor Multinomial::mean() const { return probs() * total_count_; }
Tensor Multinomial::variance() const {
  Tensor p = probs();
  return p * (1 - p) * total_count_;
}
Tensor Multinomial::draw(const Shape& shape) const {
  Tensor p = probs();
  Shape rows = shape;
  rows.insert(rows.end() - 1, Dim(total_count_));
  Tensor classes = draw_classes(p.unsqueeze(-2).expand(rows));
  return scatter_add(zeros(shape, p.options()), -1, classes, ones(classes.sizes(), p.options()));
}
Tensor Multinomial::log_density(const Tensor& value) const {
  Tensor l = logits(), powers = where((value == 0) & (l == -kInfinity), 0, l * value);
  return lgamma(value.sum({-1}) + 1) - lgamma(value + 1).sum({-1}) + powers.sum({-1});
}
Rule Multinomial::support(const Tensor& value) const {
  return {"counts with the sum total_count", all(detail::count(value).holds, -1) & (value.sum({-1}) == total_count_)};
}

// --- Poisson

Poisson::Poisson(const TensorArg& rate) : Family("Poisson", {{"rate", rate, detail::nonnegative}}) {}
Tensor Poisson::mode() const { return floor(rate()); }
Tensor Poisson::draw(const Shape& shape) const { return poisson(rate().expand(shape)); }
Tensor Poisson::log_density(const Tensor& value) const { return xlogy(value, rate()) - rate() - lgamma(value + 1); }
Rule Poisson::support(const Tensor& value) const { return detail::count(value); }

}  // namespace sinter::distributions
