// Systems of equations, inverses and determinants: by the LU factorisation, with gradients of their own, since those through
// the factors cost more and lose more.
#include "sinter/ops/autocast.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/linalg_parts.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

Tensor matrix_operand(const char* op, const TensorArg& arg, bool takes_complex) {
  tensor_operand(op, arg);
  Tensor a = in_f32(arg).tensor();
  check(takes_complex || !is_complex(a.dtype()),
        "{}: not provided for complex matrices, got {}{}; linalg.solve, inv, det, slogdet and eig take "
        "them",
        op, a.dtype(), a.sizes());
  check(is_complex(a.dtype()) || is_floating(a.dtype()), "{}: expected a floating tensor, got {}", op, a.dtype());
  check(item_size(a.dtype()) >= 4, "{}: low precision dtypes are not supported, got {}; convert with .to(kFloat32)", op,
        a.dtype());
  check(a.dim() >= 2, "{}: expected matrices in the last two dimensions, got shape {}", op, a.sizes());
  return a;
}
Tensor square_operand(const char* op, const TensorArg& arg, bool takes_complex) {
  Tensor a = matrix_operand(op, arg, takes_complex);
  check(a.size(-2) == a.size(-1), "{}: the matrices must be square, got shape {}", op, a.sizes());
  return a;
}
std::pair<Tensor, Tensor> with_common_batch(const char* op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "{}: dtypes {} and {} differ; convert one with .to()", op, a.dtype(), b.dtype());
  Shape of_a = batch_with(a.sizes(), {}), of_b = batch_with(b.sizes(), {});
  if (of_a.same_as(of_b)) return {a, b};
  Shape batch = broadcast_shapes(op, of_a, of_b);
  return {a.expand(with_tail(batch, 0, {a.size(-2), a.size(-1)})),
          b.expand(with_tail(batch, 0, {b.size(-2), b.size(-1)}))};
}

namespace {

using factor::transposed;

// A⁻¹B, or A⁻ᵀB, from A = P L U of the same batch as B.
Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint) {
  if (!adjoint)
    return factor::solve_triangular(lu, factor::solve_triangular(lu, factor::permuted(b, pivots, true), false, true),
                                    true);
  Tensor x = factor::solve_triangular(transposed(lu), b, false);
  return factor::permuted(factor::solve_triangular(transposed(lu), x, true, true), pivots, false);
}

struct FailsAttrs {
  std::string fails;  // the function whose Error a singular matrix is
  SINTER_FIELDS(fails)
};

Type pivots_type(const Type& a) { return {kInt32, batch_with(a.shape, {a.shape.back()}), a.device}; }
Type batch_type(const Type& a, DType dtype) { return {dtype, batch_with(a.shape, {}), a.device}; }

// A sum of gradients, some of them undefined.
Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

// The real matrix that does to the parts of vectors, one after the other, what the complex one does to the vectors.
Tensor in_blocks(const Parts& a) {
  return cat({cat({a.re.tensor(), -a.im}, -1), cat({a.im.tensor(), a.re.tensor()}, -1)}, -2);
}
// The complex matrix whose parts lie one above the other.
Tensor from_blocks(const Tensor& x) {
  const Dim rows = x.size(-2) / 2;
  return joined(x.narrow(-2, 0, rows), x.narrow(-2, rows, rows));
}

// The pivots of a complex matrix, by elimination column after column, with the signs of the swaps: their product is the
// determinant.
Tensor complex_pivots(Tensor a) {
  TensorList pivots;
  const int64_t size = a.size(-1).to_int();
  for (int64_t k = 0; k < size; ++k) {
    Tensor place = argmax(abs(a.select(-1, 0)), -1, true).unsqueeze(-1);
    Tensor rows = place.expand(a.narrow(-2, 0, 1).sizes()), top = a.narrow(-2, 0, 1), row = gather(a, -2, rows);
    Tensor pivot = row.select(-2, 0).select(-1, 0);
    pivots.push_back(where(place.squeeze(-1).squeeze(-1) == 0, pivot, -pivot));
    Tensor below = scatter(a, -2, rows, top).narrow(-2, 1, a.size(-2) - 1);
    Tensor factors = below.narrow(-1, 0, 1) / where(pivot == 0, 1, pivot).unsqueeze(-1).unsqueeze(-1);
    a = below.narrow(-1, 1, a.size(-1) - 1) - factors * row.narrow(-1, 1, a.size(-1) - 1);
  }
  return pivots.empty() ? a.sum({-1}) : stack(pivots, -1);
}

// X of A X = B, with the factors of A.
struct SolveEx : Composite {
  static constexpr auto name = "_linalg_solve_ex";
  static constexpr auto autocast = Autocast::kWide;
  static constexpr int inputs = 2;
  using Attributes = FailsAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_system(call);
    auto &a = call.inputs[0], &b = call.inputs[1];
    return {Type{b.dtype, b.shape, b.device}, Type{a.dtype, a.shape, a.device}, pivots_type(a), batch_type(a, kInt32)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    auto f = factor::lu(inputs[0].tensor(), attrs.as<FailsAttrs>().fails);
    return {solve_factored(f.lu, f.pivots, inputs[1].tensor(), false), f.lu, f.pivots, f.info};
  }
  static TensorList grad(const GradCall& c) {
    const Tensor &lu = c.out(1), &pivots = c.out(2);
    Tensor right = c.grad(0).defined() ? solve_factored(lu, pivots, c.grad(0), true) : Tensor();
    return c.each(
        [&] {
          Tensor through = right.defined() ? matmul(right, transposed(c.out(0))).neg() : Tensor();
          return sum_of(through, c.grad(1).defined() ? factor::lu_gradient(lu, pivots, c.grad(1)) : Tensor());
        },
        [&] { return right; });
  }
  // As a system of real equations, whose factors are not those of A.
  static TensorList on_complex(const ComplexCall& c) {
    const Parts b = c.parts(1);
    auto out = call_many<SolveEx>({in_blocks(c.parts(0)), cat({b.re.tensor(), b.im.tensor()}, -2)}, c.attrs);
    return {from_blocks(out[0]), Tensor(), Tensor(), out[3]};
  }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 2e-3};
  SINTER_SAMPLES("x[4, 2, 2], x[4, 2, 3] |", "x[5, 3, 3], x[5, 3, 1] |", "x[1, 1], x[1, 1] |", "x[0, 0], x[0, 2] |",
                 "x[0, 2, 2], x[0, 2, 1] |")
};

struct InvEx : Composite {
  static constexpr auto name = "linalg_inv_ex";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = FailsAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}, batch_type(a, kInt32)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& a = inputs[0].tensor();
    auto f = factor::lu(a, attrs.as<FailsAttrs>().fails);
    return {solve_factored(f.lu, f.pivots, factor::identity_like(a).expand(a.sizes()), false), f.info};
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor t = transposed(c.out());
      return matmul(t, matmul(c.grad(), t)).neg();
    });
  }
  static TensorList on_complex(const ComplexCall& c) {
    auto out = call_many<InvEx>({in_blocks(c.parts(0))}, c.attrs);
    return {from_blocks(out[0].narrow(-1, 0, c[0].size(-1))), out[1]};
  }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 2e-3};
  SINTER_SAMPLES("x[4, 2, 2] |", "x[3, 3, 3] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

// -1 where the number of swaps is odd, else 1.
Tensor sign_of(const Tensor& pivots, DType dtype) {
  Tensor in_place = arange(pivots.size(-1), TensorOptions(pivots.dtype()).device(pivots.device())) + 1;
  return 1 - 2 * (sum(pivots != in_place, {-1}) % 2).to(dtype);
}

// d A⁻ᵀ for a number d for each matrix. A zero on U's diagonal becomes tiny, as in PyTorch.
Tensor scaled_inverse_transposed(const Tensor& lu, const Tensor& pivots, const Tensor& d) {
  Tensor diagonal = lu.diagonal(0, -2, -1);
  double eps = lu.dtype() == kFloat32 ? 0x1p-23 : 0x1p-52;
  Tensor near = lu + factor::diagonal_matrix(where(diagonal == 0, full_like(diagonal, eps), 0));
  Tensor right = (factor::identity_like(lu) * d.unsqueeze(-1).unsqueeze(-1)).expand(lu.sizes());
  return solve_factored(near, pivots, right, true);
}

struct Det : Composite {
  static constexpr auto name = "_linalg_det";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {batch_type(a, a.dtype), Type{a.dtype, a.shape, a.device}, pivots_type(a)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    auto f = factor::lu(inputs[0].tensor());
    return {prod(f.lu.diagonal(0, -2, -1), -1) * sign_of(f.pivots, f.lu.dtype()), f.lu, f.pivots};
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor through;
      if (c.grad(0).defined()) through = scaled_inverse_transposed(c.out(1), c.out(2), c.grad(0) * c.out(0));
      return sum_of(through, c.grad(1).defined() ? factor::lu_gradient(c.out(1), c.out(2), c.grad(1)) : Tensor());
    });
  }
  static TensorList on_complex(const ComplexCall& c) { return {prod(complex_pivots(c.whole(0)), -1), Tensor(), Tensor()}; }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 1e-3};
  SINTER_SAMPLES("x[3, 3] |", "x[4, 2, 2] |", "x[7, 5, 5] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

struct Slogdet : Composite {
  static constexpr auto name = "_linalg_slogdet";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    Type number = batch_type(a, a.dtype);
    return {number, number, Type{a.dtype, a.shape, a.device}, pivots_type(a)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    auto f = factor::lu(inputs[0].tensor());
    Tensor diagonal = f.lu.diagonal(0, -2, -1);
    return {prod(sign(diagonal), -1) * sign_of(f.pivots, f.lu.dtype()), log(abs(diagonal)).sum({-1}), f.lu, f.pivots};
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor through;
      if (c.grad(1).defined()) through = scaled_inverse_transposed(c.out(2), c.out(3), c.grad(1));
      if (c.grad(2).defined()) through = sum_of(through, factor::lu_gradient(c.out(2), c.out(3), c.grad(2)));
      return through.defined() ? through : zeros_like(c[0]);
    });
  }
  static TensorList on_complex(const ComplexCall& c) {
    Tensor pivots = complex_pivots(c.whole(0));
    return {prod(sign(pivots), -1), log(abs(pivots)).sum({-1}), Tensor(), Tensor()};
  }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 1e-3};
  SINTER_SAMPLES("x[3, 3] |", "x[4, 2, 2] |", "x[7, 5, 5] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

// Whether B holds a vector for each matrix: PyTorch's rule.
bool is_vector_for(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  if (b.dim() != a.dim() - 1) return false;
  for (int64_t d = 0; d < b.dim(); ++d)
    if (!(b.size(d) == a.size(d))) return false;
  return true;
}

Tensor right_hand_side(const char* op, const TensorArg& b) {
  tensor_operand(op, b);
  return in_f32(b).tensor();
}

}  // namespace

namespace linalg {

namespace {

std::tuple<Tensor, Tensor> solve_as(const char* op, const TensorArg& A, const TensorArg& B, bool left,
                                    const char* fails) {
  UserPosition here(A.where());
  Tensor a = square_operand(op, A, true), b = right_hand_side(op, B);
  check(b.dim() >= 1, "{}: the right-hand side needs a dimension, got shape {}", op, b.sizes());
  const bool vector = is_vector_for(a, b);
  check(!vector || left, "{}: a vector is a right-hand side only of left = true", op);
  if (vector) b = b.unsqueeze(-1);
  check(b.dim() >= 2 && (left ? b.size(-2) : b.size(-1)) == a.size(-1),
        "{}: matrices {} do not fit right-hand sides {}", op, a.sizes(), b.sizes());
  if (!left) a = transposed(a), b = transposed(b);
  std::tie(a, b) = with_common_batch(op, a, b);
  auto out = call_many<SolveEx>({a, b}, FailsAttrs{fails});
  Tensor x = left ? out[0] : transposed(out[0]);
  return {vector ? x.squeeze(-1) : x, out[3]};
}

}  // namespace

Tensor solve(const TensorArg& A, const TensorArg& B, bool left) {
  return std::get<0>(solve_as("linalg.solve", A, B, left, "linalg.solve"));
}
std::tuple<Tensor, Tensor> solve_ex(const TensorArg& A, const TensorArg& B, bool left, bool check_errors) {
  return solve_as("linalg.solve_ex", A, B, left, check_errors ? "linalg.solve_ex" : "");
}

Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper, bool left, bool unitriangular) {
  UserPosition here(A.where());
  Tensor a = square_operand("linalg.solve_triangular", A), b = matrix_operand("linalg.solve_triangular", B);
  check((left ? b.size(-2) : b.size(-1)) == a.size(-1),
        "linalg.solve_triangular: matrices {} do not fit right-hand sides {}", a.sizes(), b.sizes());
  std::tie(a, b) = with_common_batch("linalg.solve_triangular", a, b);
  if (left) return factor::solve_triangular(a, b, upper, unitriangular);
  return transposed(factor::solve_triangular(transposed(a), transposed(b), !upper, unitriangular));
}

Tensor inv(const TensorArg& A) {
  UserPosition here(A.where());
  return call_many<InvEx>({square_operand("linalg.inv", A, true)}, FailsAttrs{"linalg.inv"})[0];
}
std::tuple<Tensor, Tensor> inv_ex(const TensorArg& A, bool check_errors) {
  UserPosition here(A.where());
  auto out = call_many<InvEx>({square_operand("linalg.inv_ex", A, true)}, FailsAttrs{check_errors ? "linalg.inv_ex" : ""});
  return {out[0], out[1]};
}

Tensor det(const TensorArg& A) {
  UserPosition here(A.where());
  return call_many<Det>({square_operand("linalg.det", A, true)})[0];
}
std::tuple<Tensor, Tensor> slogdet(const TensorArg& A) {
  UserPosition here(A.where());
  auto out = call_many<Slogdet>({square_operand("linalg.slogdet", A, true)});
  return {out[0], out[1]};
}

Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B, bool left, bool adjoint) {
  UserPosition here(LU.where());
  const char* op = "linalg.lu_solve";
  Tensor lu = square_operand(op, LU), b = matrix_operand(op, B), p = tensor_operand(op, pivots);
  check((left ? b.size(-2) : b.size(-1)) == lu.size(-1), "{}: matrices {} do not fit right-hand sides {}", op,
        lu.sizes(), b.sizes());
  check(p.dim() == lu.dim() - 1 && p.size(-1) == lu.size(-1), "{}: pivots {} do not fit matrices {}", op, p.sizes(),
        lu.sizes());
  if (!left) b = transposed(b);
  std::tie(lu, b) = with_common_batch(op, lu, b);
  p = p.expand(batch_with(lu.sizes(), {lu.size(-1)}));
  Tensor x = solve_factored(lu, p, b, adjoint != !left);
  return left ? x : transposed(x);
}

}  // namespace linalg

Tensor inverse(const TensorArg& A) { return linalg::inv(A); }
Tensor det(const TensorArg& A) { return linalg::det(A); }
std::tuple<Tensor, Tensor> slogdet(const TensorArg& A) { return linalg::slogdet(A); }
Tensor logdet(const TensorArg& A) {
  UserPosition here(A.where());
  auto [sign, logarithm] = linalg::slogdet(A);
  if (is_complex(sign.dtype())) return complex(logarithm, angle(sign));
  return where(sign < 0, NAN, logarithm);
}
std::tuple<Tensor, Tensor> triangular_solve(const TensorArg& B, const TensorArg& A, bool upper, bool transpose,
                                            bool unitriangular) {
  UserPosition here(B.where());
  Tensor a = matrix_operand("triangular_solve", A);
  Tensor x = linalg::solve_triangular(transpose ? transposed(a) : a, B, upper != transpose, true, unitriangular);
  return {x, a.clone()};
}

OpFamily linear_system_ops() {
  static const Op* const ops[] = {&op_of<SolveEx>, &op_of<InvEx>, &op_of<Det>, &op_of<Slogdet>};
  return ops;
}

}  // namespace sinter
