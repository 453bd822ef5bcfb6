#include "sinter/ops/matmul.h"

#include <cmath>
#include <limits>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

Shape lead_of(const Shape& s) { return Shape(s.begin(), s.end() - 2); }

// How many query heads share one key head: 1 unless grouped.
Dim group_size(const Shape& query, const Shape& key, bool enable_gqa) {
  if (!enable_gqa || query.rank() < 3 || key.rank() < 3) return 1;
  return query[query.size() - 3] / key[key.size() - 3];
}

// The leading dimensions of the result; `kv` are those of key and value.
Shape broadcast_leads(const Shape& q, const Shape& k, const Shape& kv) {
  try {
    return broadcast_shapes("scaled_dot_product_attention", lead_of(q), kv);
  } catch (const Error&) {
    throw_error(format("scaled_dot_product_attention: the leading dimensions of query {} and key {} do not broadcast; "
                       "enable_gqa lets query heads share key heads", q, k));
  }
}

// The attention of f32 (or f64) operands.
Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
              const AttentionAttrs& a) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  Dim rows = query.size(-2), columns = key.size(-2), group = group_size(query.sizes(), key.sizes(), a.enable_gqa);
  bool grouped = !group.is_number() || group.number() != 1;
  // Query heads that share a key head are more rows of it: neither key nor value is repeated.
  auto fold = [&](const Tensor& t) {
    return grouped ? t.reshape(with_tail(t.sizes(), 3, {key.size(-3), group * rows, t.size(-1)})) : t;
  };
  auto unfold = [&](const Tensor& t) {
    return grouped ? t.reshape(with_tail(t.sizes(), 3, {query.size(-3), rows, t.size(-1)})) : t;
  };
  double scale = a.scale ? *a.scale : 1 / std::sqrt(double(query.size(-1).to_int()));
  Tensor scores = unfold(matmul(fold(query), key.transpose(-2, -1))) * scale;
  if (a.is_causal)
    scores = where(arange_of_size(rows, TensorOptions(kInt64).device(query.device())).unsqueeze(1) >=
                       arange_of_size(columns, TensorOptions(kInt64).device(query.device())).unsqueeze(0),
                   scores, kNever);
  Tensor p;
  if (mask.defined()) {
    scores = mask.dtype() == kBool ? where(mask, scores, kNever) : scores + mask.to(scores.dtype());
    // Zeros instead of 0 / 0 for rows that see nothing, in the gradient too.
    Tensor blind = amax_if_any(scores, {-1}, true) == kNever;
    p = where(blind, 0.0, where(blind, 0.0, scores).softmax(-1));
  } else {
    p = scores.softmax(-1);
  }
  if (dropout_p > 0) p = dropout(p, dropout_p, true);
  return unfold(matmul(fold(p), value));
}

}  // namespace

struct ScaledDotProductAttention : Composite {
  static constexpr auto name = "scaled_dot_product_attention";
  static constexpr int inputs = -1;
  using Attributes = AttentionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<AttentionAttrs>();
    check(call.inputs.size() == 3 || call.inputs.size() == 4,
          "scaled_dot_product_attention: takes query, key, value and perhaps a mask");
    const Shape &q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
    check(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2,
          "scaled_dot_product_attention: query {}, key {} and value {} need at least two dimensions", q, k, v);
    DType dtype = call.inputs[0].dtype;
    check(is_floating(dtype) && call.inputs[1].dtype == dtype && call.inputs[2].dtype == dtype,
          "scaled_dot_product_attention: query, key and value must have one floating dtype, got {}, {} and {}", dtype,
          call.inputs[1].dtype, call.inputs[2].dtype);
    check(q.back() == k.back(), "scaled_dot_product_attention: the last sizes of query {} and key {} differ", q, k);
    check(k[k.size() - 2] == v[v.size() - 2],
          "scaled_dot_product_attention: key {} and value {} have different lengths", k, v);
    Shape kv = broadcast_shapes("scaled_dot_product_attention", lead_of(k), lead_of(v));
    if (a.enable_gqa) {
      check(q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 && k[k.size() - 3] == v[v.size() - 3] &&
                !k[k.size() - 3].same_as(0) && q[q.size() - 3] % k[k.size() - 3] == 0,
            "scaled_dot_product_attention: the heads of query {} must be a multiple of those of key {} and value {}", q,
            k, v);
      kv.back() = q[q.size() - 3];
    }
    Shape out = broadcast_leads(q, k, kv);
    if (call.inputs.size() == 4) {
      check(!a.is_causal, "scaled_dot_product_attention: give a mask or is_causal, not both");
      DType m = call.inputs[3].dtype;
      check(m == kBool || is_floating(m), "scaled_dot_product_attention: a mask is bool or floating, not {}", m);
      Shape scores = with_tail(out, 0, {q[q.size() - 2], k[k.size() - 2]});
      Shape both = broadcast_shapes("scaled_dot_product_attention", scores, call.shape(3));
      bool fit = both.rank() == scores.rank();
      for (size_t d = 0; fit && d < both.size(); ++d) fit = both[d] == scores[d];
      check(fit, "scaled_dot_product_attention: the mask {} does not broadcast to {}", call.shape(3), scores);
    }
    out.push_back(q[q.size() - 2]);
    out.push_back(v.back());
    return {Type{dtype, out, call.inputs[0].device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& q = inputs[0].tensor();
    Tensor mask = inputs.size() == 4 ? inputs[3].tensor() : Tensor();
    Tensor y = attend(widened(q), widened(inputs[1].tensor()), widened(inputs[2].tensor()), mask, 0,
                      attrs.as<AttentionAttrs>());
    return {narrowed(y, q.dtype())};
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 4e-5};
  SINTER_SAMPLES("x[2, 3, 5, 8], x[2, 3, 7, 8], x[2, 3, 7, 6]", "x[5, 4], x[6, 4], x[6, 3]",
                 "x[1, 2, 17, 16], x[1, 2, 17, 16], x[1, 2, 17, 16] | is_causal=true",
                 "x[1, 2, 1, 16], x[1, 2, 33, 16], x[1, 2, 33, 16]",
                 "x[2, 6, 4, 8], x[2, 2, 9, 8], x[2, 2, 9, 8] | enable_gqa=true",
                 "x[1, 4, 3, 8], x[1, 2, 5, 8], x[1, 2, 5, 8], bool[3, 5] | enable_gqa=true, scale=0.3",
                 "x[2, 2, 3, 4], x[2, 2, 19, 4], x[2, 2, 19, 4], x[2, 1, 3, 19] | scale=0.5")
};

OpFamily attention_ops() {
  static const Op* const ops[] = {&op_of<ScaledDotProductAttention>};
  return ops;
}

Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  constexpr auto op = "scaled_dot_product_attention";
  UserPosition here(query.where());
  const Tensor &q = tensor_operand(op, query), &k = tensor_operand(op, key), &v = tensor_operand(op, value);
  check(dropout_p >= 0 && dropout_p <= 1, "{}: dropout_p {} is not between 0 and 1", op, dropout_p);
  check(!attn_mask.defined() || !is_causal, "{}: give a mask or is_causal, not both", op);
  AttentionAttrs a{is_causal, scale, enable_gqa};
  std::vector<Type> types;
  for (auto* t : {&q, &k, &v, &attn_mask})
    if (t->defined()) types.push_back({t->dtype(), t->sizes(), t->device()});
  Attrs attrs(a);
  ScaledDotProductAttention::infer(OpCall{op_of<ScaledDotProductAttention>, types, attrs});
  // With dropout it is random: not one op, which could be merged with its equal.
  if (dropout_p > 0) return narrowed(attend(widened(q), widened(k), widened(v), attn_mask, dropout_p, a), q.dtype());
  if (attn_mask.defined()) return call<ScaledDotProductAttention>({query, key, value, attn_mask}, a);
  return call<ScaledDotProductAttention>({query, key, value}, a);
}

}  // namespace sinter
