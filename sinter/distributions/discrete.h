#pragma once
// Distributions over truth values, classes and counts. Their draws have no gradients: log_prob() of a draw has. Those over
// chances are given probabilities, or the logits of them by from_logits().
#include "sinter/distributions/distribution.h"

namespace sinter SINTER_API {
namespace distributions {

// What has chances for a parameter, in one of the two forms.
class Chances : public Distribution {
 public:
  bool has_rsample() const override { return false; }

 protected:
  using Distribution::Distribution;
  enum class Form : uint8_t { kProbs, kLogits };
  // Of one chance: logit and sigmoid. Of classes in the last dimension: logarithm and softmax.
  static Tensor chance_probs(const Tensor& given, Form form);
  static Tensor chance_logits(const Tensor& given, Form form);
  static Tensor class_probs(const Tensor& given, Form form);
  static Tensor class_logits(const Tensor& given, Form form);

  Form form_ = Form::kProbs;
};

// 1 with probability probs, else 0.
class Bernoulli : public Family<Bernoulli, Chances> {
 public:
  explicit Bernoulli(const TensorArg& probs) : Bernoulli(probs, Form::kProbs) {}
  static Bernoulli from_logits(const TensorArg& logits) { return Bernoulli(logits, Form::kLogits); }
  Tensor probs() const { return chance_probs(parameter(0), form_); }
  Tensor logits() const { return chance_logits(parameter(0), form_); }
  Tensor entropy() const override;
  Tensor mean() const override { return probs(); }
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Bernoulli(const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// How many trials fail before the first that succeeds.
class Geometric : public Family<Geometric, Chances> {
 public:
  explicit Geometric(const TensorArg& probs) : Geometric(probs, Form::kProbs) {}
  static Geometric from_logits(const TensorArg& logits) { return Geometric(logits, Form::kLogits); }
  Tensor probs() const { return chance_probs(parameter(0), form_); }
  Tensor logits() const { return chance_logits(parameter(0), form_); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Geometric(const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// How many of total_count trials succeed.
class Binomial : public Family<Binomial, Chances> {
 public:
  Binomial(const TensorArg& total_count, const TensorArg& probs) : Binomial(total_count, probs, Form::kProbs) {}
  static Binomial from_logits(const TensorArg& total_count, const TensorArg& logits) {
    return Binomial(total_count, logits, Form::kLogits);
  }
  const Tensor& total_count() const { return parameter(0); }
  Tensor probs() const { return chance_probs(parameter(1), form_); }
  Tensor logits() const { return chance_logits(parameter(1), form_); }
  // Reads total_count on the host, which must be one number.
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Binomial(const TensorArg& total_count, const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// One of the classes in the last dimension, as a number. Probabilities need not have the sum 1.
class Categorical : public Family<Categorical, Chances> {
 public:
  explicit Categorical(const TensorArg& probs) : Categorical(probs, Form::kProbs) {}
  static Categorical from_logits(const TensorArg& logits) { return Categorical(logits, Form::kLogits); }
  Tensor probs() const { return class_probs(parameter(0), form_); }
  Tensor logits() const { return class_logits(parameter(0), form_); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Categorical(const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// The same as a vector with 1 at the class.
class OneHotCategorical : public Family<OneHotCategorical, Chances> {
 public:
  explicit OneHotCategorical(const TensorArg& probs) : OneHotCategorical(probs, Form::kProbs) {}
  static OneHotCategorical from_logits(const TensorArg& logits) { return OneHotCategorical(logits, Form::kLogits); }
  Tensor probs() const { return class_probs(parameter(0), form_); }
  Tensor logits() const { return class_logits(parameter(0), form_); }
  Tensor entropy() const override;
  Tensor mean() const override { return probs(); }
  Tensor mode() const override;
  Tensor variance() const override;
  Categorical classes() const { return Categorical::from_logits(logits()); }

 private:
  OneHotCategorical(const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// How often each class comes up in total_count draws.
class Multinomial : public Family<Multinomial, Chances> {
 public:
  Multinomial(int64_t total_count, const TensorArg& probs) : Multinomial(total_count, probs, Form::kProbs) {}
  static Multinomial from_logits(int64_t total_count, const TensorArg& logits) {
    return Multinomial(total_count, logits, Form::kLogits);
  }
  int64_t total_count() const { return total_count_; }
  Tensor probs() const { return class_probs(parameter(0), form_); }
  Tensor logits() const { return class_logits(parameter(0), form_); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor variance() const override;

 private:
  Multinomial(int64_t total_count, const TensorArg& given, Form form);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;

  int64_t total_count_;
};

class Poisson : public Family<Poisson> {
 public:
  explicit Poisson(const TensorArg& rate);
  const Tensor& rate() const { return parameter(0); }
  bool has_rsample() const override { return false; }
  Tensor mean() const override { return rate(); }
  Tensor mode() const override;
  Tensor variance() const override { return rate(); }

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

}  // namespace distributions
}  // namespace SINTER_API
