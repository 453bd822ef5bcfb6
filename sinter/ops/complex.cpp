// The two looks between complex tensors and pairs of real ones, and the functions that make and take apart complex numbers.
#include <numbers>

#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// What has no samples: the table of tests draws real operands and compares real results.
constexpr std::span<const std::string_view> kNoSamples{};

Elem refuse_element(const ElementBuilder& b) {
  SINTER_INTERNAL_ASSERT(false, "{}: a kernel computes with real numbers alone", b.call.op.name);
}

struct ViewAsReal : View {
  static constexpr auto name = "view_as_real";
  static constexpr bool sees_complex = true;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    const Type& x = call.inputs[0];
    check(is_complex(x.dtype), "view_as_real: expected a complex tensor, got {}", x);
    Shape shape = x.shape;
    shape.push_back(2);
    return {Type{real_dtype(x.dtype), shape, x.device}};
  }
  static bool alias(const OpCall&, const IntList& strides, IntList& out_strides, int64_t& offset) {
    out_strides.clear();
    for (int64_t stride : strides) out_strides.push_back(2 * stride);
    out_strides.push_back(1);
    offset = 0;
    return true;
  }
  static Elem element(ElementBuilder& b) { return refuse_element(b); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return look_at_pairs(c.grad()); });
  }
  static constexpr auto samples = kNoSamples;
};

struct ViewAsComplex : View {
  static constexpr auto name = "view_as_complex";
  static constexpr bool sees_complex = true;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    const Type& x = call.inputs[0];
    check(x.dtype == kFloat32 || x.dtype == kFloat64, "view_as_complex: expected f32 or f64, got {}", x);
    check(x.rank() > 0 && x.shape.back() == 2, "view_as_complex: the last dimension of {} must have size 2: the two parts", x);
    return {Type{complex_dtype(x.dtype), Shape(x.shape.begin(), x.shape.end() - 1), x.device}};
  }
  static bool alias(const OpCall& call, const IntList& strides, IntList& out_strides, int64_t& offset) {
    offset = 0;
    out_strides.clear();
    bool together = strides.back() == 1;
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      together = together && (strides[d] % 2 == 0 || possibly_le(call.shape(0)[d], 1));
      out_strides.push_back(strides[d] / 2);
    }
    return together;
  }
  static Elem element(ElementBuilder& b) { return refuse_element(b); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return view_as_real(c.grad()); });
  }
  static constexpr auto samples = kNoSamples;
};

// The size of a complex number. Its gradient at 0 is 0, which hypot's is not.
struct Modulus : Pointwise<Modulus> {
  static constexpr auto name = "modulus";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), hypot(x, y))
  static TensorList grad(const GradCall& c) {
    auto share = [&](const TensorArg& part) { return c.grad() * where(c.out() == 0, 0, part / c.out()); };
    return c.each([&] { return share(c[0]); }, [&] { return share(c[1]); });
  }
};

// The part of a complex tensor, a look at it.
Tensor part(const char* function, const TensorArg& x, int64_t which) {
  UserPosition here(x.where(), function);
  return select(view_as_real(x), -1, which);
}

DType dtype_of_parts(const char* function, const TensorArg& a, const TensorArg& b) {
  check(a.dtype() == b.dtype() && (a.dtype() == kFloat32 || a.dtype() == kFloat64),
        "{}: expected two tensors of f32 or of f64, got {} and {}", function, a.dtype(), b.dtype());
  return a.dtype();
}

}  // namespace

Tensor view_as_real(const TensorArg& x) { return call<ViewAsReal>({x}); }
Tensor view_as_complex(const TensorArg& x) { return call<ViewAsComplex>({x}); }

Tensor real(const TensorArg& x) { return is_complex(x.dtype()) ? part("real", x, 0) : x.tensor(); }
Tensor imag(const TensorArg& x) {
  UserPosition here(x.where());
  check(is_complex(x.dtype()), "imag: a tensor of {} has no imaginary part", x.dtype());
  return part("imag", x, 1);
}

Tensor complex(const TensorArg& real, const TensorArg& imag) {
  UserPosition here(real.where());
  dtype_of_parts("complex", real, imag);
  return joined(real, imag);
}
Tensor polar(const TensorArg& abs, const TensorArg& angle) {
  UserPosition here(abs.where());
  dtype_of_parts("polar", abs, angle);
  return joined(abs * cos(angle), abs * sin(angle));
}

Tensor conj_physical(const TensorArg& x) {
  UserPosition here(x.where());
  return is_complex(x.dtype()) ? joined(real(x), -imag(x)) : x.tensor();
}
Tensor conj(const TensorArg& x) { return conj_physical(x); }
Tensor adjoint(const TensorArg& x) {
  UserPosition here(x.where());
  return conj(mT(x));
}
Tensor resolve_conj(const TensorArg& x) { return x.tensor(); }
Tensor resolve_neg(const TensorArg& x) { return x.tensor(); }

Tensor angle(const TensorArg& x) {
  UserPosition here(x.where());
  if (is_complex(x.dtype())) return atan2(imag(x), real(x));
  Tensor value = to(x, is_floating(x.dtype()) ? x.dtype() : kFloat32);
  return where(isnan(value), value, where(value < 0, full_like(value, std::numbers::pi), 0));
}

Tensor modulus(const TensorArg& re, const TensorArg& im) { return call<Modulus>({re, im}); }

Tensor isreal(const TensorArg& x) {
  UserPosition here(x.where());
  return is_complex(x.dtype()) ? imag(x) == 0 : ones(x.sizes(), x.tensor().options().dtype(kBool));
}

OpFamily complex_ops() {
  static const Op* const ops[] = {&op_of<ViewAsReal>, &op_of<ViewAsComplex>, &op_of<Modulus>};
  return ops;
}

}  // namespace sinter
