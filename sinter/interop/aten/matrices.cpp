// Matrix products, attention and distances.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/grouped.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

// --- products of rows that are sorted by group, each group with a matrix of its own: rows before ends[0] with weight[0], those up to
// ends[1] with weight[1], …; rows behind all ends are zeros

struct Groups {
  Tensor of_row, belongs;  // the last one for rows that belong to none

  Groups(const Tensor& x, const Tensor& ends, const Dim& count) {
    Tensor row = arange_of_size(x.size(0), TensorOptions(ends.dtype()).device(x.device()));
    Tensor group = (row.unsqueeze(1) >= ends.unsqueeze(0)).sum(1);
    belongs = (group < count).unsqueeze(1);
    of_row = clamp_max(group, count - 1);
  }
};

void check_groups(const Tensor& x, const Tensor& weight, const Tensor& ends) {
  check(x.defined() && weight.defined() && ends.defined() && x.dim() == 2 && weight.dim() == 3 && ends.dim() == 1,
        "grouped_mm: expected rows [n, k], weights [groups, k, m] and ends [groups]");
  check(ends.size(0) == weight.size(0), "grouped_mm: {} ends for the weights {}", ends.size(0), weight.sizes());
}

Tensor grouped_product(const Tensor& x, const Tensor& weight, const Tensor& ends) {
  check_groups(x, weight, ends);
  const Groups groups(x, ends, weight.size(0));
  return where(groups.belongs, grouped_mm(x, weight, groups.of_row), 0.0);
}

std::tuple<Tensor, Tensor> grouped_product_backward(const Tensor& x, const Tensor& weight, const Tensor& ends,
                                                    const Tensor& grad) {
  check_groups(x, weight, ends);
  const Groups groups(x, ends, weight.size(0));
  return {where(groups.belongs, grouped_mm(grad, weight.transpose(1, 2), groups.of_row), 0.0),
          grouped_mm_weight_grad(where(groups.belongs, x, 0.0), where(groups.belongs, grad, 0.0), groups.of_row,
                                 weight.size(0))};
}

// --- the halves of attention, as PyTorch differentiates it

std::tuple<Tensor, Tensor> flash_attention(const Tensor& q, const Tensor& k, const Tensor& v, double dropout_p, bool is_causal,
                                          const Tensor& mask, std::optional<double> scale) {
  check(dropout_p == 0, "attention on the CPU draws nothing here, and dropout_p is {}", dropout_p);
  AttentionHalf out = attention_forward(q, k, v, mask, 0, is_causal, scale);
  return {out.output, out.logarithms.to(kFloat32)};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(const Tensor& grad, const Tensor& q, const Tensor& k,
                                                            const Tensor& v, const Tensor& out, const Tensor& logarithms,
                                                            double dropout_p, bool is_causal, const Tensor& mask,
                                                            std::optional<double> scale) {
  check(dropout_p == 0, "attention on the CPU draws nothing here, and dropout_p is {}", dropout_p);
  TensorList grads = attention_backward(grad, q, k, v, mask, {out, logarithms, {}}, 0, is_causal, scale, false);
  return {grads[0], grads[1], grads[2]};
}

// PyTorch's kernel has logarithms of rows up to a multiple of this, and of none where nobody wants them.
constexpr int64_t kPaddedRows = 32;

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                               const Tensor& bias, bool wants_logarithms, double dropout_p,
                                                               bool is_causal, std::optional<double> scale) {
  AttentionHalf out = attention_forward(q, k, v, bias, dropout_p, is_causal, scale);
  const Dim rows = q.size(-2), padded = wants_logarithms ? (rows + (kPaddedRows - 1)) / kPaddedRows * kPaddedRows : Dim(0);
  Tensor logarithms = wants_logarithms ? constant_pad_nd(out.logarithms.to(kFloat32), {0, padded - rows})
                                       : zeros({q.size(0), q.size(1), 0}, TensorOptions(kFloat32).device(q.device()));
  Tensor drawn[2];
  for (size_t i = 0; i < 2; ++i) {
    if (i >= out.draw.size())
      drawn[i] = zeros({}, TensorOptions(kInt64).device(q.device()));
    else
      drawn[i] = out.draw[i].is_scalar() ? full({}, out.draw[i].scalar(), TensorOptions(kInt64).device(q.device()))
                                         : out.draw[i].tensor();
  }
  return {out.output, logarithms, drawn[0], drawn[1]};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention_backward(
    const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, const Tensor& out,
    const Tensor& logarithms, const Tensor& seed, const Tensor& offset, double dropout_p, const std::array<bool, 4>& wanted,
    bool is_causal, std::optional<double> scale) {
  const bool wants_bias = wanted[3] && bias.defined();
  AttentionHalf forward{out, logarithms.narrow(-1, 0, q.size(-2)), {}};
  if (dropout_p > 0) forward.draw = {seed, offset};
  TensorList grads = attention_backward(grad, q, k, v, bias, forward, dropout_p, is_causal, scale, wants_bias);
  return {grads[0], grads[1], grads[2], wants_bias ? grads[3] : Tensor()};
}

// nn.TransformerEncoderLayer in one function, as PyTorch calls it where nothing is trained.
Tensor encoder_layer(const Tensor& x, Int width, Int heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
                     const Tensor& out_weight, const Tensor& out_bias, bool use_gelu, bool norm_first, double eps,
                     const Tensor& norm1_weight, const Tensor& norm1_bias, const Tensor& norm2_weight,
                     const Tensor& norm2_bias, const Tensor& up_weight, const Tensor& up_bias,
                     const Tensor& down_weight, const Tensor& down_bias, Unset, Unset) {
  check(x.dim() == 3, "_transformer_encoder_layer_fwd: expected [batch, tokens, {}], got {}", width, x.sizes());
  auto attend = [&](const Tensor& y) {
    Tensor parts = linear(y, qkv_weight, qkv_bias).reshape({x.size(0), x.size(1), 3, heads, width / heads});
    parts = parts.permute({2, 0, 3, 1, 4});
    Tensor z = scaled_dot_product_attention(parts.select(0, 0), parts.select(0, 1), parts.select(0, 2));
    return linear(z.transpose(1, 2).reshape(x.sizes()), out_weight, out_bias);
  };
  auto feed = [&](const Tensor& y) {
    Tensor up = linear(y, up_weight, up_bias);
    return linear(use_gelu ? gelu(up) : relu(up), down_weight, down_bias);
  };
  auto norm1 = [&](const Tensor& y) { return layer_norm(y, {width}, norm1_weight, norm1_bias, eps); };
  auto norm2 = [&](const Tensor& y) { return layer_norm(y, {width}, norm2_weight, norm2_bias, eps); };
  if (norm_first) {
    Tensor y = x + attend(norm1(x));
    return y + feed(norm2(y));
  }
  Tensor y = norm1(x + attend(x));
  return norm2(y + feed(y));
}

}  // namespace

std::span<const Function> matrix_functions() {
  static const Function kList[] = {
      {"mm(Tensor self, Tensor mat2) -> Tensor", mm},
      {"bmm(Tensor self, Tensor mat2) -> Tensor", bmm},
      {"dot(Tensor self, Tensor tensor) -> Tensor", dot},
      {"vdot(Tensor self, Tensor other) -> Tensor", vdot},
      {"mv(Tensor self, Tensor vec) -> Tensor", mv},
      {"outer(Tensor self, Tensor vec2) -> Tensor", outer},
      {"ger(Tensor self, Tensor vec2) -> Tensor", ger},
      {"matmul(Tensor self, Tensor other) -> Tensor", matmul},
      {"inner(Tensor self, Tensor other) -> Tensor", inner},
      {"kron(Tensor self, Tensor other) -> Tensor", kron},
      {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", bilinear},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmm},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", baddbmm},
      {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmv},
      {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addr},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addbmm},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear},
      {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
       [](In a, In b, Ints dims_a, Ints dims_b) { return tensordot(a, b, dims_a, dims_b); }},
      {"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
       [](Text equation, const TensorList& operands, Ignored) { return einsum(equation, operands); }},
      {"chain_matmul(Tensor[] matrices) -> Tensor", [](const TensorList& matrices) { return chain_matmul(matrices); }},
      {"linalg_multi_dot(Tensor[] tensors) -> Tensor",
       [](const TensorList& matrices) { return linalg::multi_dot(matrices); }},
      {"trace(Tensor self) -> Tensor", trace},
      {"cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
       [](In a, In b, MaybeInt dim) { return cross(a, b, dim); }},
      {"linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
       [](In a, In b, Int dim) { return linalg::cross(a, b, dim); }},
      {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
       [](In a, In b, Int dim) { return linalg::vecdot(a, b, dim); }},
      {"_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
       "Tensor",
       [](const Tensor& x, const Tensor& weight, const Tensor& ends, Unset, MaybeType dtype) {
         Tensor out = grouped_product(x, weight, ends);
         return dtype ? out.to(*dtype) : out;
       }},
      // Experts of the transformers library.
      {"transformers::grouped_mm_fallback.default(Tensor input, Tensor weight, Tensor offs) -> Tensor",
       grouped_product},
      {"transformers::grouped_mm_fallback_backward.default(Tensor input, Tensor weight, Tensor offs, Tensor "
       "grad_output) -> (Tensor, Tensor)",
       grouped_product_backward},
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
       "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
       scaled_dot_product_attention},
      {"_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
       flash_attention},
      {"_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
       "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
       "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
       flash_attention_backward},
      {"_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
       "compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor "
       "log_sumexp, Tensor philox_seed, Tensor philox_offset)",
       efficient_attention},
      {"_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, "
       "Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, "
       "bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)",
       efficient_attention_backward},

      {"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
       "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor "
       "norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor "
       "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
       encoder_layer},

      // --- distances
      {"cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", cdist},
      {"_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist},
      {"pdist(Tensor self, float p=2.) -> Tensor", pdist},
      {"_pdist_forward(Tensor self, float p=2.) -> Tensor", pdist},
      {"dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist},
      {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm},
      {"_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", [](In a, In b) { return cdist(a, b, 2); }},
  };
  return kList;
}

}  // namespace sinter::interop
