// The square root of positive matrices and the polar decomposition, by eigenvalues and singular values, with gradients
// of their own: those through the vectors divide by differences of the values, which may be equal.
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

using factor::transposed;

// Y of H Y + Y H = X, H being the symmetric part of the first operand. Its gradients are other such equations.
struct SolveLyapunov : Composite {
  static constexpr auto name = "solve_lyapunov";
  static constexpr auto autocast = Autocast::kWide;
  static constexpr int inputs = 2;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_system(call);
    check(call.shape(0) == call.shape(1), "{}: matrices {} and {} differ in shape", call.name(), call.shape(0),
          call.shape(1));
    auto& x = call.inputs[1];
    return {Type{x.dtype, x.shape, x.device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    const Tensor &h = inputs[0].tensor(), &x = inputs[1].tensor();
    auto [values, vectors] = factor::eigh(0.5 * (h + transposed(h)));
    Tensor inner = matmul(transposed(vectors), matmul(x, vectors)) / (values.unsqueeze(-1) + values.unsqueeze(-2));
    return {matmul(vectors, matmul(inner, transposed(vectors)))};
  }
  static TensorList grad(const GradCall& c) {
    Tensor back = call<SolveLyapunov>({c[0], c.grad()});
    return c.each(
        [&] {
          Tensor y = transposed(c.out()), g = matmul(back, y) + matmul(y, back);
          return -0.5 * (g + transposed(g));
        },
        [&] { return back; });
  }
  static constexpr Domain domain_of_inputs{0.4, 3};
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 5e-3};
  SINTER_SAMPLES("x[3, 1, 1], x[3, 1, 1] |", "x[4, 2, 2], x[4, 2, 2] |", "x[1, 1], x[1, 1] |", "x[0, 0], x[0, 0] |",
                 "x[0, 2, 2], x[0, 2, 2] |")
};

struct MatrixSqrtH : Composite {
  static constexpr auto name = "linalg_matrix_sqrth";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    auto [values, vectors] = factor::eigh(inputs[0].tensor());
    // What rounding makes of a zero may be negative.
    return {matmul(vectors * sqrt(clamp_min(values, 0)).unsqueeze(-2), transposed(vectors))};
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return call<SolveLyapunov>({c.out(), 0.5 * (c.grad() + transposed(c.grad()))}); });
  }
  static constexpr Domain domain_of_inputs{0.4, 3};
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  SINTER_SAMPLES("x[3, 1, 1] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

// U and H with A = U H.
struct Polar : Composite {
  static constexpr auto name = "linalg_polar";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_matrices(call);
    auto& a = call.inputs[0];
    const Dim m = a.shape[a.shape.size() - 2], n = a.shape.back();
    check(n <= m, "{}: the matrices must have at least as many rows as columns, got shape {}", call.name(), a.shape);
    return {Type{a.dtype, a.shape, a.device}, Type{a.dtype, batch_with(a.shape, {n, n}), a.device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    auto [u, s, vt] = factor::svd(inputs[0].tensor());
    return {matmul(u, vt), matmul(transposed(vt) * s.unsqueeze(-2), vt)};
  }
  // U moves by a skew matrix Ω, H Ω + Ω H being what of Uᵀ dA is skew, twice, and outside of its columns by dA H⁻¹; H
  // by Uᵀ dA - Ω H.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      const Tensor &u = c.out(0), &h = c.out(1), &gu = c.grad(0), &gh = c.grad(1);
      Tensor turned;
      if (gu.defined()) turned = matmul(transposed(u), gu);
      if (gh.defined()) turned = turned.defined() ? turned - matmul(gh, h) : -matmul(gh, h);
      Tensor inner = call<SolveLyapunov>({h, turned - transposed(turned)});
      Tensor out = matmul(u, gh.defined() ? gh + inner : inner);
      if (!gu.defined() || u.size(-2) == u.size(-1)) return out;
      Tensor outside = gu - matmul(u, matmul(transposed(u), gu));
      return out + std::get<0>(linalg::solve_ex(h, outside, /*left=*/false));
    });
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  // The batch is the longest dimension: matrices of equal rows have no U of their own.
  SINTER_SAMPLES("x[4, 2, 2] |", "x[4, 3, 2] |", "x[6, 1] |", "x[1, 1] |", "x[3, 0] |", "x[0, 0] |", "x[0, 2, 2] |")
};

}  // namespace

namespace factor {

Tensor matrix_sqrth(const Tensor& a) { return call<MatrixSqrtH>({a}); }
std::tuple<Tensor, Tensor> polar(const Tensor& a) {
  auto out = call_many<Polar>({a});
  return {out[0], out[1]};
}

}  // namespace factor

OpFamily matrix_root_ops() {
  static const Op* const ops[] = {&op_of<SolveLyapunov>, &op_of<MatrixSqrtH>, &op_of<Polar>};
  return ops;
}

}  // namespace sinter
