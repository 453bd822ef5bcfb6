#include "sinter/nn/attention.h"

#include <cmath>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

// --- MultiheadAttention

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options) : options(options) { reset(); }

void MultiheadAttentionImpl::reset() {
  int64_t e = options.embed_dim(), heads = options.num_heads();
  check(heads > 0 && e % heads == 0, "nn::MultiheadAttention: embed_dim {} is no multiple of num_heads {}", e, heads);
  int64_t kdim = options.kdim().value_or(e), vdim = options.vdim().value_or(e);
  if (kdim == e && vdim == e) {
    in_proj_weight = register_parameter("in_proj_weight", new_parameter({3 * e, e}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", new_parameter({e, e}));
    k_proj_weight = register_parameter("k_proj_weight", new_parameter({e, kdim}));
    v_proj_weight = register_parameter("v_proj_weight", new_parameter({e, vdim}));
  }
  if (options.bias()) in_proj_bias = register_parameter("in_proj_bias", new_parameter({3 * e}));
  if (options.add_bias_kv()) {
    bias_k = register_parameter("bias_k", new_parameter({1, 1, e}));
    bias_v = register_parameter("bias_v", new_parameter({1, 1, e}));
  }
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  if (initialises_parameters()) reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  for (auto& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (weight.defined()) init::xavier_uniform_(weight);
  if (options.bias()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (auto& bias : {bias_k, bias_v})
    if (bias.defined()) init::xavier_normal_(bias);
}

// Query, key and value, [n, length, features], after their projections.
TensorList MultiheadAttentionImpl::project(const Tensor& query, const Tensor& key, const Tensor& value) const {
  bool is_joined = in_proj_weight.defined();
  if (is_joined && query.is_same(key) && key.is_same(value))
    return linear(query, in_proj_weight, in_proj_bias).chunk(3, -1);
  TensorList weights{q_proj_weight, k_proj_weight, v_proj_weight}, biases(3);
  if (is_joined) weights = in_proj_weight.chunk(3);
  if (in_proj_bias.defined()) biases = in_proj_bias.chunk(3);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
          linear(value, weights[2], biases[2])};
}

// What may be seen, as scaled_dot_product_attention takes it: broadcast to [n, heads, l, s], undefined for everything.
// The rule of causality stays a rule unless a mask is needed anyway.
static Tensor merged_mask(const AttentionArgs& args, const Dim& n, const Dim& heads, const Dim& l, const Dim& s,
                          DType dtype, bool needs_mask) {
  TensorList parts;
  if (const Tensor& mask = args.attn_mask(); mask.defined()) {
    check(mask.dim() == 2 || mask.dim() == 3,
          "nn::MultiheadAttention: attn_mask is [l, s] or [n * heads, l, s], not {}", mask.sizes());
    parts.push_back(mask.dim() == 2 ? mask : mask.view({n, heads, l, s}));
  }
  if (Tensor mask = args.key_padding_mask(); mask.defined()) {
    if (mask.dim() == 1) mask = mask.unsqueeze(0);
    check(mask.dim() == 2, "nn::MultiheadAttention: key_padding_mask is [n, s], not {}", mask.sizes());
    parts.push_back(mask.view({n, 1, 1, s}));
  }
  if (args.is_causal() && (args.need_weights() || needs_mask || !parts.empty())) {
    Tensor row = arange(l).unsqueeze(1), column = arange(s).unsqueeze(0);
    parts.push_back(column > row);
  }
  if (parts.empty()) return {};
  bool all_bool = std::all_of(parts.begin(), parts.end(), [](auto& part) { return part.dtype() == kBool; });
  Tensor mask;
  for (auto& part : parts) {
    Tensor hidden = part;
    if (!all_bool && part.dtype() == kBool)
      hidden = where(part, -std::numeric_limits<double>::infinity(), zeros({}, dtype));
    mask = !mask.defined() ? hidden : all_bool ? logical_or(mask, hidden) : mask + hidden;
  }
  return all_bool ? logical_not(mask) : mask;
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const TensorArg& query_arg, const Tensor& key_in,
                                                           const Tensor& value_in, const AttentionArgs& args) {
  UserPosition here(query_arg.where(), "nn::MultiheadAttention");
  const Tensor& query_in = query_arg.tensor();
  int64_t e = options.embed_dim();
  auto fits = [&](const Tensor& x, int64_t features) {
    return (x.dim() == 2 || x.dim() == 3) && x.dim() == query_in.dim() && x.size(-1) == features;
  };
  check(fits(query_in, e) && fits(key_in, options.kdim().value_or(e)) && fits(value_in, options.vdim().value_or(e)),
        "nn::MultiheadAttention: query, key and value are [length, batch, {}] (or batch_first, or without a batch), "
        "got {}, {} and {}",
        e, query_in.sizes(), key_in.sizes(), value_in.sizes());
  bool has_batch = query_in.dim() == 3;
  bool is_self = query_in.is_same(key_in) && key_in.is_same(value_in);
  auto batch_first = [&](const Tensor& x) {
    return !has_batch ? x.unsqueeze(0) : options.batch_first() ? x : x.transpose(0, 1);
  };
  Tensor query = batch_first(query_in), key = is_self ? query : batch_first(key_in);
  Tensor value = is_self ? query : batch_first(value_in);

  Dim n = query.size(0), l = query.size(1), s = key.size(1);
  int64_t heads = options.num_heads(), added = 0;
  TensorList projected = project(query, key, value);
  auto append = [&](const Tensor& k, const Tensor& v) {
    projected[1] = cat({projected[1], k.expand({n, 1, e})}, 1);
    projected[2] = cat({projected[2], v.expand({n, 1, e})}, 1);
    ++added;
  };
  if (bias_k.defined()) append(bias_k, bias_v);
  if (options.add_zero_attn()) append(zeros({1, 1, e}, key.options()), zeros({1, 1, e}, value.options()));
  for (auto& x : projected) x = x.reshape({n, -1, heads, e / heads}).transpose(1, 2);
  double dropout_p = is_training() ? options.dropout() : 0;
  Tensor mask = merged_mask(args, n, heads, l, s, query.dtype(), added > 0);
  // What was added is seen by all.
  if (mask.defined() && added > 0) mask = constant_pad_nd(mask, {0, added}, mask.dtype() == kBool ? 1 : 0);

  Tensor out, weights;
  if (args.need_weights()) {
    Tensor scores = matmul(projected[0] * (1 / std::sqrt(double(e / heads))), projected[1].transpose(-2, -1));
    if (mask.defined())
      scores = mask.dtype() == kBool ? masked_fill(scores, logical_not(mask), -std::numeric_limits<double>::infinity())
                                     : scores + mask;
    weights = sinter::dropout(softmax(scores, -1), dropout_p, is_training());
    out = matmul(weights, projected[2]);
    if (args.average_attn_weights()) weights = weights.mean({1});
    if (!has_batch) weights = weights.squeeze(0);
  } else {
    bool causal = args.is_causal() && !mask.defined();
    out = scaled_dot_product_attention(projected[0], projected[1], projected[2], mask, dropout_p, causal);
  }
  out = out_proj(out.transpose(1, 2).reshape({n, l, e}));
  if (!has_batch) return {out.squeeze(0), weights};
  return {options.batch_first() ? out : out.transpose(0, 1), weights};
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const TensorArg& query, const Tensor& key,
                                                           const Tensor& value, const Tensor& key_padding_mask,
                                                           bool need_weights, const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  AttentionArgs args;
  args.key_padding_mask(key_padding_mask).need_weights(need_weights).attn_mask(attn_mask);
  return forward(query, key, value, args.average_attn_weights(average_attn_weights));
}

std::string MultiheadAttentionImpl::extra_repr() const {
  return format("embed_dim={}, num_heads={}, dropout={}, batch_first={}", options.embed_dim(), options.num_heads(),
                options.dropout(), options.batch_first());
}

}  // namespace sinter::nn
