#include "sinter/ops/pointwise.h"

#include <cmath>
#include <complex>

#include "sinter/ops/checked.h"
#include "sinter/ops/complex_math.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/in_place.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"

namespace sinter {

namespace {

// An operand as a tensor: formulas of gradients combine operands of which only some are tensors.
Tensor operand(const TensorArg& a, const Tensor& like) {
  return a.is_scalar() ? full({}, a.scalar(), like.options()) : a.tensor();
}

// --- arithmetic

struct Add : Pointwise<Add> {
  static constexpr auto name = "add";
  SINTER_BODY((x, y), x + y)
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return c.grad(); });
  }
  static constexpr auto on_complex = by_parts<>;
};

struct Sub : Pointwise<Sub> {
  static constexpr auto name = "sub";
  SINTER_BODY((x, y), x - y)
  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs[0].dtype != kBool || call.inputs[1].dtype != kBool,
          "sub: two bool operands have no difference; use ^ or logical_xor");
    return infer_pointwise(call, Typing::kPromote, std::nullopt);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return -c.grad(); });
  }
  static constexpr auto on_complex = by_parts<>;
};

struct Mul : Pointwise<Mul> {
  static constexpr auto name = "mul";
  SINTER_BODY((x, y), x * y)
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * c[1]; }, [&] { return c.grad() * c[0]; });
  }
  static constexpr auto on_complex = complex_math::of_products;
};

struct Div : Pointwise<Div> {
  static constexpr auto name = "div";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), x / y)
  static constexpr Domain domain_of_inputs{0.1, 3};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() / c[1]; }, [&] { return -c.grad() * c.out() / c[1]; });
  }
  static TensorList on_complex(const ComplexCall& c) {
    const Parts x = c.parts(0);
    if (!c.is_complex(1)) {
      const TensorArg divisor = c.real(1);
      return {joined(x.re / divisor, x.im / divisor)};
    }
    if (!c[1].is_scalar()) return {joined(complex_math::quotient(x, c.parts(1)))};
    const auto inverse = 1.0 / c[1].scalar().to<std::complex<double>>();
    return {joined(complex_math::product(x, {inverse.real(), inverse.imag()}))};
  }
};

// A quotient rounded to an integer is flat almost everywhere.
TensorList flat(const GradCall& c) {
  return c.each([&] { return zeros_like(c.grad()); }, [&] { return zeros_like(c.grad()); });
}

struct FloorDivide : Pointwise<FloorDivide> {
  static constexpr auto name = "floor_divide";
  SINTER_BODY((x, y), floor_divide(x, y))
  static TensorList grad(const GradCall& c) { return flat(c); }
};
struct TruncDivide : Pointwise<TruncDivide> {
  static constexpr auto name = "trunc_divide";
  SINTER_BODY((x, y), trunc_divide(x, y))
  static TensorList grad(const GradCall& c) { return flat(c); }
};

struct Fmod : Pointwise<Fmod> {
  static constexpr auto name = "fmod";
  SINTER_BODY((x, y), fmod(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return -c.grad() * trunc_divide(c[0], c[1]); });
  }
};
struct Remainder : Pointwise<Remainder> {
  static constexpr auto name = "remainder";
  SINTER_BODY((x, y), remainder(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return -c.grad() * floor_divide(c[0], c[1]); });
  }
};

struct Pow : Pointwise<Pow> {
  static constexpr auto name = "pow";
  static constexpr auto autocast = Autocast::kWideOnGpu;
  SINTER_BODY((x, y), pow(x, y))
  static constexpr Domain domain_of_inputs{0.1, 3};
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    const Tensor& g = c.grad();
    return c.each(
        [&] {
          if (c[1].is_scalar()) {
            double e = c[1].scalar().to_double();
            return e == 0 ? zeros_like(g) : g * (pow(c[0], e - 1) * e);
          }
          const Tensor& e = c[1].tensor();
          return where(e == 0, 0, g * (pow(c[0], e - 1) * e));
        },
        [&] {
          Tensor base = operand(c[0], g);
          return where((base == 0) & (c[1] >= 0), 0, xlogy(g * c.out(), base));
        });
  }
  static TensorList on_complex(const ComplexCall& c) {
    if (c[1].is_scalar() && !c.is_complex(1)) return {joined(complex_math::power(c.parts(0), c[1].scalar().to_double()))};
    auto tensors = [&](int i) { return c[i].is_scalar() ? complex_math::parts_of(c.whole(i)) : c.parts(i); };
    return {joined(complex_math::power(tensors(0), c.parts(1)))};
  }
};

struct Atan2 : Pointwise<Atan2> {
  static constexpr auto name = "atan2";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((y, x), atan2(y, x))
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    auto over_square = [&](const TensorArg& v) {
      Tensor r = hypot(c[0], c[1]);
      return where(r == 0, 0, v / r / r);
    };
    return c.each([&] { return c.grad() * over_square(c[1]); }, [&] { return -c.grad() * over_square(c[0]); });
  }
};

struct Hypot : Pointwise<Hypot> {
  static constexpr auto name = "hypot";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), hypot(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * (c[0] / c.out()); }, [&] { return c.grad() * (c[1] / c.out()); });
  }
};

struct CopySign : Pointwise<CopySign> {
  static constexpr auto name = "copysign";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), copysign(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] == 0, 0, c.grad() * (c.out() / c[0])); },
                  [&] { return zeros_like(c.grad()); });
  }
};

struct LogAddExp : Pointwise<LogAddExp> {
  static constexpr auto name = "logaddexp";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), select(eq(x, y), x + lit(0.6931471805599453), maximum(x, y) + log1p(exp(-abs(x - y)))))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 3e-7};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * sigmoid(c[0] - c[1]); }, [&] { return c.grad() * sigmoid(c[1] - c[0]); });
  }
};

struct XLogY : Pointwise<XLogY> {
  static constexpr auto name = "xlogy";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), select(ne(y, y), y, select(eq(x, lit(0)), lit(0), x * log(y))))
  static constexpr Domain domain_of_inputs{0.1, 3};
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where((c[0] == 0) & (operand(c[1], c.grad()) <= 0), 0, xlogy(c.grad(), c[1])); },
                  [&] { return c.grad() * (c[0] / c[1]); });
  }
};

struct Lerp : Pointwise<Lerp> {
  static constexpr auto name = "lerp";
  SINTER_BODY((x, y, w), select(lt(abs(w), lit(0.5)), x + w * (y - x), y - (y - x) * (lit(1) - w)))
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 1e-6};
  static std::vector<Type> infer(const OpCall& call) {
    check(is_floating(call.inputs[0].dtype), "lerp: expected a floating tensor, got {}", call.inputs[0]);
    return infer_pointwise(call, Typing::kPromote, std::nullopt);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() - c.grad() * c[2]; }, [&] { return c.grad() * c[2]; },
                  [&] { return c.grad() * (operand(c[1], c.grad()) - c[0]); });
  }
  static TensorList on_complex(const ComplexCall& c) { return {c[0] + c[2] * (c[1] - c[0])}; }
};

struct AddCMul : Pointwise<AddCMul> {
  static constexpr auto name = "addcmul";
  static constexpr int tensors = 3;
  SINTER_BODY((x, a, b, value), x + value * a * b)
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 4e-6};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return c.grad() * c[3] * c[2]; },
                  [&] { return c.grad() * c[3] * c[1]; });
  }
  static TensorList on_complex(const ComplexCall& c) { return {c[0] + c[1] * c[2] * c[3]}; }
};

struct AddCDiv : Pointwise<AddCDiv> {
  static constexpr auto name = "addcdiv";
  static constexpr int tensors = 3;
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, a, b, value), x + value * a / b)
  static constexpr Domain domain_of_inputs{0.1, 3};
  static constexpr Tolerance tolerance{.ulp = 4};
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); }, [&] { return c.grad() * c[3] / c[2]; },
                  [&] { return -c.grad() * c[3] * c[1] / c[2] / c[2]; });
  }
  static TensorList on_complex(const ComplexCall& c) { return {c[0] + c[1] / c[2] * c[3]}; }
};

// --- whole numbers

struct Gcd : Pointwise<Gcd> {
  static constexpr auto name = "gcd";
  static constexpr Typing typing = Typing::kInteger;
  SINTER_BODY((x, y), gcd(x, y))
  static constexpr NotDifferentiable grad{"it works on integers"};
};

struct Lcm : Pointwise<Lcm> {
  static constexpr auto name = "lcm";
  static constexpr Typing typing = Typing::kInteger;
  SINTER_BODY((x, y), abs(trunc_divide(x, gcd(x, y)) * y))
  static constexpr NotDifferentiable grad{"it works on integers"};
};

// --- order

// `dropped` is by how many bits the dtype is shorter than f64.
struct NextAfter : Pointwise<NextAfter> {
  static constexpr auto name = "nextafter";
  static constexpr int tensors = 2;
  SINTER_BODY((x, y, dropped), nextafter(x, y, dropped))
  static std::vector<Type> infer(const OpCall& call) {
    const Type result = infer_pointwise(call, Typing::kPromote, std::nullopt)[0];
    check(is_floating(result.dtype) && result.dtype != kFloat16, "nextafter: expected f64, f32 or bf16, got {} and {}",
          call.inputs[0], call.inputs[1]);
    return {result};
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return where(c[0] == c[1], 0, c.grad()); }, [&] { return zeros_like(c.grad()); });
  }
};

// Gradient of a maximum or minimum to one side, halved between equals. `loses`: where that side was not taken.
Tensor grad_of_winner(const GradCall& c, const Tensor& loses) {
  return where(loses, 0, where(c[0] == c[1], c.grad() * 0.5, c.grad()));
}

struct Maximum : Pointwise<Maximum> {
  static constexpr auto name = "maximum";
  SINTER_BODY((x, y), maximum(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return grad_of_winner(c, c[0] < c[1]); }, [&] { return grad_of_winner(c, c[1] < c[0]); });
  }
};
struct Minimum : Pointwise<Minimum> {
  static constexpr auto name = "minimum";
  SINTER_BODY((x, y), minimum(x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return grad_of_winner(c, c[0] > c[1]); }, [&] { return grad_of_winner(c, c[1] > c[0]); });
  }
};

// The same where a NaN loses: `wins` is where the first is the one taken.
TensorList grads_of_winner(const GradCall& c, const Tensor& wins) {
  Tensor half = c.grad() * 0.5, tie = c[0] == c[1];
  return c.each([&] { return where(tie, half, where(wins, c.grad(), 0)); },
                [&] { return where(tie, half, where(wins, 0, c.grad())); });
}

struct FMax : Pointwise<FMax> {
  static constexpr auto name = "fmax";
  SINTER_BODY((x, y), select(logical_or(ge(x, y), ne(y, y)), x, y))
  static TensorList grad(const GradCall& c) { return grads_of_winner(c, (c[0] > c[1]) | isnan(operand(c[1], c.grad()))); }
};
struct FMin : Pointwise<FMin> {
  static constexpr auto name = "fmin";
  SINTER_BODY((x, y), select(logical_or(le(x, y), ne(y, y)), x, y))
  static TensorList grad(const GradCall& c) { return grads_of_winner(c, (c[0] < c[1]) | isnan(operand(c[1], c.grad()))); }
};

// A bound that is a number, whether the host knows it or, in a captured program, only its values do.
bool is_number(const GradCall& c, int i) { return c[i].is_scalar() || (c[i].dim() == 0 && !c.needs(i)); }

// At a bound that is a number no gradient flows, as in PyTorch; a bound that is a tensor takes half of it.
struct Clamp : Pointwise<Clamp> {
  static constexpr auto name = "clamp";
  SINTER_BODY((x, low, high), minimum(maximum(x, low), high))
  static TensorList grad(const GradCall& c) {
    const Tensor& g = c.grad();
    const TensorArg &x = c[0], &low = c[1], &high = c[2];
    if (is_number(c, 1) && is_number(c, 2)) return c.each([&] { return where((x > low) & (x < high), g, 0); });
    const Tensor value = operand(x, g), bound = operand(low, g);
    Tensor half = where(bound < high, 0.5, 0.0) * g;
    return c.each([&] { return where((value > low) & (value < high), g,
                                     where((value == low) | (value == high), where(bound == high, g, half), 0)); },
                  [&] { return where((value < low) & (bound <= high), g, where(value == low, half, 0)); },
                  [&] { return where((value > high) | (bound > high), g, where(value == high, half, 0)); });
  }
};
struct ClampMin : Pointwise<ClampMin> {
  static constexpr auto name = "clamp_min";
  SINTER_BODY((x, low), maximum(x, low))
  static TensorList grad(const GradCall& c) {
    if (is_number(c, 1)) return c.each([&] { return where(c[0] > c[1], c.grad(), 0); });
    return c.each([&] { return grad_of_winner(c, c[0] < c[1]); }, [&] { return grad_of_winner(c, c[1] < c[0]); });
  }
};
struct ClampMax : Pointwise<ClampMax> {
  static constexpr auto name = "clamp_max";
  SINTER_BODY((x, high), minimum(x, high))
  static TensorList grad(const GradCall& c) {
    if (is_number(c, 1)) return c.each([&] { return where(c[0] < c[1], c.grad(), 0); });
    return c.each([&] { return grad_of_winner(c, c[0] > c[1]); }, [&] { return grad_of_winner(c, c[1] > c[0]); });
  }
};

// --- choice

struct Choose : Pointwise<Choose> {
  static constexpr auto name = "where";
  static constexpr Typing typing = Typing::kSelect;
  SINTER_BODY((condition, x, y), select(condition, x, y))
  static TensorList grad(const GradCall& c) {
    return c.each([] { return Tensor(); }, [&] { return where(c[0], c.grad(), 0); },
                  [&] { return where(c[0], 0, c.grad()); });
  }
  static constexpr auto on_complex = by_parts<1, 2>;
};

}  // namespace

Tensor add(const TensorArg& a, const TensorArg& b, const Scalar& alpha) {
  UserPosition here(a.where());
  return alpha == Scalar(1) ? call<Add>({a, b}) : call<Add>({a, mul(b, alpha)});
}
Tensor sub(const TensorArg& a, const TensorArg& b, const Scalar& alpha) {
  UserPosition here(a.where());
  return alpha == Scalar(1) ? call<Sub>({a, b}) : call<Sub>({a, mul(b, alpha)});
}
Tensor mul(const TensorArg& a, const TensorArg& b) { return call<Mul>({a, b}); }
Tensor div(const TensorArg& a, const TensorArg& b) { return call<Div>({a, b}); }
Tensor div(const TensorArg& a, const TensorArg& b, std::string_view rounding_mode) {
  UserPosition here(a.where());
  check(rounding_mode == "floor" || rounding_mode == "trunc", "div: rounding_mode '{}' is neither 'floor' nor 'trunc'",
        rounding_mode);
  return rounding_mode == "floor" ? floor_divide(a, b) : trunc_divide(a, b);
}

// A quotient of integers; unlike floating-point numbers they have none by 0.
template <class T>
static Tensor integer_quotient(const TensorArg& a, const TensorArg& b, Fault fault) {
  UserPosition here(a.where(), op_of<T>.name.data());
  if (is_floating(a.dtype()) || is_floating(b.dtype())) return call<T>({a, b});
  if (!b.is_scalar()) return call<T>({a, TensorArg(checked(b.tensor(), b.tensor(), fault), b.where())});
  check(b.scalar().to_bool(), "{}", fault_text(fault));
  return call<T>({a, b});
}
Tensor floor_divide(const TensorArg& a, const TensorArg& b) {
  return integer_quotient<FloorDivide>(a, b, Fault::kFloorDivide);
}
Tensor trunc_divide(const TensorArg& a, const TensorArg& b) {
  return integer_quotient<TruncDivide>(a, b, Fault::kTruncDivide);
}
Tensor fmod(const TensorArg& a, const TensorArg& b) { return integer_quotient<Fmod>(a, b, Fault::kFmod); }
Tensor remainder(const TensorArg& a, const TensorArg& b) {
  return integer_quotient<Remainder>(a, b, Fault::kRemainder);
}

Tensor pow(const TensorArg& base, const TensorArg& exponent) {
  UserPosition here(base.where());
  if (!exponent.is_scalar() || base.is_scalar() || is_complex(base.dtype()) || exponent.scalar().is_complex())
    return call<Pow>({base, exponent});
  const double e = exponent.scalar().to_double();
  check(is_floating(base.dtype()) || exponent.scalar().is_floating() || e >= 0,
        "pow: an integer tensor to the negative integer power {}; convert it to a floating dtype first", e);
  const bool stays = is_floating(base.dtype()) || !exponent.scalar().is_floating();
  if (e == 2 && stays) return square(base);
  if (e == 0.5) return sqrt(base);
  if (e == -0.5) return rsqrt(base);
  if (e == -1) return reciprocal(base);
  return call<Pow>({base, exponent});
}

Tensor atan2(const TensorArg& y, const TensorArg& x) { return call<Atan2>({y, x}); }
Tensor hypot(const TensorArg& a, const TensorArg& b) { return call<Hypot>({a, b}); }
Tensor copysign(const TensorArg& a, const TensorArg& b) { return call<CopySign>({a, b}); }
Tensor logaddexp(const TensorArg& a, const TensorArg& b) { return call<LogAddExp>({a, b}); }
Tensor xlogy(const TensorArg& x, const TensorArg& y) { return call<XLogY>({x, y}); }
Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  return call<Lerp>({start, end, weight});
}
Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value) {
  return call<AddCMul>({x, a, b, value});
}
Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value) {
  return call<AddCDiv>({x, a, b, value});
}
Tensor gcd(const TensorArg& a, const TensorArg& b) { return call<Gcd>({a, b}); }
Tensor lcm(const TensorArg& a, const TensorArg& b) { return call<Lcm>({a, b}); }
Tensor nextafter(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  check(!a.is_scalar() && !b.is_scalar() && a.dtype() == b.dtype(), "nextafter: expected two tensors of one dtype, got {} and {}",
        a.dtype(), b.dtype());
  return call<NextAfter>({a, b, a.dtype() == kFloat32 ? 29 : a.dtype() == kBFloat16 ? 45 : 0});
}
Tensor maximum(const TensorArg& a, const TensorArg& b) { return call<Maximum>({a, b}); }
Tensor minimum(const TensorArg& a, const TensorArg& b) { return call<Minimum>({a, b}); }
Tensor fmax(const TensorArg& a, const TensorArg& b) { return call<FMax>({a, b}); }
Tensor fmin(const TensorArg& a, const TensorArg& b) { return call<FMin>({a, b}); }

Tensor clamp(const TensorArg& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  UserPosition here(x.where());
  check(min || max, "clamp: at least one of min and max must be given");
  if (!max) return clamp_min(x, *min);
  return min ? call<Clamp>({x, *min, *max}) : clamp_max(x, *max);
}
Tensor clamp(const TensorArg& x, const Tensor& min, const Tensor& max) {
  UserPosition here(x.where());
  check(min.defined() || max.defined(), "clamp: at least one of min and max must be given");
  if (!max.defined()) return clamp_min(x, min);
  return min.defined() ? call<Clamp>({x, min, max}) : clamp_max(x, max);
}
Tensor clamp_min(const TensorArg& x, const TensorArg& min) { return call<ClampMin>({x, min}); }
Tensor clamp_max(const TensorArg& x, const TensorArg& max) { return call<ClampMax>({x, max}); }

Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b) {
  return call<Choose>({condition, a, b});
}
TensorList where(const TensorArg& condition) { return nonzero_numpy(condition); }
Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value) {
  UserPosition here(x.where());
  check(mask.dtype() == kBool, "masked_fill: the mask has dtype {}, expected bool", mask.dtype());
  check(value.dim() == 0, "masked_fill: the value has shape {}, expected a single number", value.sizes());
  // Every number is true or false.
  const bool to_bool = x.dtype() == kBool && value.is_scalar();
  Tensor out = where(mask, to_bool ? TensorArg(Scalar(value.scalar().to_bool())) : value, x);
  check(out.dtype() == x.dtype(), "masked_fill: a value of dtype {} does not fit a tensor of dtype {}", value.dtype(),
        x.dtype());
  return out;
}

Tensor operator+(const TensorArg& a, const TensorArg& b) { return call<Add>({a, b}); }
Tensor operator-(const TensorArg& a, const TensorArg& b) { return call<Sub>({a, b}); }
Tensor operator*(const TensorArg& a, const TensorArg& b) { return call<Mul>({a, b}); }
Tensor operator/(const TensorArg& a, const TensorArg& b) { return call<Div>({a, b}); }
Tensor operator%(const TensorArg& a, const TensorArg& b) { return remainder(a, b); }
Tensor operator-(const TensorArg& a) { return neg(a); }

// --- in place

const Tensor& Tensor::clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max, Where where) const {
  UserPosition here(where);
  check(min || max, "clamp_: at least one of min and max must be given");
  if (!max) return call_in_place<ClampMin>(*this, {{*this, where}, *min});
  if (!min) return call_in_place<ClampMax>(*this, {{*this, where}, *max});
  return call_in_place<Clamp>(*this, {{*this, where}, *min, *max});
}
const Tensor& Tensor::masked_fill_(const TensorArg& mask, const TensorArg& value) const {
  UserPosition here(mask.where());
  check(mask.dtype() == kBool, "masked_fill_: the mask has dtype {}, expected bool", mask.dtype());
  return call_in_place<Choose>(*this, {mask, value, *this});
}

OpFamily binary_ops() {
  static const Op* const ops[] = {
      &op_of<Add>,         &op_of<Sub>,      &op_of<Mul>,       &op_of<Div>,      &op_of<FloorDivide>,
      &op_of<TruncDivide>, &op_of<Fmod>,     &op_of<Remainder>, &op_of<Pow>,      &op_of<Atan2>,
      &op_of<Hypot>,       &op_of<CopySign>, &op_of<LogAddExp>, &op_of<XLogY>,    &op_of<Lerp>,
      &op_of<AddCMul>,     &op_of<AddCDiv>,  &op_of<Maximum>,   &op_of<Minimum>,  &op_of<FMax>,
      &op_of<FMin>,        &op_of<Clamp>,    &op_of<ClampMin>,  &op_of<ClampMax>, &op_of<Choose>,
      &op_of<Gcd>,         &op_of<Lcm>,      &op_of<NextAfter>};
  return ops;
}

}  // namespace sinter
