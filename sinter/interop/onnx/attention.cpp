// Attention and what models of language put around it.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// [batch, tokens, heads * size] → [batch, heads, tokens, size].
Tensor by_heads(In x, Int heads) {
  check(heads > 0 && x.dim() == 3, "an operand {} for {} heads", x.sizes(), heads);
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
Tensor joined_heads(const Tensor& x) {
  return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// Whom a query may see, told by positions: query i stands at i + offset. The offset is a size, or one for each batch.
Tensor positions_allow(const Dim& queries, const Dim& keys, Any offset, bool is_causal, Int left, Int right, Device device) {
  const TensorOptions options = TensorOptions(kInt64).device(device);
  Tensor query = arange_of_size(queries, options).unsqueeze(1);
  const Tensor key = arange_of_size(keys, options);
  if (offset.is<Dim>())
    query = add(query, TensorArg(offset.as<Dim>()));
  else
    query = add(query, offset.as<Tensor>().reshape({-1, 1, 1, 1}));
  Tensor allowed = ones({queries, keys}, TensorOptions(kBool).device(device));
  if (is_causal) allowed = logical_and(allowed, le(key, query));
  if (left >= 0) allowed = logical_and(allowed, ge(key, sub(query, left)));
  if (right >= 0) allowed = logical_and(allowed, le(key, add(query, right)));
  return allowed;
}

struct AttentionOptions {
  bool is_causal;
  Int kv_heads, left_window, output_mode, q_heads, right_window;
  MaybeReal scale;
  double softcap;
  Any precision;
  Int output_count;
};

// A mask may tell less than all keys: the others are not seen.
Tensor whole_mask(Maybe mask, const Dim& keys) {
  const Dim told = mask.size(-1);
  if (told == keys) return mask;
  return constant_pad_nd(mask, {0, keys - told}, mask.dtype() == kBool ? Scalar(false) : Scalar(-INFINITY));
}

ValueList attend(In query, In key, In value, Maybe attn_mask, Maybe past_key, Maybe past_value, Maybe valid_keys,
                 const AttentionOptions& options) {
  const bool is_flat = query.dim() == 3;
  const Tensor q = is_flat ? by_heads(query, options.q_heads) : query.tensor();
  Tensor k = is_flat ? by_heads(key, options.kv_heads) : key.tensor();
  Tensor v = is_flat ? by_heads(value, options.kv_heads) : value.tensor();
  if (past_key.defined()) k = cat({past_key, k}, 2);
  if (past_value.defined()) v = cat({past_value, v}, 2);
  const Dim queries = q.size(2), keys = k.size(2);
  const bool has_window = options.left_window >= 0 || options.right_window >= 0;
  Tensor mask = attn_mask.defined() ? whole_mask(attn_mask, keys) : Tensor();
  auto restrict = [&](const Tensor& allowed) {
    if (!mask.defined())
      mask = allowed;
    else if (mask.dtype() == kBool)
      mask = logical_and(mask, allowed);
    else
      mask = where(allowed, mask, full({}, -INFINITY, mask.options()));
  };
  const bool is_plain_causal = options.is_causal && !past_key.defined() && !valid_keys.defined() && !mask.defined() && !has_window;
  if ((options.is_causal && !is_plain_causal) || has_window) {
    Value offset{past_key.defined() ? past_key.size(2) : Dim(0)};
    if (valid_keys.defined()) offset = {sub(valid_keys, TensorArg(queries))};
    restrict(positions_allow(queries, keys, offset, options.is_causal, options.left_window, options.right_window, q.device()));
  }
  if (valid_keys.defined())
    restrict(lt(arange_of_size(keys, TensorOptions(kInt64).device(q.device())), valid_keys.reshape({-1, 1, 1, 1})));

  const bool is_grouped = !(q.size(1) == k.size(1));
  Tensor scores, out;
  if (options.softcap == 0 && options.output_count < 4) {
    out = scaled_dot_product_attention(q, k, v, mask, 0, is_plain_causal, options.scale, is_grouped);
  } else {
    if (is_plain_causal) restrict(positions_allow(queries, keys, {Dim(0)}, true, -1, -1, q.device()));
    const Dim repeats = q.size(1) / k.size(1);
    const Tensor all_keys = is_grouped ? repeat_interleave(k, repeats, 1) : k;
    const Tensor all_values = is_grouped ? repeat_interleave(v, repeats, 1) : v;
    const double scale = options.scale.value_or(1 / std::sqrt(double(q.size(3).to_int())));
    Tensor logits = matmul(mul(q, std::sqrt(scale)), mul(transpose(all_keys, 2, 3), std::sqrt(scale)));
    scores = logits;
    if (options.softcap > 0) logits = mul(tanh(div(logits, options.softcap)), options.softcap);
    if (options.output_mode == 1) scores = logits;
    Tensor seen;
    if (mask.defined()) {
      const Tensor never = full({}, -INFINITY, logits.options());
      const Tensor bias = mask.dtype() == kBool ? where(mask, zeros({}, logits.options()), never) : mask;
      logits = add(logits, bias);
      seen = gt(amax(bias, {-1}, true), -INFINITY);  // some key, by the mask
    }
    if (options.output_mode == 2) scores = logits;
    Tensor shares = softmax(logits, -1);
    if (seen.defined()) shares = where(seen, shares, zeros({}, shares.options()));
    if (options.output_mode == 3) scores = shares;
    out = matmul(shares, all_values);
  }
  return {{is_flat ? joined_heads(out) : out}, {k}, {v}, {scores}};
}

// Rotates pairs of elements of each head: halves of it, or neighbours.
Tensor rotated(In x, In cosines, In sines, Maybe positions, bool interleaved, Int heads, Int rotary_dim) {
  const Tensor by_head = x.dim() == 3 ? by_heads(x, heads) : x.tensor();
  const Dim size = by_head.size(3), part = rotary_dim > 0 ? Dim(rotary_dim) : size, half = part / 2;
  auto table = [&](const Tensor& all) {
    if (!positions.defined()) return all.unsqueeze(1);
    Shape sizes = positions.sizes();
    sizes.push_back(all.size(1));
    return index_select(all, 0, positions.flatten()).view(sizes).unsqueeze(1);
  };
  const Tensor c = table(cosines.tensor()), s = table(sines.tensor());
  const Tensor turned = narrow(by_head, 3, 0, part);
  const Tensor a = interleaved ? slice(turned, 3, {}, {}, 2) : narrow(turned, 3, 0, half);
  const Tensor b = interleaved ? slice(turned, 3, Dim(1), {}, 2) : narrow(turned, 3, half, half);
  const Tensor real = sub(mul(c, a), mul(s, b)), imaginary = add(mul(s, a), mul(c, b));
  Tensor out = interleaved ? stack({real, imaginary}, -1).flatten(3) : cat({real, imaginary}, 3);
  if (!(part == size)) out = cat({out, narrow(by_head, 3, part, size - part)}, 3);
  return x.dim() == 3 ? joined_heads(out) : out;
}

// Attention without softmax: a state for each head, to which every token adds its key times its value.
std::tuple<Tensor, Tensor> linear_attention(In query, In key, In value, Maybe past, Maybe decay, Maybe beta, Ignored, Int kv_heads,
                                            Int q_heads, double scale, Text rule) {
  const Tensor q = by_heads(query, q_heads).to(kFloat32), k = by_heads(key, kv_heads).to(kFloat32);
  const Tensor v = by_heads(value, kv_heads).to(kFloat32);
  const int64_t tokens = q.size(2), size = q.size(3), group = q_heads / kv_heads;
  const double factor = scale != 0 ? scale : 1 / std::sqrt(double(size));
  Tensor state = past.defined() ? past.to(kFloat32) : zeros({q.size(0), kv_heads, size, v.size(3)}, q.options());
  const bool is_gated = rule.starts_with("gated"), corrects = rule.ends_with("delta");
  Tensor gates, rates;
  if (is_gated) gates = exp(by_heads(decay, kv_heads).to(kFloat32));
  if (corrects) rates = transpose(beta, 1, 2).to(kFloat32).unsqueeze(-1);
  TensorList out;
  for (int64_t i = 0; i < tokens; ++i) {
    if (is_gated) state = mul(state, select(gates, 2, i).unsqueeze(-1));
    const Tensor now_key = select(k, 2, i);
    Tensor now = select(v, 2, i);
    if (corrects) now = mul(select(rates, 2, i), sub(now, matmul(now_key.unsqueeze(2), state).squeeze(2)));
    state = add(state, mul(now_key.unsqueeze(-1), now.unsqueeze(2)));
    const Tensor seen = group == 1 ? state : repeat_interleave(state, Dim(group), 1);
    out.push_back(mul(matmul(select(q, 2, i).unsqueeze(2), seen).squeeze(2), factor));
  }
  const DType dtype = past.defined() ? past.dtype() : query.dtype();
  return {joined_heads(stack(out, 2)).to(query.dtype()), state.to(dtype)};
}

// A convolution of each channel with what came before, and what the next call needs of it.
std::tuple<Tensor, Tensor> causal_conv(In x, In weight, Maybe bias, Maybe past, Text activation) {
  const Dim before = weight.size(2) - 1;
  const Tensor all = past.defined() ? cat({past, x.tensor()}, 2) : constant_pad_nd(x, {before, 0});
  Tensor out = conv1d(all, weight, bias, 1, 0, 1, x.size(1));
  check(activation == "none" || activation == "silu" || activation == "swish", "there is no activation '{}'", activation);
  if (activation != "none") out = silu(out);
  return {out, narrow(all, 2, all.size(2) - before, before)};
}

}  // namespace

std::span<const Function> attention_operators() {
  static const Function kList[] = {
      {"onnx::Attention.23(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask=None, Tensor? past_key=None, Tensor? past_value=None, "
       "Tensor? nonpad_kv_seqlen=None, *, int is_causal=0, int kv_num_heads=0, int left_window_size=-1, int q_num_heads=0, int "
       "qk_matmul_output_mode=0, int right_window_size=-1, float? scale=None, float softcap=0.0, int? softmax_precision=None, int "
       "output_count=1) -> (Tensor, Tensor, Tensor, Tensor)",
       [](In q, In k, In v, Maybe mask, Maybe past_key, Maybe past_value, Maybe valid, bool causal, Int kv_heads, Int left,
          Int q_heads, Int mode, Int right, MaybeReal scale, double softcap, Any precision, Int count) {
         return attend(q, k, v, mask, past_key, past_value, valid,
                       {causal, kv_heads, left, mode, q_heads, right, scale, softcap, precision, count});
       }},
      {"onnx::RotaryEmbedding.23(Tensor X, Tensor cos_cache, Tensor sin_cache, Tensor? position_ids=None, *, int interleaved=0, int "
       "num_heads=0, int rotary_embedding_dim=0) -> Tensor",
       rotated},
      {"onnx::LinearAttention.27(Tensor query, Tensor key, Tensor value, Tensor? past_state=None, Tensor? decay=None, Tensor? "
       "beta=None, *, int? chunk_size=None, int kv_num_heads, int q_num_heads, float scale=0.0, str update_rule=\"gated_delta\") -> "
       "(Tensor, Tensor)",
       linear_attention},
      {"onnx::CausalConvWithState.27(Tensor input, Tensor weight, Tensor? bias=None, Tensor? past_state=None, *, str "
       "activation=\"none\") -> (Tensor, Tensor)",
       causal_conv},
      {"onnx::SwiGLU.28(Tensor A, Tensor B, *, float alpha=1.0) -> Tensor",
       [](In a, In b, double alpha) { return mul(mul(a, sigmoid(mul(a, alpha))), b); }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
