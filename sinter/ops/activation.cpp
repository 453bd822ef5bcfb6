#include "sinter/ops/pointwise.h"

#include <numbers>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

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
    return c.each([&] { return where((c.out() > c[1]) & (c.out() < c[2]), c.grad(), 0); });
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
      return where(c[0] <= -3, 0, where(c[0] < 3, inside, c.grad()));
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

// Where the operand is, for an op that keeps its sign unless operand 1, a number, is negative. The result tells it, too, so that
// the op may work in place.
Tensor is_positive(const GradCall& c) {
  bool result_tells = c[1].is_scalar() && c[1].scalar().to_double() >= 0;
  return result_tells ? c.out() > 0 : c[0] > 0;
}

struct LeakyRelu : Pointwise<LeakyRelu> {
  static constexpr auto name = "leaky_relu";
  static constexpr int tensors = 1;
  SINTER_BODY((x, slope), select(gt(x, lit(0)), x, x * slope))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(is_positive(c), c.grad(), c.grad() * c[1]); });
  }
};

struct Elu : Pointwise<Elu> {
  static constexpr auto name = "elu";
  static constexpr int tensors = 1;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, alpha), select(gt(x, lit(0)), x, alpha * expm1(x)))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(is_positive(c), c.grad(), c.grad() * (c.out() + c[1])); });
  }
};

struct Selu : Pointwise<Selu> {
  static constexpr auto name = "selu";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), select(gt(x, lit(0)), lit(1.0507009873554805) * x, lit(1.7580993408473766) * expm1(x)))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    constexpr double kScale = 1.0507009873554805, kScaleAlpha = 1.7580993408473766;
    return c.each([&] { return where(c.out() > 0, c.grad() * kScale, c.grad() * (c.out() + kScaleAlpha)); });
  }
};

struct Celu : Pointwise<Celu> {
  static constexpr auto name = "celu";
  static constexpr int tensors = 1;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, alpha), select(gt(x, lit(0)), x, alpha * expm1(x / alpha)))
  static constexpr Tolerance tolerance{.ulp = 8};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c.out() > 0, c.grad(), c.grad() * (c.out() / c[1] + 1)); });
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

struct HardShrink : Pointwise<HardShrink> {
  static constexpr auto name = "hardshrink";
  static constexpr int tensors = 1;
  SINTER_BODY((x, lambd), select(logical_and(ge(x, -lambd), le(x, lambd)), lit(0), x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(abs(c[0]) <= c[1], 0, c.grad()); });
  }
};

struct SoftShrink : Pointwise<SoftShrink> {
  static constexpr auto name = "softshrink";
  static constexpr int tensors = 1;
  SINTER_BODY((x, lambd), select(gt(x, lambd), x - lambd, select(lt(x, -lambd), x + lambd, x * lit(0))))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(abs(c[0]) <= c[1], 0, c.grad()); });
  }
};

// The slope is a tensor that is learned.
struct PRelu : Pointwise<PRelu> {
  static constexpr auto name = "prelu";
  SINTER_BODY((x, slope), select(gt(x, lit(0)), x, x * slope))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] > 0, c.grad(), c.grad() * c[1]); },
                  [&] { return where(c[0] > 0, 0, c.grad() * c[0]); });
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

Tensor hardshrink(const TensorArg& x, const Scalar& lambd) { return call<HardShrink>({x, lambd}); }
Tensor softshrink(const TensorArg& x, const Scalar& lambd) {
  UserPosition here(x.where());
  check(lambd.to_double() >= 0, "softshrink: lambda {} is negative", lambd.to_double());
  return call<SoftShrink>({x, lambd});
}
Tensor tanhshrink(const TensorArg& x) { return x - tanh(x); }
Tensor prelu(const TensorArg& x_arg, const TensorArg& weight_arg) {
  UserPosition here(x_arg.where());
  const Tensor &x = tensor_operand("prelu", x_arg), &weight = tensor_operand("prelu", weight_arg);
  bool one = weight.dim() == 0 || (weight.dim() == 1 && weight.size(0) == 1);
  if (one) return call<PRelu>({x_arg, weight.reshape({})});
  check(weight.dim() == 1 && x.dim() >= 1 && weight.size(0) == x.size(x.dim() == 1 ? 0 : 1),
        "prelu: expected one slope, or one for each channel (dimension 1) of {}, got {}", x.sizes(), weight.sizes());
  Shape shape(size_t(std::max<int64_t>(x.dim() - 1, 1)), 1);
  shape[0] = weight.size(0);
  return call<PRelu>({x_arg, weight.view(shape)});
}
Tensor rrelu(const TensorArg& x, const Scalar& lower, const Scalar& upper, bool training) {
  UserPosition here(x.where());
  double low = lower.to_double(), high = upper.to_double();
  check(low <= high, "rrelu: the slopes from {} to {} are none", low, high);
  if (!training) return leaky_relu(x, (low + high) / 2);
  Tensor slope = rand(x.sizes(), tensor_operand("rrelu", x).options()) * (high - low) + low;
  return where(x > 0, x, x * slope);
}
Tensor softmin(const TensorArg& x, int64_t dim, std::optional<DType> dtype) { return softmax(-x, dim, dtype); }
Tensor gumbel_softmax(const TensorArg& logits_arg, double tau, bool hard, int64_t dim) {
  UserPosition here(logits_arg.where());
  const Tensor& logits = tensor_operand("gumbel_softmax", logits_arg);
  check(tau > 0, "gumbel_softmax: tau {} must be positive", tau);
  Tensor noise = -log(-log(rand(logits.sizes(), logits.options())));
  Tensor soft = softmax((logits + noise) / tau, dim);
  if (!hard) return soft;
  // The value is one-hot, the gradient that of the soft choice.
  Tensor chosen = scatter(zeros_like(soft), dim, argmax(soft, dim, true), 1);
  return chosen - soft.detach() + soft;
}

OpFamily activation_ops() {
  static const Op* const ops[] = {&op_of<Relu>,      &op_of<Gelu>,       &op_of<GeluTanh>,  &op_of<Silu>,
                                  &op_of<Mish>,      &op_of<HardTanh>,   &op_of<HardSwish>, &op_of<HardSigmoid>,
                                  &op_of<LeakyRelu>, &op_of<Elu>,        &op_of<Selu>,      &op_of<Celu>,
                                  &op_of<Softplus>,  &op_of<LogSigmoid>, &op_of<Softsign>,  &op_of<Threshold>,
                                  &op_of<HardShrink>, &op_of<SoftShrink>, &op_of<PRelu>};
  return ops;
}

}  // namespace sinter
