// The functions that people call, and their gradients, against what PyTorch recorded (tools/record_composites.py, where
// each case has its counterpart of the same name): run eagerly, and traced and evaluated by the referee.
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/graph/trace.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/ops/composites.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::Composite;
using testing::list;
using testing::X;

TensorList batch_norm_case(X x, bool training) {
  Tensor mean = x[3].clone(), var = x[4].clone();
  return {batch_norm(x[0], mean, var, x[1], x[2], training, 0.3), mean, var};
}

// Symmetric and positive-definite.
Tensor positive(const Tensor& x) { return matmul(x, x.transpose(-2, -1)) + eye(x.size(-1)); }
using GridMode = GridSampleMode;
using GridPad = GridSamplePaddingMode;
using BagMode = EmbeddingBagMode;

std::function<TensorList(X)> sampled(GridMode mode, GridPad padding, bool align_corners) {
  return [=](X x) -> TensorList { return {grid_sample(x[0], x[1], mode, padding, align_corners)}; };
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kSum = Reduction::kSum;

std::vector<Composite> first_composites() {
  return {
      // --- products
      {"matmul_1d_1d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_2d_1d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_1d_2d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_2d_2d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_3d_1d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_1d_3d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_3d_2d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_2d_3d", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"matmul_broadcast", [](X x) -> TensorList { return {matmul(x[0], x[1])}; }},
      {"linear", [](X x) -> TensorList { return {linear(x[0], x[1], x[2])}; }},
      {"linear_no_bias", [](X x) -> TensorList { return {linear(x[0], x[1])}; }},
      {"bmm", [](X x) -> TensorList { return {bmm(x[0], x[1])}; }},
      {"addmm", [](X x) -> TensorList { return {addmm(x[0], x[1], x[2], 0.5, 2)}; }},
      {"baddbmm", [](X x) -> TensorList { return {baddbmm(x[0], x[1], x[2], 0.5, 2)}; }},
      {"outer", [](X x) -> TensorList { return {outer(x[0], x[1])}; }},
      {"dot", [](X x) -> TensorList { return {dot(x[0], x[1])}; }},
      {"mv", [](X x) -> TensorList { return {mv(x[0], x[1])}; }},
      {"addmv", [](X x) -> TensorList { return {addmv(x[0], x[1], x[2], 2, -1)}; }},
      {"tensordot", [](X x) -> TensorList { return {tensordot(x[0], x[1], {1, 2}, {0, 1})}; }},
      {"einsum_batched", [](X x) -> TensorList { return {einsum("bij,bjk->bik", x)}; }},
      {"einsum_trace", [](X x) -> TensorList { return {einsum("ii->", x)}; }},
      {"einsum_three", [](X x) -> TensorList { return {einsum("ab,bc,cd->ad", x)}; }},
      {"einsum_ellipsis", [](X x) -> TensorList { return {einsum("...i,...i->...", x)}; }},
      {"einsum_implicit", [](X x) -> TensorList { return {einsum("bca,cb", x)}; }},
      // --- linear algebra
      {"solve", [](X x) -> TensorList { return {linalg::solve(x[0], x[1])}; }},
      {"solve_vector", [](X x) -> TensorList { return {linalg::solve(x[0], x[1])}; }},
      {"solve_right", [](X x) -> TensorList { return {linalg::solve(x[0], x[1], false)}; }},
      {"solve_triangular", [](X x) -> TensorList { return {linalg::solve_triangular(x[0], x[1], true, false, true)}; }},
      {"inv", [](X x) -> TensorList { return {linalg::inv(x[0])}; }},
      {"det", [](X x) -> TensorList { return {linalg::det(x[0])}; }},
      {"slogdet", [](X x) -> TensorList { return {std::get<1>(linalg::slogdet(x[0]))}; }},
      {"logdet", [](X x) -> TensorList { return {logdet(positive(x[0]))}; }},
      {"cholesky", [](X x) -> TensorList { return {linalg::cholesky(positive(x[0]))}; }},
      {"cholesky_leaf", [](X x) -> TensorList { return {linalg::cholesky(x[0], true)}; }},
      {"cholesky_solve", [](X x) -> TensorList { return {cholesky_solve(x[0], x[1].tril() + 3 * eye(3))}; }},
      {"cholesky_inverse", [](X x) -> TensorList { return {cholesky_inverse(x[0].tril() + 3 * eye(3))}; }},
      {"qr", [](X x) { return list(linalg::qr(x[0])); }},
      {"qr_wide", [](X x) { return list(linalg::qr(x[0], "complete")); }},
      {"svd_rebuilt",
       [](X x) -> TensorList {
         auto [u, s, vh] = linalg::svd(x[0], false);
         return {matmul(u * sqrt(s).unsqueeze(-2), vh), s};
       }},
      {"svdvals", [](X x) -> TensorList { return {linalg::svdvals(x[0])}; }},
      {"eigh_rebuilt",
       [](X x) -> TensorList {
         auto [w, v] = linalg::eigh(x[0] + x[0].transpose(-2, -1));
         return {matmul(v * sin(w).unsqueeze(-2), v.transpose(-2, -1)), w};
       }},
      {"eigvalsh_leaf", [](X x) -> TensorList { return {linalg::eigvalsh(x[0], "U")}; }},
      {"pinv", [](X x) -> TensorList { return {linalg::pinv(x[0])}; }},
      {"pinv_hermitian", [](X x) -> TensorList { return {linalg::pinv(x[0] + x[0].transpose(-2, -1), {}, {}, true)}; }},
      {"lstsq", [](X x) -> TensorList { return {std::get<0>(linalg::lstsq(x[0], x[1]))}; }},
      {"lu", [](X x) { return list(linalg::lu(x[0])); }},
      {"lu_solve",
       [](X x) -> TensorList {
         auto [lu, pivots] = linalg::lu_factor(x[0]);
         return {linalg::lu_solve(lu, pivots, x[1], true, true)};
       }},
      {"matrix_power", [](X x) -> TensorList { return {linalg::matrix_power(x[0], 5), linalg::matrix_power(x[0], -2)}; }},
      {"matrix_exp", [](X x) -> TensorList { return {linalg::matrix_exp(x[0])}; }},
      {"matrix_rank", [](X x) -> TensorList { return {linalg::matrix_rank(cat({x[0], x[0]}))}; }},
      {"cond",
       [](X x) -> TensorList {
         return {linalg::cond(x[0]), linalg::cond(x[0].detach(), 1), linalg::cond(x[0].detach(), "fro"), linalg::cond(x[0], -2)};
       }},
      {"matrix_norms",
       [](X x) -> TensorList {
         return {linalg::matrix_norm(x[0]), linalg::matrix_norm(x[0], "nuc"), linalg::matrix_norm(x[0], 2, {0, 2}, true),
                 linalg::matrix_norm(x[0], -1), linalg::matrix_norm(x[0], kInfinity, {2, 0})};
       }},
      {"linalg_norm",
       [](X x) -> TensorList {
         return {linalg::norm(x[0]), linalg::norm(x[0], 1), linalg::norm(x[0], 3, IntList{1}),
                 linalg::norm(x[0], "fro", IntList{0, 1}, true)};
       }},
      {"multi_dot", [](X x) -> TensorList { return {linalg::multi_dot(x)}; }},
      {"cross", [](X x) -> TensorList { return {linalg::cross(x[0], x[1], 0), cross(x[0], x[1])}; }},
      {"vecdot", [](X x) -> TensorList { return {linalg::vecdot(x[0], x[1])}; }},
      {"householder_product", [](X x) -> TensorList { return {linalg::householder_product(x[0], x[1])}; }},
      {"tensorinv", [](X x) -> TensorList { return {linalg::tensorinv(x[0], 1)}; }},
      {"tensorsolve", [](X x) -> TensorList { return {linalg::tensorsolve(x[0], x[1])}; }},
      {"vander", [](X x) -> TensorList { return {linalg::vander(x[0], 4)}; }},
      {"triangular_solve", [](X x) -> TensorList { return {std::get<0>(triangular_solve(x[0], x[1], false, true))}; }},
      {"trace", [](X x) -> TensorList { return {trace(x[0])}; }},
      {"kron", [](X x) -> TensorList { return {kron(x[0], x[1])}; }},
      {"addr", [](X x) -> TensorList { return {addr(x[0], x[1], x[2], 2, 0.5)}; }},
      {"addbmm", [](X x) -> TensorList { return {addbmm(x[0], x[1], x[2], 2, 0.5)}; }},
      {"inner", [](X x) -> TensorList { return {inner(x[0], x[1])}; }},
      {"tensordot_count", [](X x) -> TensorList { return {tensordot(x[0], x[1], 2)}; }},
      {"cdist",
       [](X x) -> TensorList {
         return {cdist(x[0].detach(), x[1].detach(), 0), cdist(x[0], x[1], 1), cdist(x[0], x[1]), cdist(x[0], x[1], 2.5),
                 cdist(x[0], x[1], kInfinity)};
       }},
      {"cdist_product", [](X x) -> TensorList { return {cdist(x[0], x[1])}; }},
      {"pdist", [](X x) -> TensorList { return {pdist(x[0]), pdist(x[0], 1)}; }},
      {"dist", [](X x) -> TensorList { return {dist(x[0], x[1]), dist(x[0], x[1], 3)}; }},
      {"renorm", [](X x) -> TensorList { return {renorm(x[0], 2, 1, 1.5)}; }},
      // --- normalisations
      {"softmax", [](X x) -> TensorList { return {softmax(x[0], -1)}; }},
      {"softmax_dim0", [](X x) -> TensorList { return {softmax(x[0], 0)}; }},
      {"log_softmax", [](X x) -> TensorList { return {log_softmax(x[0], 1)}; }},
      {"layer_norm", [](X x) -> TensorList { return {layer_norm(x[0], {4, 5}, x[1], x[2])}; }},
      {"layer_norm_plain", [](X x) -> TensorList { return {layer_norm(x[0], {6}, {}, {}, 1e-3)}; }},
      {"rms_norm", [](X x) -> TensorList { return {rms_norm(x[0], {6}, x[1])}; }},
      {"rms_norm_eps", [](X x) -> TensorList { return {rms_norm(x[0], {2, 3}, x[1], 1e-3)}; }},
      {"group_norm", [](X x) -> TensorList { return {group_norm(x[0], 2, x[1], x[2])}; }},
      {"instance_norm", [](X x) -> TensorList { return {instance_norm(x[0], {}, {}, x[1], x[2])}; }},
      {"normalize", [](X x) -> TensorList { return {normalize(x[0])}; }},
      {"local_response_norm", [](X x) -> TensorList { return {local_response_norm(x[0], 3)}; }},
      {"batch_norm_train", [](X x) { return batch_norm_case(x, true); }, true},
      {"batch_norm_eval", [](X x) { return batch_norm_case(x, false); }},
      // --- activations
      {"relu", [](X x) -> TensorList { return {relu(x[0])}; }},
      {"relu6", [](X x) -> TensorList { return {relu6(3 * x[0])}; }},
      {"gelu", [](X x) -> TensorList { return {gelu(x[0])}; }},
      {"gelu_tanh", [](X x) -> TensorList { return {gelu(x[0], "tanh")}; }},
      {"silu", [](X x) -> TensorList { return {silu(x[0])}; }},
      {"mish", [](X x) -> TensorList { return {mish(x[0])}; }},
      {"hardswish", [](X x) -> TensorList { return {hardswish(2 * x[0])}; }},
      {"hardsigmoid", [](X x) -> TensorList { return {hardsigmoid(2 * x[0])}; }},
      {"hardtanh", [](X x) -> TensorList { return {hardtanh(x[0], -0.5, 0.7)}; }},
      {"leaky_relu", [](X x) -> TensorList { return {leaky_relu(x[0], 0.2)}; }},
      {"elu", [](X x) -> TensorList { return {elu(x[0], 1.5)}; }},
      {"selu", [](X x) -> TensorList { return {selu(x[0])}; }},
      {"celu", [](X x) -> TensorList { return {celu(x[0], 1.5)}; }},
      {"softplus", [](X x) -> TensorList { return {softplus(x[0], 2, 1)}; }},
      {"logsigmoid", [](X x) -> TensorList { return {logsigmoid(x[0])}; }},
      {"softsign", [](X x) -> TensorList { return {softsign(x[0])}; }},
      {"threshold", [](X x) -> TensorList { return {threshold(x[0], 0.1, -2)}; }},
      {"glu", [](X x) -> TensorList { return {glu(x[0], 1)}; }},
      {"tanh", [](X x) -> TensorList { return {tanh(x[0])}; }},
      {"sigmoid", [](X x) -> TensorList { return {sigmoid(x[0])}; }},
      {"hardshrink", [](X x) -> TensorList { return {hardshrink(x[0], 0.4)}; }},
      {"softshrink", [](X x) -> TensorList { return {softshrink(x[0], 0.4)}; }},
      {"tanhshrink", [](X x) -> TensorList { return {tanhshrink(x[0])}; }},
      {"softmin", [](X x) -> TensorList { return {softmin(x[0], 1)}; }},
      {"rrelu_eval", [](X x) -> TensorList { return {rrelu(x[0], 0.1, 0.5)}; }},
      {"prelu", [](X x) -> TensorList { return {prelu(x[0], x[1])}; }},
      {"prelu_one", [](X x) -> TensorList { return {prelu(x[0], x[1])}; }},
      // --- convolutions
      {"conv1d", [](X x) -> TensorList { return {conv1d(x[0], x[1], x[2], 2, 1)}; }},
      {"conv1d_same", [](X x) -> TensorList { return {conv1d(x[0], x[1], {}, 1, Padding::kSame)}; }},
      {"conv2d", [](X x) -> TensorList { return {conv2d(x[0], x[1], x[2], 1, 1)}; }},
      {"conv2d_groups", [](X x) -> TensorList { return {conv2d(x[0], x[1], {}, {2, 1}, {1, 0}, {1, 2}, 2)}; }},
      {"conv2d_depthwise", [](X x) -> TensorList { return {conv2d(x[0], x[1], {}, 1, 1, 1, 3)}; }},
      {"conv2d_unbatched", [](X x) -> TensorList { return {conv2d(x[0], x[1])}; }},
      {"conv3d", [](X x) -> TensorList { return {conv3d(x[0], x[1], x[2], {1, 2, 1}, {0, 1, 0})}; }},
      {"conv_transpose1d", [](X x) -> TensorList { return {conv_transpose1d(x[0], x[1], {}, 3, 1, 2, 2)}; }},
      {"conv_transpose2d", [](X x) -> TensorList { return {conv_transpose2d(x[0], x[1], x[2], 2, 1, 1)}; }},
      {"conv_transpose3d", [](X x) -> TensorList { return {conv_transpose3d(x[0], x[1], {}, {1, 2, 1})}; }},
      // --- pools and resizing
      {"max_pool1d", [](X x) -> TensorList { return {max_pool1d(x[0], 3, 2, 1)}; }},
      {"max_pool2d", [](X x) -> TensorList { return {max_pool2d(x[0], 2)}; }},
      {"max_pool2d_with_indices",
       [](X x) { return list(max_pool2d_with_indices(x[0], {3, 2}, {2, 1}, {1, 0}, 1, true)); }},
      {"max_pool3d", [](X x) -> TensorList { return {max_pool3d(x[0], 2, 1, 0, {1, 2, 1})}; }},
      {"avg_pool1d", [](X x) -> TensorList { return {avg_pool1d(x[0], 3, 2, 1)}; }},
      {"avg_pool2d", [](X x) -> TensorList { return {avg_pool2d(x[0], 2)}; }},
      {"avg_pool2d_options", [](X x) -> TensorList { return {avg_pool2d(x[0], 3, 2, 1, true, false)}; }},
      {"avg_pool2d_divisor", [](X x) -> TensorList { return {avg_pool2d(x[0], 2, 2, 0, true, true, 3)}; }},
      {"avg_pool3d", [](X x) -> TensorList { return {avg_pool3d(x[0], 2, 1, 1)}; }},
      {"adaptive_avg_pool1d", [](X x) -> TensorList { return {adaptive_avg_pool1d(x[0], {4})}; }},
      {"adaptive_avg_pool2d", [](X x) -> TensorList { return {adaptive_avg_pool2d(x[0], {3, 2})}; }},
      {"adaptive_avg_pool3d", [](X x) -> TensorList { return {adaptive_avg_pool3d(x[0], {2, 1, 3})}; }},
      {"adaptive_max_pool2d", [](X x) { return list(adaptive_max_pool2d(x[0], {3, 2})); }},
      {"interpolate_nearest", [](X x) -> TensorList { return {interpolate(x[0], {.scale_factor = {2}})}; }},
      {"interpolate_nearest_size", [](X x) -> TensorList { return {interpolate(x[0], {.size = {5, 3}})}; }},
      {"interpolate_bilinear",
       [](X x) -> TensorList { return {interpolate(x[0], {.size = {5, 7}, .mode = InterpolateMode::kBilinear})}; }},
      {"interpolate_bilinear_corners",
       [](X x) -> TensorList {
         return {interpolate(x[0], {.size = {5, 7}, .mode = InterpolateMode::kBilinear, .align_corners = true})};
       }},
      {"interpolate_linear",
       [](X x) -> TensorList {
         return {interpolate(x[0], {.scale_factor = {1.5}, .mode = InterpolateMode::kLinear})};
       }},
      {"interpolate_bicubic",
       [](X x) -> TensorList { return {interpolate(x[0], {.size = {5, 6}, .mode = InterpolateMode::kBicubic})}; }},
      {"pixel_shuffle", [](X x) -> TensorList { return {pixel_shuffle(x[0], 2)}; }},
      {"pixel_unshuffle", [](X x) -> TensorList { return {pixel_unshuffle(x[0], 2)}; }},
      {"channel_shuffle", [](X x) -> TensorList { return {channel_shuffle(x[0], 3)}; }},
      {"interpolate_nearest_exact",
       [](X x) -> TensorList { return {interpolate(x[0], {.size = {5, 3}, .mode = InterpolateMode::kNearestExact})}; }},
      {"interpolate_trilinear",
       [](X x) -> TensorList { return {interpolate(x[0], {.size = {3, 2, 5}, .mode = InterpolateMode::kTrilinear})}; }},
      {"interpolate_area",
       [](X x) -> TensorList { return {interpolate(x[0], {.size = {3, 2}, .mode = InterpolateMode::kArea})}; }},
      {"interpolate_bicubic_corners",
       [](X x) -> TensorList {
         return {interpolate(x[0], {.size = {5, 6}, .mode = InterpolateMode::kBicubic, .align_corners = true})};
       }},
      {"lp_pool1d", [](X x) -> TensorList { return {lp_pool1d(x[0], 2, 3, 2)}; }},
      {"lp_pool2d", [](X x) -> TensorList { return {lp_pool2d(x[0], 2, {2, 3}, {}, true)}; }},
      {"lp_pool3d", [](X x) -> TensorList { return {lp_pool3d(x[0], 4, 2, 1)}; }},
      {"max_pool1d_with_indices", [](X x) { return list(max_pool1d_with_indices(x[0], 3, 2, 1)); }},
      {"max_pool3d_with_indices", [](X x) { return list(max_pool3d_with_indices(x[0], 2)); }},
      {"adaptive_max_pool1d", [](X x) { return list(adaptive_max_pool1d(x[0], {4})); }},
      {"adaptive_max_pool3d", [](X x) { return list(adaptive_max_pool3d(x[0], {2, 1, 3})); }},
      {"max_unpool1d",
       [](X x) -> TensorList {
         auto [y, indices] = max_pool1d_with_indices(x[0], 2, 2);
         return {max_unpool1d(2 * y, indices, 2, 2, 0, {9})};
       }},
      {"max_unpool2d",
       [](X x) -> TensorList {
         auto [y, indices] = max_pool2d_with_indices(x[0], 2);
         return {max_unpool2d(2 * y, indices, 2)};
       }},
      {"max_unpool3d",
       [](X x) -> TensorList {
         auto [y, indices] = max_pool3d_with_indices(x[0], 2);
         return {max_unpool3d(2 * y, indices, 2)};
       }},
      {"im2col", [](X x) -> TensorList { return {im2col(x[0], {2, 3}, {1, 2}, {1, 0}, {2, 1})}; }},
      {"im2col_unbatched", [](X x) -> TensorList { return {im2col(x[0], 2)}; }},
      {"col2im", [](X x) -> TensorList { return {col2im(x[0], {4, 5}, {2, 3}, 1, {1, 0}, {2, 1})}; }},
      // --- reading at given positions
      {"grid_sample_bilinear_zeros", sampled(GridMode::kBilinear, GridPad::kZeros, false)},
      {"grid_sample_nearest_zeros", sampled(GridMode::kNearest, GridPad::kZeros, false)},
      {"grid_sample_bicubic_zeros", sampled(GridMode::kBicubic, GridPad::kZeros, false)},
      {"grid_sample_bilinear_zeros_corners", sampled(GridMode::kBilinear, GridPad::kZeros, true)},
      {"grid_sample_nearest_zeros_corners", sampled(GridMode::kNearest, GridPad::kZeros, true)},
      {"grid_sample_bicubic_zeros_corners", sampled(GridMode::kBicubic, GridPad::kZeros, true)},
      {"grid_sample_bilinear_zeros_3d", sampled(GridMode::kBilinear, GridPad::kZeros, false)},
      {"grid_sample_bilinear_border", sampled(GridMode::kBilinear, GridPad::kBorder, false)},
      {"grid_sample_nearest_border", sampled(GridMode::kNearest, GridPad::kBorder, false)},
      {"grid_sample_bicubic_border", sampled(GridMode::kBicubic, GridPad::kBorder, false)},
      {"grid_sample_bilinear_border_corners", sampled(GridMode::kBilinear, GridPad::kBorder, true)},
      {"grid_sample_nearest_border_corners", sampled(GridMode::kNearest, GridPad::kBorder, true)},
      {"grid_sample_bicubic_border_corners", sampled(GridMode::kBicubic, GridPad::kBorder, true)},
      {"grid_sample_bilinear_border_3d", sampled(GridMode::kBilinear, GridPad::kBorder, false)},
      {"grid_sample_bilinear_reflection", sampled(GridMode::kBilinear, GridPad::kReflection, false)},
      {"grid_sample_nearest_reflection", sampled(GridMode::kNearest, GridPad::kReflection, false)},
      {"grid_sample_bicubic_reflection", sampled(GridMode::kBicubic, GridPad::kReflection, false)},
      {"grid_sample_bilinear_reflection_corners", sampled(GridMode::kBilinear, GridPad::kReflection, true)},
      {"grid_sample_nearest_reflection_corners", sampled(GridMode::kNearest, GridPad::kReflection, true)},
      {"grid_sample_bicubic_reflection_corners", sampled(GridMode::kBicubic, GridPad::kReflection, true)},
      {"grid_sample_bilinear_reflection_3d", sampled(GridMode::kBilinear, GridPad::kReflection, false)},
      {"grid_sample_nearest_zeros_corners_3d", sampled(GridMode::kNearest, GridPad::kZeros, true)},
      {"affine_grid", [](X x) -> TensorList { return {affine_grid(x[0], {2, 3, 4, 5})}; }},
      {"affine_grid_corners", [](X x) -> TensorList { return {affine_grid(x[0], {2, 3, 1, 5}, true)}; }},
      {"affine_grid_3d", [](X x) -> TensorList { return {affine_grid(x[0], {1, 2, 2, 3, 4})}; }},
      // --- attention
      {"attention", [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2])}; }},
      {"attention_causal",
       [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, true)}; }},
      {"attention_scale",
       [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, false, 0.3)}; }},
      {"attention_added_mask",
       [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2], x[3])}; }},
      {"attention_mask", [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2], x[3])}; }},
      {"attention_gqa",
       [](X x) -> TensorList { return {scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, false, {}, true)}; }},
      // --- losses
      {"cross_entropy", [](X x) -> TensorList { return {cross_entropy(x[0], x[1])}; }},
      {"cross_entropy_sum", [](X x) -> TensorList { return {cross_entropy(x[0], x[1], {}, kSum)}; }},
      {"cross_entropy_none", [](X x) -> TensorList { return {cross_entropy(x[0], x[1], {}, Reduction::kNone)}; }},
      {"cross_entropy_smoothing",
       [](X x) -> TensorList { return {cross_entropy(x[0], x[1], {}, Reduction::kMean, -100, 0.1)}; }},
      {"cross_entropy_weight", [](X x) -> TensorList { return {cross_entropy(x[0], x[1], x[2])}; }},
      {"cross_entropy_all",
       [](X x) -> TensorList { return {cross_entropy(x[0], x[1], x[2], Reduction::kMean, 2, 0.2)}; }},
      {"cross_entropy_2d", [](X x) -> TensorList { return {cross_entropy(x[0], x[1])}; }},
      {"cross_entropy_probabilities", [](X x) -> TensorList { return {cross_entropy(x[0], x[1])}; }},
      {"nll_loss", [](X x) -> TensorList { return {nll_loss(x[0], x[1])}; }},
      {"mse_loss", [](X x) -> TensorList { return {mse_loss(x[0], x[1])}; }},
      {"mse_loss_sum", [](X x) -> TensorList { return {mse_loss(x[0], x[1], kSum)}; }},
      {"l1_loss", [](X x) -> TensorList { return {l1_loss(x[0], x[1])}; }},
      {"smooth_l1_loss", [](X x) -> TensorList { return {smooth_l1_loss(x[0], x[1], Reduction::kMean, 0.5)}; }},
      {"huber_loss", [](X x) -> TensorList { return {huber_loss(x[0], x[1], Reduction::kMean, 0.7)}; }},
      {"bce_with_logits", [](X x) -> TensorList { return {binary_cross_entropy_with_logits(x[0], x[1])}; }},
      {"bce_with_logits_weight",
       [](X x) -> TensorList { return {binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3], kSum)}; }},
      {"bce", [](X x) -> TensorList { return {binary_cross_entropy(x[0], x[1])}; }},
      {"kl_div", [](X x) -> TensorList { return {kl_div(x[0], x[1], Reduction::kBatchMean)}; }},
      {"kl_div_log", [](X x) -> TensorList { return {kl_div(x[0], x[1], kSum, true)}; }},
      {"cosine_similarity", [](X x) -> TensorList { return {cosine_similarity(x[0], x[1])}; }},
      {"pairwise_distance", [](X x) -> TensorList { return {pairwise_distance(x[0], x[1], 3, 1e-6, true)}; }},
      {"poisson_nll_loss", [](X x) -> TensorList { return {poisson_nll_loss(x[0], x[1])}; }},
      {"poisson_nll_loss_full", [](X x) -> TensorList { return {poisson_nll_loss(x[0], x[1], false, true, 1e-8, kSum)}; }},
      {"gaussian_nll_loss", [](X x) -> TensorList { return {gaussian_nll_loss(x[0], x[1], x[2])}; }},
      {"gaussian_nll_loss_full",
       [](X x) -> TensorList { return {gaussian_nll_loss(x[0], x[1], x[2], true, 0.5, Reduction::kNone)}; }},
      {"hinge_embedding_loss", [](X x) -> TensorList { return {hinge_embedding_loss(x[0], x[1], 0.7)}; }},
      {"margin_ranking_loss", [](X x) -> TensorList { return {margin_ranking_loss(x[0], x[1], x[2], 0.3)}; }},
      {"soft_margin_loss", [](X x) -> TensorList { return {soft_margin_loss(x[0], x[1])}; }},
      {"cosine_embedding_loss", [](X x) -> TensorList { return {cosine_embedding_loss(x[0], x[1], x[2], -0.2, kSum)}; }},
      {"triplet_margin_loss", [](X x) -> TensorList { return {triplet_margin_loss(x[0], x[1], x[2])}; }},
      {"triplet_margin_loss_swap",
       [](X x) -> TensorList { return {triplet_margin_loss(x[0], x[1], x[2], 2, 1, 1e-6, true, Reduction::kNone)}; }},
      {"triplet_margin_with_distance_loss",
       [](X x) -> TensorList {
         auto distance = [](const Tensor& a, const Tensor& b) { return 1 - cosine_similarity(a, b); };
         return {triplet_margin_with_distance_loss(x[0], x[1], x[2], distance, 0.5)};
       }},
      {"multi_margin_loss", [](X x) -> TensorList { return {multi_margin_loss(x[0], x[1])}; }},
      {"multi_margin_loss_weight", [](X x) -> TensorList { return {multi_margin_loss(x[0], x[1], 2, 0.5, x[2], kSum)}; }},
      {"multilabel_margin_loss", [](X x) -> TensorList { return {multilabel_margin_loss(x[0], x[1])}; }},
      {"multilabel_soft_margin_loss", [](X x) -> TensorList { return {multilabel_soft_margin_loss(x[0], x[1], x[2])}; }},
      // --- bags
      {"embedding_bag_sum", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], x[2], BagMode::kSum)}; }},
      {"embedding_bag_sum_padding", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], {}, BagMode::kSum, {}, false, 2)}; }},
      {"embedding_bag_mean", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], x[2], BagMode::kMean)}; }},
      {"embedding_bag_mean_padding", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], {}, BagMode::kMean, {}, false, 2)}; }},
      {"embedding_bag_max", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], x[2], BagMode::kMax)}; }},
      {"embedding_bag_max_padding", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], {}, BagMode::kMax, {}, false, 2)}; }},
      {"embedding_bag_weights", [](X x) -> TensorList { return {embedding_bag(x[0], x[1], x[2], BagMode::kSum, x[3], true)}; }},
      // --- rearranging
      {"cat", [](X x) -> TensorList { return {cat(x, 1)}; }},
      {"stack", [](X x) -> TensorList { return {stack(x, -1)}; }},
      {"chunk", [](X x) { return chunk(x[0], 3, 1); }},
      {"split", [](X x) { return split(x[0], 2); }},
      {"split_sizes", [](X x) { return split_with_sizes(x[0], {1, 3, 2}, -1); }},
      {"unbind", [](X x) { return unbind(x[0], 1); }},
      {"roll", [](X x) -> TensorList { return {roll(x[0], {1, -2}, {0, 1})}; }},
      {"roll_flat", [](X x) -> TensorList { return {roll(x[0], {4})}; }},
      {"tile", [](X x) -> TensorList { return {tile(x[0], {2})}; }},
      {"repeat", [](X x) -> TensorList { return {repeat(x[0], {2, 1, 3})}; }},
      {"repeat_interleave", [](X x) -> TensorList { return {repeat_interleave(x[0], 3, 1)}; }},
      {"repeat_interleave_flat", [](X x) -> TensorList { return {repeat_interleave(x[0], 2)}; }},
      {"repeat_interleave_counts", [](X x) -> TensorList { return {repeat_interleave(x[0], x[1], 0)}; }, true},
      {"one_hot", [](X x) -> TensorList { return {one_hot(x[0], 6)}; }},
      {"flip", [](X x) -> TensorList { return {flip(x[0], {0, -1})}; }},
      {"rot90", [](X x) -> TensorList { return {rot90(x[0], 3)}; }},
      {"movedim", [](X x) -> TensorList { return {movedim(x[0], {0, 2}, {1, 0})}; }},
      {"pad_constant", [](X x) -> TensorList { return {pad(x[0], {1, 2, 0, 1}, "constant", 1.5)}; }},
      {"pad_reflect", [](X x) -> TensorList { return {pad(x[0], {2, 1}, "reflect")}; }},
      {"pad_replicate", [](X x) -> TensorList { return {pad(x[0], {2, 1, 0, 3}, "replicate")}; }},
      {"pad_circular", [](X x) -> TensorList { return {pad(x[0], {2, 1}, "circular")}; }},
      {"pad_reflect_3d", [](X x) -> TensorList { return {pad(x[0], {1, 0, 1, 2, 0, 1}, "reflect")}; }},
      {"pad_replicate_3d", [](X x) -> TensorList { return {pad(x[0], {1, 0, 1, 2, 0, 1}, "replicate")}; }},
      {"pad_circular_2d", [](X x) -> TensorList { return {pad(x[0], {2, 1, 0, 3}, "circular")}; }},
      {"tril", [](X x) -> TensorList { return {tril(x[0], -1)}; }},
      {"meshgrid", [](X x) { return meshgrid(x, "xy"); }},
      // --- scans, orderings, searches
      {"cumsum", [](X x) -> TensorList { return {cumsum(x[0], 1)}; }},
      {"cumprod", [](X x) -> TensorList { return {cumprod(x[0], 0)}; }},
      {"cumprod_zero", [](X x) -> TensorList { return {cumprod(x[0], 0)}; }},
      {"sort", [](X x) { return list(sort(x[0], 1)); }},
      {"sort_descending", [](X x) { return list(sort(x[0], 0, true)); }},
      {"argsort", [](X x) -> TensorList { return {argsort(x[0])}; }},
      {"topk", [](X x) { return list(topk(x[0], 2)); }},
      {"topk_smallest", [](X x) { return list(topk(x[0], 3, 0, false)); }},
      {"kthvalue", [](X x) { return list(kthvalue(x[0], 2)); }},
      {"median", [](X x) { return list(median(x[0], 1)); }},
      {"unique", [](X x) { return list(unique(x[0], true, true, true)); }},
      {"nonzero", [](X x) -> TensorList { return {nonzero(x[0])}; }},
      {"searchsorted", [](X x) -> TensorList { return {searchsorted(x[0], x[1], false, true)}; }},
      {"bincount", [](X x) -> TensorList { return {bincount(x[0], 7)}; }, true},
      // --- element by element
      {"masked_fill", [](X x) -> TensorList { return {masked_fill(x[0], x[1], -1.5)}; }},
      {"where", [](X x) -> TensorList { return {where(x[0], x[1], x[2])}; }},
      {"lerp", [](X x) -> TensorList { return {lerp(x[0], x[1], x[2])}; }},
      {"lerp_number", [](X x) -> TensorList { return {lerp(x[0], x[1], 0.3)}; }},
      {"addcmul", [](X x) -> TensorList { return {addcmul(x[0], x[1], x[2], 0.5)}; }},
      {"addcdiv", [](X x) -> TensorList { return {addcdiv(x[0], x[1], x[2], 0.5)}; }},
      {"clamp", [](X x) -> TensorList { return {clamp(x[0], -0.5, 0.7)}; }},
      {"clamp_min_only", [](X x) -> TensorList { return {clamp(x[0], 0.1)}; }},
      {"clamp_tensors", [](X x) -> TensorList { return {clamp(x[0], x[1], x[2])}; }},
      {"add_alpha", [](X x) -> TensorList { return {add(x[0], x[1], 2)}; }},
      {"pow", [](X x) -> TensorList { return {pow(x[0], x[1])}; }},
      {"pow_number", [](X x) -> TensorList { return {pow(x[0], 3)}; }},
      {"pow_of_number", [](X x) -> TensorList { return {pow(2.0, x[0])}; }},
      {"div_floor", [](X x) -> TensorList { return {div(x[0], x[1], "floor")}; }},
      {"atan2", [](X x) -> TensorList { return {atan2(x[0], x[1])}; }},
      {"broadcast_chain", [](X x) -> TensorList { return {exp(x[0] * x[1] - x[2]) / (1 + x[2] * x[2])}; }},
      // --- reductions
      {"sum", [](X x) -> TensorList { return {sum(x[0], {0, 2}, true)}; }},
      {"mean", [](X x) -> TensorList { return {mean(x[0], {1})}; }},
      {"prod", [](X x) -> TensorList { return {prod(x[0], 1)}; }},
      {"std", [](X x) -> TensorList { return {sinter::std(x[0], {1})}; }},
      {"std_all", [](X x) -> TensorList { return {sinter::std(x[0])}; }},
      {"var", [](X x) -> TensorList { return {var(x[0], {0, 2}, 0, true)}; }},
      {"var_mean", [](X x) { return list(var_mean(x[0], {1})); }},
      {"norm", [](X x) -> TensorList { return {norm(x[0])}; }},
      {"norm_1", [](X x) -> TensorList { return {norm(x[0], 1, {1})}; }},
      {"norm_3", [](X x) -> TensorList { return {norm(x[0], 3, {0}, true)}; }},
      {"norm_inf", [](X x) -> TensorList { return {norm(x[0], kInfinity, {1})}; }},
      {"logsumexp", [](X x) -> TensorList { return {logsumexp(x[0], {1})}; }},
      {"max_dim", [](X x) { return list(max(x[0], 1)); }},
      {"min_all", [](X x) -> TensorList { return {min(x[0])}; }},
      {"amax", [](X x) -> TensorList { return {amax(x[0], {0, 1})}; }},
      {"argmin", [](X x) -> TensorList { return {argmin(x[0], 1, true)}; }},
      {"amax_ties", [](X x) -> TensorList { return {amax(x[0], {1})}; }},
      {"count_nonzero", [](X x) -> TensorList { return {count_nonzero(relu(x[0]), {1})}; }},
      // --- indexing
      {"index_numbers", [](X x) -> TensorList { return {x[0].index({1, -1})}; }},
      {"index_slices", [](X x) -> TensorList { return {x[0].index({Slice({1}, {}), Slice({}, {}, 2)})}; }},
      {"index_reversed", [](X x) -> TensorList { return {x[0].index({Slice({2}, {0}, -1)})}; }},
      {"index_ellipsis_new_axis", [](X x) -> TensorList { return {x[0].index({Ellipsis, None, 0})}; }},
      {"index_tensor", [](X x) -> TensorList { return {x[0].index({x[1]})}; }},
      {"index_negative", [](X x) -> TensorList { return {x[0].index({x[1]})}; }},
      {"index_two_tensors", [](X x) -> TensorList { return {x[0].index({x[1], Slice(), x[2]})}; }},
      {"index_mixed", [](X x) -> TensorList { return {x[0].index({Slice({1}, {}), x[1], 2})}; }},
      {"index_mask", [](X x) -> TensorList { return {x[0].index({x[1]})}; }, true},
      {"masked_select", [](X x) -> TensorList { return {masked_select(x[0], x[1])}; }, true},
      {"index_put", [](X x) -> TensorList { return {index_put(x[0], {tensor({3, 1})}, x[1])}; }},
      {"index_put_accumulate", [](X x) -> TensorList { return {index_put(x[0], {x[1]}, x[2], true)}; }},
      {"gather", [](X x) -> TensorList { return {gather(x[0], 1, x[1])}; }},
      {"scatter_add", [](X x) -> TensorList { return {scatter_add(x[0], 1, x[1], x[2])}; }},
      {"scatter_reduce_mean", [](X x) -> TensorList { return {scatter_reduce(x[0], 1, x[1], x[2], "mean", false)}; }},
      {"index_add_alpha", [](X x) -> TensorList { return {index_add(x[0], 0, x[1], x[2], 2)}; }},
      {"take_along_dim", [](X x) -> TensorList { return {take_along_dim(x[0], x[1], 1)}; }},
      {"embedding", [](X x) -> TensorList { return {embedding(x[0], x[1], 2)}; }},
  };
}

const std::vector<Composite>& composites() {
  static const auto all = [] {
    std::vector<Composite> joined = first_composites();
    for (auto& list : {testing::arrangement_composites(), testing::irregular_composites()})
      joined.insert(joined.end(), list.begin(), list.end());
    return joined;
  }();
  return all;
}

const SafeTensorsFile& recording() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/composites.safetensors");
  return file;
}

// What PyTorch was given and what it answered.
struct Case {
  TensorList inputs;
  std::vector<bool> moving;  // of each input, whether its gradient is asked for
  TensorList outputs, cotangents, grads;  // undefined where there is none

  explicit Case(const std::string& name) {
    auto read = [&](const char* what, size_t i) {
      std::string key = format("{}/{}{}", name, what, i);
      return recording().contains(key) ? recording().tensor(key) : Tensor();
    };
    for (size_t i = 0;; ++i) {
      Tensor in = read("in", i), fixed = read("fixed", i);
      if (!in.defined() && !fixed.defined()) break;
      inputs.push_back(in.defined() ? in : fixed);
      moving.push_back(in.defined() && in.is_floating_point());
      grads.push_back(read("grad", i));
    }
    for (size_t i = 0; read("out", i).defined(); ++i) {
      outputs.push_back(read("out", i));
      cotangents.push_back(read("cotangent", i));
    }
  }

  // The outputs, then the gradient of every input that PyTorch gives one for.
  TensorList answers() const {
    TensorList all = outputs;
    for (auto& g : grads)
      if (g.defined()) all.push_back(g);
    return all;
  }
};

// The same from sinter.
TensorList answers_of(const Composite& composite, const Case& c, X inputs) {
  TensorList outputs = composite.run(inputs), answers = outputs, differentiated, seeds, wanted;
  for (size_t i = 0; i < outputs.size() && i < c.cotangents.size(); ++i) {
    if (!c.cotangents[i].defined()) continue;
    differentiated.push_back(outputs[i]);
    seeds.push_back(c.cotangents[i]);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (c.grads[i].defined()) wanted.push_back(inputs[i]);
  if (wanted.empty()) return answers;
  for (auto& g : autograd::grad(differentiated, wanted, seeds)) answers.push_back(g);
  return answers;
}

void expect_agreement(const std::string& what, const Case& c, X got) {
  TensorList want = c.answers();
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    Array array = to_array(want[i]);
    // Sums cancel: what counts is the error relative to the largest element.
    double largest = 1;
    for (double v : array.f) largest = std::max(largest, std::abs(v));
    Tolerance tolerance{.ulp = 32, .absolute = 2e-6 * largest};
    EXPECT_EQ(testing::difference(got[i], array, tolerance), "")
        << what << (i < c.outputs.size() ? format(", output {}", i) : format(", gradient {}", i - c.outputs.size()));
  }
}

class Composites : public ::testing::TestWithParam<Composite> {};

TEST_P(Composites, EagerAgreesWithPyTorch) {
  Case c(GetParam().name);
  ASSERT_FALSE(c.outputs.empty()) << GetParam().name << " is not recorded: run tools/record_composites.py";
  TensorList inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(c.inputs[i].clone());
    if (c.moving[i]) inputs[i].requires_grad_();
  }
  expect_agreement(GetParam().name, c, answers_of(GetParam(), c, inputs));
}

TEST_P(Composites, RefereeAgreesWithPyTorch) {
  if (GetParam().eager_only) return;
  Case c(GetParam().name);
  GraphTracer tracer;
  std::vector<Array> arrays;
  {
    TracerScope scope(&tracer);
    TensorList inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      arrays.push_back(to_array(c.inputs[i]));
      inputs.push_back(tracer.add_input({.dtype = arrays[i].dtype, .shape = Shape(arrays[i].sizes), .device = {}}));
      if (c.moving[i]) inputs[i].requires_grad_();
    }
    std::vector<Value> results;
    for (auto& t : answers_of(GetParam(), c, inputs)) results.push_back(tracer.value_of(t));
    tracer.graph().set_outputs(std::move(results));
  }
  for (auto& t : tracer.captured()) arrays.push_back(to_array(t));
  TensorList got;
  for (auto& a : interpret(tracer.graph(), arrays)) got.push_back(to_tensor(a));
  expect_agreement(GetParam().name, c, got);
}

// Operands of any rank give a result or an Error, never a crash: what a formula asks of sizes comes after its checks.
TEST_P(Composites, OperandsOfOtherRanksAreTakenOrRefused) {
  Case c(GetParam().name);
  for (size_t changed = 0; changed <= c.inputs.size(); ++changed)
    for (int64_t rank : {0, 1, 2, 3, 6}) {
      SCOPED_TRACE(format("operand {}, rank {}", changed, rank));
      GraphTracer tracer;
      TracerScope scope(&tracer);
      TensorList inputs;
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        bool all = changed == c.inputs.size();
        Shape shape = all || i == changed ? Shape(std::vector<Dim>(size_t(rank), 2)) : c.inputs[i].sizes();
        inputs.push_back(tracer.add_input({.dtype = c.inputs[i].dtype(), .shape = shape, .device = {}}));
        if (c.moving[i]) inputs[i].requires_grad_();
      }
      try {
        for (auto& t : GetParam().run(inputs)) EXPECT_TRUE(t.defined());
      } catch (const Error& e) {
        EXPECT_STRNE(e.what(), "");
      }
    }
}

TEST(CompositeRecording, HasTheSameCases) {
  std::istringstream in(recording().metadata().at("cases"));
  std::vector<std::string> recorded(std::istream_iterator<std::string>(in), {}), here;
  for (auto& composite : composites()) here.push_back(composite.name);
  std::sort(recorded.begin(), recorded.end());
  std::sort(here.begin(), here.end());
  EXPECT_EQ(recorded, here);
}

INSTANTIATE_TEST_SUITE_P(Functions, Composites, ::testing::ValuesIn(composites()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sinter
