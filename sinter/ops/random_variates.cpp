// Draws whose number of steps depends on what is drawn: gamma, Poisson and binomial. Each is a pointwise op of a uniform f64
// draw u, the seed of all that the element takes (special.embed), and of the parameters.
#include "sinter/base/error.h"
#include "sinter/ops/checked.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/draws.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

constexpr Domain kShare{0.05, 0.95};

// Its gradient by the shape is that of the quantile which the draw is, and not of the path that rejections take.
struct StandardGamma : Pointwise<StandardGamma> {
  static constexpr auto name = "_standard_gamma";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((u, a), draw_gamma(u, a))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return Tensor(); }, [&] { return c.grad() * _standard_gamma_grad(c[1], c.out()); });
  }
  static constexpr Tolerance tolerance{.ulp = 32, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs = kShare;
};

struct DrawPoisson : Pointwise<DrawPoisson> {
  static constexpr auto name = "_poisson";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((u, rate), draw_poisson(u, rate))
  static constexpr NotDifferentiable grad{"what it draws are whole numbers"};
  static constexpr Domain domain_of_inputs{0.05, 40};
};

struct DrawBinomial : Pointwise<DrawBinomial> {
  static constexpr auto name = "_binomial";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((u, count, p), draw_binomial(u, count, p))
  static constexpr NotDifferentiable grad{"what it draws are whole numbers"};
  static constexpr Domain domain_of_inputs{0, 1};
};

Tensor uniform_like(const Tensor& x) { return rand(x.sizes(), x.options().dtype(kFloat64)); }

}  // namespace

Tensor _standard_gamma(const TensorArg& alpha) {
  UserPosition here(alpha.where());
  const Tensor& shape = alpha.tensor();
  check(is_floating(shape.dtype()), "_standard_gamma: shapes must be floating, got {}", shape.dtype());
  // Of small shapes draws are too small for the dtype: as in PyTorch they are its smallest number, whose logarithm is finite.
  return clamp_min(to(call<StandardGamma>({uniform_like(shape), shape}), shape.dtype()), finfo(shape.dtype()).tiny);
}

Tensor poisson(const TensorArg& rate) {
  UserPosition here(rate.where());
  check(is_floating(rate.dtype()), "poisson: rates must be floating, got {}", rate.dtype());
  Tensor rates = checked(rate.tensor(), rate.tensor() >= 0, Fault::kPoisson);
  return to(call<DrawPoisson>({uniform_like(rates), rates}), rates.dtype());
}

Tensor binomial(const TensorArg& count, const TensorArg& prob) {
  UserPosition here(count.where());
  check(is_floating(count.dtype()) && count.dtype() == prob.dtype(),
        "binomial: counts and probabilities must be of one floating dtype, got {} and {}", count.dtype(), prob.dtype());
  TensorList both = broadcast_tensors({count.tensor(), prob.tensor()});
  Tensor counts = checked(both[0], both[0] >= 0, Fault::kBinomialCount),
         chances = checked(both[1], (both[1] >= 0) & (both[1] <= 1), Fault::kBinomialChance);
  return to(call<DrawBinomial>({uniform_like(counts), counts, chances}), counts.dtype());
}

Tensor _standard_gamma(const TensorArg& alpha, Generator& generator) {
  DrawFrom from(generator);
  return _standard_gamma(alpha);
}
Tensor poisson(const TensorArg& rate, Generator& generator) {
  DrawFrom from(generator);
  return poisson(rate);
}
Tensor binomial(const TensorArg& count, const TensorArg& prob, Generator& generator) {
  DrawFrom from(generator);
  return binomial(count, prob);
}

OpFamily variate_ops() {
  static const Op* const ops[] = {&op_of<StandardGamma>, &op_of<DrawPoisson>, &op_of<DrawBinomial>};
  return ops;
}

}  // namespace sinter
