#include "tests/idioms/idioms.h"

namespace {

struct LinalgIdioms : Idioms {};

TEST_F(LinalgIdioms, Products) {
  IDIOM(torch::matmul(x, m));
  IDIOM(x.matmul(m));
  IDIOM(x.mm(m));
  IDIOM(torch::mm(x, y.t()));
  IDIOM(x.matmul(v));
  IDIOM(torch::bmm(b, c));
  IDIOM(b.bmm(c));
  IDIOM(b.matmul(m));
  IDIOM(torch::mv(x, v));
  IDIOM(x.mv(v));
  IDIOM(torch::dot(v, v));
  IDIOM(v.dot(v));
  IDIOM(torch::outer(w, v));
  IDIOM(torch::ger(w, v));
  IDIOM(torch::inner(x, y));
  IDIOM(torch::addmm(y, x, m));
  IDIOM(torch::addmm(y, x, m, /*beta=*/0.5, /*alpha=*/2));
  IDIOM(v.addmv(m, v));
  IDIOM(torch::baddbmm(torch::zeros({2, 3, 5}), b, c));
  IDIOM(torch::addbmm(torch::zeros({3, 5}), b, c));
  IDIOM(torch::einsum("bij,bjk->bik", {b, c}));
  IDIOM(torch::einsum("ij,kj->ik", {x, y}));
  IDIOM(torch::einsum("ii", {m}));
  IDIOM(torch::einsum("i,j->ij", {w, v}));
  IDIOM(torch::einsum("bij->bj", {b}));
  IDIOM(torch::tensordot(b, x, {1, 2}, {0, 1}));
  IDIOM(torch::kron(x, m));
  IDIOM(torch::cross(formula({2, 3}, 1), formula({2, 3}, 2), 1));
  IDIOM(torch::chain_matmul({x, m, m}));
  IDIOM(torch::linear(x, m));
  IDIOM(torch::linear(x, y, w));
  IDIOM(torch::bilinear(x, x, formula({2, 4, 4}, 3), formula({2}, 4)));
  IDIOM(torch::scaled_dot_product_attention(b, b, b));
  IDIOM(torch::cdist(x, y));
  IDIOM(torch::cdist(x, y, 1));
  IDIOM(torch::pdist(x));
  IDIOM(torch::pairwise_distance(x, y));
  IDIOM(torch::cosine_similarity(x, y));
  IDIOM(torch::trace(m));
  IDIOM(m.trace());
  IDIOM_GRAD(torch::mm(x, m));
  IDIOM_GRAD(torch::einsum("ij,ik->jk", {x, y}));
}

TEST_F(LinalgIdioms, Systems) {
  IDIOM(torch::linalg_solve(m, v));
  IDIOM(torch::linalg_solve(s, x.t()));
  IDIOM(torch::inverse(m));
  IDIOM(m.inverse());
  IDIOM(torch::linalg_inv(m));
  IDIOM(torch::det(m));
  IDIOM(m.det());
  IDIOM(torch::slogdet(m));
  IDIOM(torch::logdet(s));
  IDIOM(torch::linalg_solve_triangular(m.triu(), x.t(), /*upper=*/true));
  IDIOM(torch::linalg_cholesky(s));
  IDIOM(torch::cholesky_solve(x.t(), torch::linalg_cholesky(s)));
  IDIOM(torch::pinverse(x));
  IDIOM(torch::linalg_pinv(x));
  IDIOM(torch::linalg_eigvalsh(s));
  IDIOM(std::get<0>(torch::linalg_eigh(s)));
  IDIOM(std::get<1>(torch::svd(x)));
  IDIOM(std::get<1>(torch::linalg_svd(x)));
  IDIOM(torch::linalg_svdvals(x));
  IDIOM_DO({
    auto [Q, R] = torch::linalg_qr(x.t());
    return Q.matmul(R);
  });
  IDIOM_DO({
    auto [U, S, Vh] = torch::linalg_svd(x, /*full_matrices=*/false);
    return U.matmul(torch::diag(S)).matmul(Vh);
  });
  IDIOM(std::get<0>(torch::linalg_lstsq(x.t(), v.unsqueeze(1))));
  IDIOM(torch::matrix_power(m, 3));
  IDIOM(torch::linalg_matrix_power(m, 2));
  IDIOM(torch::matrix_exp(m / 4));
  IDIOM(torch::linalg_matrix_rank(x));
  IDIOM(torch::linalg_norm(x));
  IDIOM(torch::linalg_vector_norm(x, 2, {1}));
  IDIOM(torch::linalg_matrix_norm(x));
  IDIOM(torch::linalg_cross(formula({2, 3}, 1), formula({2, 3}, 2)));
  IDIOM(torch::linalg_multi_dot({x, m, m}));
  IDIOM(torch::triangular_solve(x.t(), m.triu()));
  IDIOM(torch::linalg_cond(m));
  IDIOM(std::get<0>(torch::linalg_slogdet(m)));
  IDIOM_GRAD(torch::linalg_solve(s, x.t()));
  IDIOM_GRAD(torch::logdet(x.matmul(x.t()) + torch::eye(3)));
}

}  // namespace
