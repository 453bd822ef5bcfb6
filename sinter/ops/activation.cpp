#include "sinter/ops/pointwise.h"

#include <numbers>

#include "sinter/ops/in_place.h"
#include "sinter/ops/registry.h"

namespace sinter {

namespace {

struct Relu : Pointwise<Relu> {
  static constexpr auto name = "relu";
  SINTER_BODY((x), maximum(x, lit(0)))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c.out() > 0, c.grad(), 0); });
  }
};

// Where 1 + erf cancels the error is absolute.
struct Gelu : Pointwise<Gelu> {
  static constexpr auto name = "gelu";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), lit(0.5) * x * (lit(1) + erf(x * lit(0.7071067811865476))))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 4e-7};
  static TensorList grad(const GradCall& c) {
    constexpr double kInvSqrt2Pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return c.each([&] {
      Tensor cdf = (erf(c[0] * (1 / std::numbers::sqrt2)) + 1) * 0.5;
      return c.grad() * (cdf + c[0] * exp(square(c[0]) * -0.5) * kInvSqrt2Pi);
    });
  }
};

struct GeluTanh : Pointwise<GeluTanh> {
  static constexpr auto name = "gelu_tanh";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), lit(0.5) * x * (lit(1) + tanh(lit(0.7978845608028654) * (x + lit(0.044715) * x * x * x))))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 4e-7};
  static TensorList grad(const GradCall& c) {
    constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;
    return c.each([&] {
      const TensorArg& x = c[0];
      Tensor x2 = square(x);
      Tensor t = tanh(x * (x2 * kCubic + 1) * kScale);
      Tensor slope = (1 - square(t)) * ((x2 * (3 * kCubic) + 1) * kScale);
      return c.grad() * ((t + 1) * 0.5 + x * slope * 0.5);
    });
  }
};

struct Silu : Pointwise<Silu> {
  static constexpr auto name = "silu";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), x * sigmoid(x))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor s = sigmoid(c[0]);
      return c.grad() * (s * ((1 - s) * c[0] + 1));
    });
  }
};

struct Mish : Pointwise<Mish> {
  static constexpr auto name = "mish";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), x * tanh(log1p(exp(x))))
  static constexpr Tolerance tolerance{.ulp = 8};
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor t = tanh(softplus(c[0]));
      return c.grad() * (t + c[0] * (1 - square(t)) * sigmoid(c[0]));
    });
  }
};

struct HardTanh : Pointwise<HardTanh> {
  static constexpr auto name = "hardtanh";
  static constexpr int tensors = 1;
  SINTER_BODY((x, low, high), minimum(maximum(x, low), high))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where((c[0] > c[1]) & (c[0] < c[2]), c.grad(), 0); });
  }
};

struct HardSwish : Pointwise<HardSwish> {
  static constexpr auto name = "hardswish";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), x * minimum(maximum(x + lit(3), lit(0)), lit(6)) / lit(6))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 1e-6};
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor inside = c.grad() * (c[0] * (1.0 / 3) + 0.5);
      return where(c[0] < -3, 0, where(c[0] <= 3, inside, c.grad()));
    });
  }
};

struct HardSigmoid : Pointwise<HardSigmoid> {
  static constexpr auto name = "hardsigmoid";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), minimum(maximum(x + lit(3), lit(0)), lit(6)) / lit(6))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 1e-7};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where((c[0] > -3) & (c[0] < 3), c.grad() * (1.0 / 6), 0); });
  }
};

struct LeakyRelu : Pointwise<LeakyRelu> {
  static constexpr auto name = "leaky_relu";
  static constexpr int tensors = 1;
  SINTER_BODY((x, slope), select(gt(x, lit(0)), x, x * slope))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] > 0, c.grad(), c.grad() * c[1]); });
  }
};

struct Elu : Pointwise<Elu> {
  static constexpr auto name = "elu";
  static constexpr int tensors = 1;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, alpha), select(gt(x, lit(0)), x, alpha * expm1(x)))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] > 0, c.grad(), c.grad() * (c.out() + c[1])); });
  }
};

struct Selu : Pointwise<Selu> {
  static constexpr auto name = "selu";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), select(gt(x, lit(0)), lit(1.0507009873554805) * x, lit(1.7580993408473766) * expm1(x)))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    constexpr double kScale = 1.0507009873554805, kScaleAlpha = 1.7580993408473766;
    return c.each([&] { return where(c[0] > 0, c.grad() * kScale, c.grad() * (c.out() + kScaleAlpha)); });
  }
};

struct Celu : Pointwise<Celu> {
  static constexpr auto name = "celu";
  static constexpr int tensors = 1;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, alpha), select(gt(x, lit(0)), x, alpha * expm1(x / alpha)))
  static constexpr Tolerance tolerance{.ulp = 8};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] > 0, c.grad(), c.grad() * (c.out() / c[1] + 1)); });
  }
};

struct Softplus : Pointwise<Softplus> {
  static constexpr auto name = "softplus";
  static constexpr auto autocast = Autocast::kWideOnGpu;
  static constexpr int tensors = 1;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, beta, threshold), select(gt(x * beta, threshold), x, log1p(exp(x * beta)) / beta))
  static constexpr Tolerance tolerance{.ulp = 8};
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor scaled = c[0] * c[1];
      return where(scaled > c[2], c.grad(), c.grad() * sigmoid(scaled));
    });
  }
};

struct LogSigmoid : Pointwise<LogSigmoid> {
  static constexpr auto name = "logsigmoid";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), minimum(x, lit(0)) - log1p(exp(-abs(x))))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * sigmoid(-c[0]); });
  }
};

struct Softsign : Pointwise<Softsign> {
  static constexpr auto name = "softsign";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), x / (lit(1) + abs(x)))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() / square(abs(c[0]) + 1); });
  }
};

struct Threshold : Pointwise<Threshold> {
  static constexpr auto name = "threshold";
  static constexpr int tensors = 1;
  SINTER_BODY((x, limit, value), select(le(x, limit), value, x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] <= c[1], 0, c.grad()); });
  }
};

}  // namespace

Tensor relu(const TensorArg& x) { return call<Relu>({x}); }
Tensor relu6(const TensorArg& x) { return hardtanh(x, 0, 6); }
Tensor gelu(const TensorArg& x, std::string_view approximate) {
  UserPosition here(x.where());
  check(approximate == "none" || approximate == "tanh", "gelu: approximate '{}' is neither 'none' nor 'tanh'",
        approximate);
  return approximate == "tanh" ? call<GeluTanh>({x}) : call<Gelu>({x});
}
Tensor silu(const TensorArg& x) { return call<Silu>({x}); }
Tensor mish(const TensorArg& x) { return call<Mish>({x}); }
Tensor hardtanh(const TensorArg& x, const Scalar& min_val, const Scalar& max_val) {
  return call<HardTanh>({x, min_val, max_val});
}
Tensor hardswish(const TensorArg& x) { return call<HardSwish>({x}); }
Tensor hardsigmoid(const TensorArg& x) { return call<HardSigmoid>({x}); }
Tensor leaky_relu(const TensorArg& x, const Scalar& negative_slope) { return call<LeakyRelu>({x, negative_slope}); }
Tensor elu(const TensorArg& x, const Scalar& alpha) { return call<Elu>({x, alpha}); }
Tensor selu(const TensorArg& x) { return call<Selu>({x}); }
Tensor celu(const TensorArg& x, const Scalar& alpha) { return call<Celu>({x, alpha}); }
Tensor softplus(const TensorArg& x, const Scalar& beta, const Scalar& threshold) {
  return call<Softplus>({x, beta, threshold});
}
Tensor logsigmoid(const TensorArg& x) { return call<LogSigmoid>({x}); }
Tensor softsign(const TensorArg& x) { return call<Softsign>({x}); }
Tensor threshold(const TensorArg& x, const Scalar& threshold, const Scalar& value) {
  return call<Threshold>({x, threshold, value});
}
Tensor glu(const TensorArg& x, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0 && x.size(dim) % 2 == 0, "glu: dimension {} of shape {} is not even", dim, x.sizes());
  Dim half = x.size(dim) / 2;
  return x.tensor().narrow(dim, 0, half) * sigmoid(x.tensor().narrow(dim, half, half));
}

Tensor Tensor::relu(Where where) const { return sinter::relu({*this, where}); }
const Tensor& Tensor::relu_(Where where) const { return call_in_place<Relu>(*this, {{*this, where}}); }

OpFamily activation_ops() {
  static const Op* const ops[] = {&op_of<Relu>,      &op_of<Gelu>,       &op_of<GeluTanh>,  &op_of<Silu>,
                                  &op_of<Mish>,      &op_of<HardTanh>,   &op_of<HardSwish>, &op_of<HardSigmoid>,
                                  &op_of<LeakyRelu>, &op_of<Elu>,        &op_of<Selu>,      &op_of<Celu>,
                                  &op_of<Softplus>,  &op_of<LogSigmoid>, &op_of<Softsign>,  &op_of<Threshold>};
  return ops;
}

}  // namespace sinter
