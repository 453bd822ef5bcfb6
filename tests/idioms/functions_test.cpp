#include "tests/idioms/idioms.h"

// Functions under the names of torch:: and at::, beside the methods of the other files.
namespace {

struct FunctionIdioms : Idioms {};

TEST_F(FunctionIdioms, Reductions) {
  IDIOM(torch::sum(x, torch::kFloat64));
  IDIOM(x.sum({0}, /*keepdim=*/true, torch::kFloat64));
  IDIOM(x.mean({0, 1}, /*keepdim=*/true));
  IDIOM(x.mean(/*dim=*/1, /*keepdim=*/true));
  IDIOM(x.prod(1, /*keepdim=*/true));
  IDIOM(x.norm(torch::Scalar(2), {1}));
  IDIOM(x.norm(2, {0, 1}, /*keepdim=*/true));
  IDIOM(torch::norm(x, 1));
  IDIOM(torch::norm(x, 2, {1}));
  IDIOM(x.norm().item<float>());
  IDIOM(x.std(/*unbiased=*/false));
  IDIOM(x.std({0}, /*unbiased=*/true, /*keepdim=*/true));
  IDIOM(x.var(/*dim=*/1, /*unbiased=*/false));
  IDIOM(torch::var(x, {0, 1}, /*correction=*/0));
  IDIOM(torch::var_mean(x, {0}));
  IDIOM(x.aminmax());
  IDIOM(x.amax({0}));
  IDIOM(x.amin(1, /*keepdim=*/true));
  IDIOM(std::get<0>(x.max(1, /*keepdim=*/true)));
  IDIOM(std::get<1>(torch::max(x, 1)));
  IDIOM(x.max(y));
  IDIOM(x.argmax(-1));
  IDIOM(torch::argmin(x, 0));
  IDIOM(x.logsumexp(1));
  IDIOM(torch::logsumexp(x, {0, 1}));
  IDIOM(torch::cumprod(x, 1));
  IDIOM(x.cumsum(1, torch::kFloat64));
  IDIOM(std::get<0>(x.cummax(1)));
  IDIOM(torch::cummin(x, 0));
  IDIOM(torch::trapz(x));
  IDIOM(torch::trapezoid(x, /*dx=*/0.5));
  IDIOM(torch::cumulative_trapezoid(x));
  IDIOM(torch::diff(x, 1, 0));
}

TEST_F(FunctionIdioms, Searches) {
  IDIOM(torch::std(x));
  IDIOM(torch::median(x));
  IDIOM(x.median(1));
  IDIOM(x.nanmedian());
  IDIOM(torch::quantile(x, 0.25));
  IDIOM(torch::quantile(x, torch::tensor({0.25f, 0.5f}), 1));
  IDIOM(torch::nanquantile(x, 0.5, 0));
  IDIOM(x.kthvalue(2, 1));
  IDIOM(x.mode(1));
  IDIOM(torch::topk(x, 2));
  IDIOM(x.topk(2, /*dim=*/1, /*largest=*/false, /*sorted=*/true));
  IDIOM(x.msort());
  IDIOM(torch::bincount(k.flatten()));
  IDIOM(torch::bincount(k.flatten(), u.flatten()));
  IDIOM(torch::searchsorted(torch::arange(5), n));
  IDIOM(torch::bucketize(x, torch::tensor({-1.0f, 0.0f, 1.0f})));
  IDIOM(std::get<0>(torch::unique_consecutive(labels)));
  IDIOM(mask.nonzero());
  IDIOM(mask.nonzero_static(4));
  IDIOM(torch::nonzero_static(mask, /*size=*/20, /*fill_value=*/-7));
  IDIOM(torch::where(mask, x, y));
  IDIOM(torch::where(mask, x, 0.0));
  IDIOM(x.where(mask, y));
}

TEST_F(FunctionIdioms, Products) {
  IDIOM(torch::bilinear(x, x, formula({2, 4, 4}, 21), formula({2}, 22)));
  IDIOM(torch::conv_tbc(seq, formula({3, 6, 2}, 23), formula({2}, 24), /*pad=*/1));
  IDIOM(torch::norm_except_dim(b, 2, 0));
  IDIOM(torch::norm_except_dim(b));
}

TEST_F(FunctionIdioms, Conditions) {
  IDIOM(torch::isclose(x, y));
  IDIOM(x.equal(y));
  IDIOM(torch::equal(x, x));
  IDIOM(torch::eq(x, y));
  IDIOM(x.eq(0));
  IDIOM(x.lt(y).any());
  IDIOM(torch::all(mask));
  IDIOM(torch::any(mask, 1));
  IDIOM(mask.all(1, /*keepdim=*/true));
  IDIOM(x.isnan().any());
  IDIOM(torch::isinf(x / 0));
  IDIOM(torch::isposinf(x / 0));
  IDIOM(torch::isneginf(x / 0));
  IDIOM(torch::isreal(x));
  IDIOM(torch::signbit(x));
}

TEST_F(FunctionIdioms, OfOneTensor) {
  IDIOM(torch::negative(x));
  IDIOM(torch::positive(x));
  IDIOM(torch::square(x));
  IDIOM(torch::rsqrt(p));
  IDIOM(torch::reciprocal(x));
  IDIOM(torch::exp2(x));
  IDIOM(torch::expm1(x));
  IDIOM(torch::log1p(p));
  IDIOM(torch::log2(p));
  IDIOM(torch::logit(u, 1e-6));
  IDIOM(torch::erfc(x));
  IDIOM(torch::erfinv(u));
  IDIOM(torch::lgamma(p));
  IDIOM(torch::digamma(p));
  IDIOM(torch::polygamma(1, p));
  IDIOM(torch::mvlgamma(p + 2, 2));
}

TEST_F(FunctionIdioms, OfTwoTensors) {
  IDIOM(torch::igamma(p, u));
  IDIOM(torch::igammac(p, u));
  IDIOM(torch::ldexp(x, torch::tensor(2)));
  IDIOM(torch::copysign(x, -1));
  IDIOM(torch::hypot(x, y));
  IDIOM(torch::arctan2(x, y));
  IDIOM(torch::fmod(x, 0.7));
  IDIOM(torch::remainder(x, y));
  IDIOM(x.remainder(0.7));
  IDIOM(torch::floor_divide(x, 0.3));
  IDIOM(torch::div(x, y, "trunc"));
  IDIOM(x.div(y, /*rounding_mode=*/"floor"));
  IDIOM(torch::divide(x, 2));
  IDIOM(torch::subtract(x, y, 2));
  IDIOM(torch::sub(x, y, /*alpha=*/2));
  IDIOM(torch::addcmul(x, y, p, /*value=*/0.1));
  IDIOM(torch::addcdiv(x, y, p, /*value=*/0.1));
  IDIOM(torch::lerp(x, y, u));
  IDIOM(x.pow(torch::tensor(3)));
  IDIOM(torch::clamp(x, c10::nullopt, 0.5));
  IDIOM(x.clamp(/*min=*/0));
  IDIOM(x.clamp(y - 1, y + 1));
  IDIOM(torch::round(x));
  IDIOM(torch::round(x, /*decimals=*/1));
  IDIOM(torch::trunc(x));
  IDIOM(torch::fix(x));
  IDIOM(torch::ceil(x));
  IDIOM(torch::bitwise_and(n, k));
  IDIOM(torch::bitwise_left_shift(k, 2));
  IDIOM(n ^ k);
  IDIOM(2 / p);
  IDIOM(x % 0.7);
  IDIOM(torch::logaddexp2(x, y));
  IDIOM(torch::rad2deg(x));
  IDIOM(torch::nan_to_num(x / 0, 1, 2, -2));
  IDIOM(torch::fmin(x, y));
}

TEST_F(FunctionIdioms, Activations) {
  IDIOM(torch::softmax(x, -1, torch::kFloat64));
  IDIOM(x.softmax(1, torch::kDouble));
  IDIOM(torch::hardswish(x));
  IDIOM(torch::hardsigmoid(x));
  IDIOM(torch::celu(x));
  IDIOM(torch::prelu(x, v));
  IDIOM(torch::rrelu(x));
  IDIOM(torch::elu(x, 0.5));
  IDIOM(torch::leaky_relu(x, 0.1));
  IDIOM(torch::hardshrink(x, 0.3));
  IDIOM(torch::hardtanh(x, -0.5, 0.5));
}

TEST_F(FunctionIdioms, Layers) {
  IDIOM(torch::embedding(x, rows));
  IDIOM(torch::renorm(x, 2, 0, 1));
  IDIOM(torch::cosine_embedding_loss(x, y, w.sign()));
  IDIOM(torch::hinge_embedding_loss(x, y.sign()));
  IDIOM(torch::margin_ranking_loss(v, v.flip(0), v.sign()));
  IDIOM(torch::triplet_margin_loss(x, y, p));
  IDIOM(torch::huber_loss(x, y));
  IDIOM(torch::soft_margin_loss(x, y.sign()));
  IDIOM(torch::multilabel_margin_loss(x, k));
  IDIOM(torch::poisson_nll_loss(x, p, true, false, 1e-8, at::Reduction::Mean));
  IDIOM(torch::ctc_loss(formula({5, 2, 4}, 1).log_softmax(2), torch::tensor({{1, 2}, {3, 1}}), torch::tensor({5, 5}), torch::tensor({2, 2})));
  IDIOM(torch::im2col(img, {2, 2}, {1, 1}, {0, 0}, {1, 1}));
  IDIOM(torch::col2im(formula({1, 8, 12}, 3), {4, 5}, {2, 2}, {1, 1}, {0, 0}, {1, 1}));
  IDIOM(torch::conv3d(vol, formula({2, 2, 2, 2, 2}, 1)));
  IDIOM(torch::convolution(img, formula({4, 3, 3, 3}, 1), {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1));
  IDIOM(torch::conv_transpose1d(seq, formula({3, 2, 3}, 1)));
  IDIOM(torch::conv_transpose3d(vol, formula({2, 2, 2, 2, 2}, 1)));
  IDIOM(torch::avg_pool1d(seq, 2));
  IDIOM(torch::avg_pool3d(vol, 2));
  IDIOM(torch::max_pool3d(vol, 2));
  IDIOM(torch::max_pool2d_with_indices(img, {2, 2}));
  IDIOM(torch::adaptive_avg_pool1d(seq, 2));
  IDIOM(torch::adaptive_max_pool2d(img, {2, 2}));
  IDIOM(torch::upsample_nearest1d(seq, {12}));
  IDIOM(torch::upsample_bicubic2d(img, {10, 12}, false));
  IDIOM(torch::upsample_linear1d(seq, {12}, true));
  IDIOM(torch::upsample_trilinear3d(vol, {4, 4, 4}, false));
  IDIOM(torch::instance_norm(img, {}, {}, {}, {}, true, 0.1, 1e-5, false));
  IDIOM(torch::native_layer_norm(x, {4}, v, v, 1e-5));
  IDIOM(torch::rms_norm(x, {4}));
  IDIOM(torch::channel_shuffle(formula({1, 4, 2, 2}, 1), 2));
  IDIOM(torch::pixel_unshuffle(formula({1, 1, 4, 4}, 1), 2));
  IDIOM(torch::feature_dropout(img, 0.5, false));
  IDIOM(torch::alpha_dropout(x, 0.5, false));
}

TEST_F(FunctionIdioms, Fourier) {
  IDIOM(torch::view_as_real(torch::fft::fft(v)));
  IDIOM(torch::fft::irfft(torch::fft::rfft(v)));
  IDIOM(torch::fft::fftfreq(5));
  IDIOM(torch::fft::fftshift(v));
  IDIOM(torch::view_as_real(torch::fft::fft2(x)));
  IDIOM(torch::view_as_real(torch::fft::rfftn(x)));
  IDIOM(torch::real(torch::complex(x, y)));
  IDIOM(torch::imag(torch::complex(x, y)));
  IDIOM(torch::abs(torch::complex(x, y)));
  IDIOM(torch::angle(torch::complex(x, y)));
  IDIOM(torch::view_as_real(torch::polar(p, y)));
  IDIOM(torch::hann_window(6));
  IDIOM(torch::hamming_window(6, /*periodic=*/false));
  IDIOM(torch::bartlett_window(5));
  IDIOM(torch::blackman_window(5));
  IDIOM(torch::kaiser_window(5));
}

TEST_F(FunctionIdioms, Linalg) {
  IDIOM(torch::linalg_tensorinv(torch::eye(4).reshape({2, 2, 4}), 2));
  IDIOM(torch::linalg_lu(m));
  IDIOM(torch::linalg_lu_factor(m));
  IDIOM(torch::linalg_vecdot(x, y));
  IDIOM(torch::cholesky_inverse(torch::linalg_cholesky(s)));
  IDIOM(torch::vdot(v, v));
  IDIOM(torch::addmv(w, x, v));
  IDIOM(torch::addr(x, w, v));
  IDIOM(v.addr(v, v));
  IDIOM(torch::linalg_tensorsolve(torch::eye(4).reshape({4, 2, 2}), v));
  IDIOM(torch::linalg_householder_product(x.t(), w));
  IDIOM(torch::linalg_diagonal(m));
  IDIOM(torch::linalg_vander(v));
  IDIOM(torch::linalg_cholesky_ex(s));
  IDIOM(torch::linalg_inv_ex(m));
  IDIOM(torch::linalg_solve_ex(m, v));
  IDIOM(torch::linalg_lu_factor_ex(m));
  IDIOM(torch::lu_unpack(std::get<0>(torch::linalg_lu_factor(m)), std::get<1>(torch::linalg_lu_factor(m))));
  IDIOM(torch::lu_solve(x.t(), std::get<0>(torch::linalg_lu_factor(m)), std::get<1>(torch::linalg_lu_factor(m))));
  IDIOM(torch::frobenius_norm(x, {0, 1}));
  IDIOM(torch::nuclear_norm(x));
}

TEST_F(FunctionIdioms, Shapes) {
  IDIOM(torch::broadcast_tensors({v, w.unsqueeze(1)})[0]);
  IDIOM(torch::stack({v, v}, /*dim=*/-1));
  IDIOM(torch::atleast_1d(one));
  IDIOM(torch::atleast_3d(x));
  IDIOM(torch::ravel(x));
  IDIOM(torch::movedim(b, {0, 1}, {1, 0}));
  IDIOM(torch::moveaxis(b, {0}, {2}));
  IDIOM(torch::swapaxes(b, 0, 1));
  IDIOM(torch::unflatten(x, 1, {2, 2}));
  IDIOM(x.unsafe_chunk(2, 1));
  IDIOM(x.unsafe_split(2, 1));
  IDIOM(torch::vsplit(m, 2));
  IDIOM(torch::dsplit(b, 2));
  IDIOM(torch::tensor_split(x, {1, 2}, 1));
  IDIOM(x.expand({2, 3, 4}));
  IDIOM(x.repeat_interleave(2, 0));
  IDIOM(torch::tril(m, -1));
  IDIOM(torch::triu_indices(3, 3));
  IDIOM(torch::rot90(x));
  IDIOM(torch::diag(x, 1));
  IDIOM(torch::diag_embed(v, 1));
  IDIOM(torch::diagonal(b, 0, 1, 2));
  IDIOM(torch::diagonal_scatter(m, v));
  IDIOM(torch::as_strided(x, {2, 2}, {1, 2}));
  IDIOM(torch::index_fill(x, 0, rows, 1.5));
  IDIOM(torch::index_add(x, 0, rows, torch::ones({2, 4})));
  IDIOM(torch::index_copy(x, 0, rows, torch::ones({2, 4})));
  IDIOM(torch::index_reduce(x, 0, rows, torch::ones({2, 4}), "prod"));
  IDIOM(torch::masked_scatter(x, mask, y));
  IDIOM(torch::scatter(x, 1, k, 1.5));
  IDIOM(torch::scatter(x, 1, k, y));
  IDIOM(torch::take(x, torch::tensor({1, 2})));
  IDIOM(torch::put(x, torch::tensor({1, 2}), torch::ones({2})));
  IDIOM(x.index_put({rows}, torch::ones({2, 4})));
  IDIOM(x.select(0, 0).unsqueeze(0));
  IDIOM(x.narrow_copy(0, 0, 1));
  IDIOM(x.diff(1, 1));
}

TEST_F(FunctionIdioms, Properties) {
  IDIOM(x.is_quantized());
  IDIOM(x.requires_grad());
  IDIOM(x.data().add(1));
  IDIOM(x.detach().add_(0).sizes());
  IDIOM(x.variable_data());
  IDIOM(x.tensor_data());
  IDIOM(x.to(torch::TensorOptions().dtype(torch::kFloat64).device(torch::kCPU)));
  IDIOM(x.to(torch::kCPU, torch::kFloat64));
  IDIOM(x.to(torch::kFloat64, torch::kStrided == torch::kStrided));
  IDIOM(x.to(y.dtype()));
  IDIOM(x.to(x.device(), x.scalar_type()));
  IDIOM(x.options().dtype(torch::kInt64).requires_grad(false).dtype() == torch::kInt64);
  IDIOM(x.sizes().size() == 2);
  IDIOM(x.sizes()[0] * 2);
  IDIOM(x.sizes().rbegin()[0]);
  IDIOM(x.sizes().empty());
  IDIOM(x.strides().size());
  IDIOM(x.numel() * sizeof(float));
  IDIOM(torch::elementSize(torch::kDouble));
  IDIOM(torch::isIntegralType(torch::kInt, false));
  IDIOM(torch::get_default_dtype() == torch::kFloat);
  IDIOM(at::isFloatingType(at::kFloat));
}

TEST_F(FunctionIdioms, Creation) {
  IDIOM(at::zeros({2}, at::kFloat));
  IDIOM(at::ones({2}, at::TensorOptions().dtype(at::kInt)));
  IDIOM(at::ones_like(x));
  IDIOM(at::arange(3));
  IDIOM(at::empty({2, 3}, x.options()).sizes());
  IDIOM(at::matmul(x, m));
  IDIOM(at::cat({x, y}, 1));
  IDIOM(at::Tensor(x));
  IDIOM(at::mean(x, {0}));
  IDIOM(at::sum(x, 1));
  IDIOM(at::where(mask, x, y));
  IDIOM(torch::autograd::Variable(x));
  IDIOM(torch::Tensor(x.clone()).sum());
  IDIOM(torch::scalar_tensor(2.5));
  IDIOM(torch::scalar_tensor(2, torch::kInt64));
  IDIOM(torch::zeros({2, 3}, torch::requires_grad(true)).requires_grad());
  IDIOM(torch::ones({2, 2}, torch::layout(torch::kStrided)));
  IDIOM(torch::ones({2, 2}, torch::device({torch::kCPU, 0})));
  IDIOM(torch::ones({2}, torch::kFloat64).dtype() == torch::kDouble);
  IDIOM(torch::full({}, 3.5));
  IDIOM(torch::full({2, 2}, 3, torch::dtype(torch::kInt)));
  IDIOM(torch::linspace(0, 10, 5).to(torch::kInt));
  IDIOM(torch::arange(1.0, 2.0, 0.25));
  IDIOM(torch::tensor(x.sizes().vec()));
  IDIOM(torch::tensor(c10::ArrayRef<int64_t>({1, 2})));
  IDIOM(torch::tensor(std::vector<int>{1, 2}));
  IDIOM(torch::tensor(1.5f).item<float>());
  IDIOM(torch::eye(3, torch::kFloat64));
  IDIOM(torch::randperm(5).sum());
  IDIOM(torch::randint(0, 5, {3}).sizes());
  IDIOM(torch::rand({2, 3}, torch::TensorOptions().dtype(torch::kFloat64)).sizes());
  IDIOM(torch::normal(0.0, 1.0, {2, 2}).sizes());
  IDIOM(torch::poisson(p).sizes());
  IDIOM(torch::binomial(p, u).sizes());
  IDIOM(torch::rand_like(x, torch::kFloat64).sizes());
}

}  // namespace
