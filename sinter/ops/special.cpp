// The gamma function and its family, relatives of the error function. Their scalar functions are those of special.embed.
#include <cmath>
#include <numbers>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/special.h"

namespace sinter {

namespace {

constexpr Domain kPositive{0.05, 5};

struct Zeta : Pointwise<Zeta> {
  static constexpr auto name = "special_zeta";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, q), zeta(x, q))
  static TensorList grad(const GradCall& c) {
    check(!c.needs(0), "special::zeta: it is differentiated by its second operand; by the first there is no formula");
    return c.each([&] { return Tensor(); }, [&] { return -c.grad() * c[0] * call<Zeta>({c[0] + 1, c[1]}); });
  }
  static constexpr Tolerance tolerance{.ulp = 4};
  static constexpr Domain domain_of_inputs{1.1, 5};
};

struct Digamma : Pointwise<Digamma> {
  static constexpr auto name = "digamma";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), digamma(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * polygamma(1, c[0]); });
  }
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 2e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

struct Lgamma : Pointwise<Lgamma> {
  static constexpr auto name = "lgamma";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), lgamma(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * digamma(c[0]); });
  }
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 2e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

struct ErfInv : Pointwise<ErfInv> {
  static constexpr auto name = "erfinv";
  static constexpr Typing typing = Typing::kFloat;
  static constexpr auto autocast = Autocast::kWideOnGpu;
  SINTER_BODY((x), erfinv(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * (exp(square(c.out())) * 0.88622692545275801); });
  }
  static constexpr Tolerance tolerance{.ulp = 4};
  static constexpr Domain domain_of_inputs{-0.95, 0.95};
};

struct ErfCX : Pointwise<ErfCX> {
  static constexpr auto name = "special_erfcx";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), erfcx(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * (c[0] * c.out() * 2 - 2 * std::numbers::inv_sqrtpi); });
  }
  static constexpr Tolerance tolerance{.ulp = 4};
  static constexpr Domain domain_of_inputs{-1, 20};
};

struct LogNdtr : Pointwise<LogNdtr> {
  static constexpr auto name = "special_log_ndtr";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), log_ndtr(x))
  static TensorList grad(const GradCall& c) {
    constexpr double kSlope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return c.each([&] { return c.grad() * kSlope / special::erfcx(c[0] * (-1 / std::numbers::sqrt2)); });
  }
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs{-20, 5};
};

struct Ndtri : Pointwise<Ndtri> {
  static constexpr auto name = "special_ndtri";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((p), ndtri(p))
  static TensorList grad(const GradCall& c) {
    constexpr double kSlope = std::numbers::sqrt2 / std::numbers::inv_sqrtpi;
    return c.each([&] { return c.grad() * (exp(square(c.out()) * 0.5) * kSlope); });
  }
  static constexpr Tolerance tolerance{.ulp = 4};
  static constexpr Domain domain_of_inputs{0.02, 0.98};
};

struct Entr : Pointwise<Entr> {
  static constexpr auto name = "special_entr";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), select(gt(x, lit(0)), -x * log(x), select(eq(x, lit(0)), lit(0), x / lit(0))))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * (-log(c[0]) - 1); });
  }
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

struct XLog1pY : Pointwise<XLog1pY> {
  static constexpr auto name = "special_xlog1py";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), select(ne(y, y), y, select(eq(x, lit(0)), lit(0), x * log1p(y))))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where((c[0] == 0) & (c[1] <= -1), 0, special::xlog1py(c.grad(), c[1])); },
                  [&] { return c.grad() * (c[0] / (c[1] + 1)); });
  }
  static constexpr Tolerance tolerance{.ulp = 4};
  static constexpr Domain domain_of_inputs = kPositive;
};

// x^(a - 1) e^-x / gamma(a): the density of the gamma distribution.
Tensor gamma_density(const TensorArg& a, const TensorArg& x) { return exp(xlogy(a - 1, x) - x - lgamma(a)); }

// Of the quantile x of the gamma distribution of shape a, for a share that stays: its derivative by a.
struct StandardGammaGrad : Pointwise<StandardGammaGrad> {
  static constexpr auto name = "_standard_gamma_grad";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((a, x), gamma_slope(a, x))
  static TensorList grad(const GradCall& c) {
    const TensorArg &a = c[0], &x = c[1];
    check(!c.needs(0),
          "{}: the derivative by the shape has no formula, so that a draw from a gamma distribution (or an "
          "incomplete gamma function) can be differentiated by its shape once",
          c.op.name);
    return c.each([&] { return Tensor(); },
                  [&] { return c.grad() * (digamma(a) - log(x) - c.out() * ((a - 1) / x - 1)); });
  }
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

struct GammaInc : Pointwise<GammaInc> {
  static constexpr auto name = "gammainc";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((a, x), gammainc(a, x))
  static TensorList grad(const GradCall& c) {
    Tensor density = c.grad() * gamma_density(c[0], c[1]);
    return c.each([&] { return -density * call<StandardGammaGrad>({c[0], c[1]}); }, [&] { return density; });
  }
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

struct GammaIncC : Pointwise<GammaIncC> {
  static constexpr auto name = "gammaincc";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((a, x), gammaincc(a, x))
  static TensorList grad(const GradCall& c) {
    Tensor density = c.grad() * gamma_density(c[0], c[1]);
    return c.each([&] { return density * call<StandardGammaGrad>({c[0], c[1]}); }, [&] { return -density; });
  }
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs = kPositive;
};

}  // namespace

Tensor lgamma(const TensorArg& x) { return call<Lgamma>({x}); }
Tensor digamma(const TensorArg& x) { return call<Digamma>({x}); }
Tensor erfinv(const TensorArg& x) { return call<ErfInv>({x}); }
Tensor gammainc(const TensorArg& a, const TensorArg& x) { return call<GammaInc>({a, x}); }
Tensor gammaincc(const TensorArg& a, const TensorArg& x) { return call<GammaIncC>({a, x}); }
Tensor _standard_gamma_grad(const TensorArg& a, const TensorArg& x) { return call<StandardGammaGrad>({a, x}); }

Tensor polygamma(int64_t n, const TensorArg& x) {
  UserPosition here(x.where());
  check(n >= 0, "polygamma: there is no derivative of order {}", n);
  if (n == 0) return digamma(x);
  return call<Zeta>({double(n + 1), x}) * (n % 2 ? std::tgamma(n + 1) : -std::tgamma(n + 1));
}

Tensor mvlgamma(const TensorArg& x, int64_t p) {
  UserPosition here(x.where());
  check(p >= 1, "mvlgamma: expected p of 1 or more, got {}", p);
  constexpr double kQuarterLogPi = 0.28618247146235004;
  Tensor wide = is_floating(x.dtype()) ? x.tensor() : to(x, get_default_dtype());
  return lgamma(wide.unsqueeze(-1) - arange(p, wide.options()) * 0.5).sum({-1}) + double(p * (p - 1)) * kQuarterLogPi;
}

namespace special {

Tensor ndtr(const TensorArg& x) {
  UserPosition here(x.where());
  return erfc(x * (-1 / std::numbers::sqrt2)) * 0.5;
}
Tensor log_ndtr(const TensorArg& x) { return call<LogNdtr>({x}); }
Tensor ndtri(const TensorArg& p) { return call<Ndtri>({p}); }
Tensor erfcx(const TensorArg& x) { return call<ErfCX>({x}); }
Tensor entr(const TensorArg& x) { return call<Entr>({x}); }
Tensor xlog1py(const TensorArg& x, const TensorArg& y) { return call<XLog1pY>({x, y}); }
Tensor zeta(const TensorArg& x, const TensorArg& q) { return call<Zeta>({x, q}); }

}  // namespace special

OpFamily special_ops() {
  static const Op* const ops[] = {&op_of<Zeta>,    &op_of<Digamma>, &op_of<Lgamma>, &op_of<ErfInv>,  &op_of<ErfCX>,
                                  &op_of<LogNdtr>, &op_of<Ndtri>,   &op_of<Entr>,   &op_of<XLog1pY>, &op_of<GammaInc>,
                                  &op_of<GammaIncC>, &op_of<StandardGammaGrad>};
  return ops;
}

}  // namespace sinter
