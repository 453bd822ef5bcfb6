#include "sinter/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/draws.h"
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

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The products of attention, of f32 (or f64) operands. Query heads that share a key head are more rows of it: neither key nor
// value is repeated.
class Heads {
 public:
  Heads(const Tensor& query, const Tensor& key, const AttentionAttrs& a)
      : query_(query), key_(key), attrs_(a), group_(group_size(query.sizes(), key.sizes(), a.enable_gqa)) {}

  double scale() const { return attrs_.scale ? *attrs_.scale : 1 / std::sqrt(double(query_.size(-1).to_int())); }
  Tensor fold(const Tensor& t) const {
    return is_grouped() ? t.reshape(with_tail(t.sizes(), 3, {key_.size(-3), group_ * query_.size(-2), t.size(-1)})) : t;
  }
  Tensor unfold(const Tensor& t) const {
    return is_grouped() ? t.reshape(with_tail(t.sizes(), 3, {query_.size(-3), query_.size(-2), t.size(-1)})) : t;
  }
  // With minus infinity where causality or the mask hides a key.
  Tensor scores(const Tensor& mask) const {
    Tensor scores = unfold(matmul(fold(query_), key_.transpose(-2, -1))) * scale();
    auto places = [&](const Tensor& of) { return arange_of_size(of.size(-2), TensorOptions(kInt64).device(query_.device())); };
    if (attrs_.is_causal) scores = where(places(query_).unsqueeze(1) >= places(key_).unsqueeze(0), scores, kNever);
    if (!mask.defined()) return scores;
    return mask.dtype() == kBool ? where(mask, scores, kNever) : scores + mask.to(scores.dtype());
  }

 private:
  bool is_grouped() const { return !group_.is_number() || group_.number() != 1; }
  const Tensor &query_, &key_;
  const AttentionAttrs& attrs_;
  Dim group_;
};

// What dropout multiplies the weights by: zero, or 1 / (1 - p). Undefined without dropout.
Tensor kept_weights(const Tensor& weights, std::span<const TensorArg> inputs, const AttentionAttrs& a) {
  if (a.drawn() == 0) return {};
  Shape lead = lead_of(inputs[2].sizes());
  if (a.enable_gqa) lead.back() = inputs[0].tensor().size(-3);
  const Dim &queries = weights.size(-2), &keys = weights.size(-1);
  Shape drawn = with_tail(broadcast_shapes("dropout", lead_of(weights.sizes()), lead), 0, {queries, drawn_keys(keys)});
  Tensor draw = rand_words(drawn, weights.device(), inputs[inputs.size() - 2], inputs[inputs.size() - 1]);
  // The threshold is an f32, as the numbers are: no compiler may compare more digits than another.
  const double p = double(float(a.dropout_p));
  return (narrow(draw, -1, 0, keys) >= p).to(weights.dtype()) * (a.dropout_p == 1 ? 0.0 : 1 / (1 - a.dropout_p));
}

// What attention of operands of these types gives; checks them.
Type result_type(const OpCall& call, size_t mask) {
  auto& a = call.as<AttentionAttrs>();
  constexpr auto op = "scaled_dot_product_attention";
  const Shape &q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
  check(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2, "{}: query {}, key {} and value {} need at least two dimensions", op, q,
        k, v);
  DType dtype = call.inputs[0].dtype;
  check(is_floating(dtype) && call.inputs[1].dtype == dtype && call.inputs[2].dtype == dtype,
        "{}: query, key and value must have one floating dtype, got {}, {} and {}", op, dtype, call.inputs[1].dtype,
        call.inputs[2].dtype);
  check(q.back() == k.back(), "{}: the last sizes of query {} and key {} differ", op, q, k);
  check(k[k.size() - 2] == v[v.size() - 2], "{}: key {} and value {} have different lengths", op, k, v);
  Shape kv = broadcast_shapes(op, lead_of(k), lead_of(v));
  if (a.enable_gqa) {
    check(q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 && k[k.size() - 3] == v[v.size() - 3] &&
              !k[k.size() - 3].same_as(0) && q[q.size() - 3] % k[k.size() - 3] == 0,
          "{}: the heads of query {} must be a multiple of those of key {} and value {}", op, q, k, v);
    kv.back() = q[q.size() - 3];
  }
  Shape out = broadcast_leads(q, k, kv);
  if (a.drawn() > 0) {
    check(a.dropout_p <= 1, "{}: dropout_p {} is not between 0 and 1", op, a.dropout_p);
    for (size_t i = call.inputs.size() - a.drawn(); i < call.inputs.size(); ++i)
      check(call.inputs[i].rank() == 0, "{}: {} is no seed or offset of a draw", op, call.inputs[i]);
  }
  if (has_attention_mask(call.op, call.inputs.size(), a)) {
    check(!a.is_causal, "{}: give a mask or is_causal, not both", op);
    DType m = call.inputs[mask].dtype;
    check(m == kBool || is_floating(m), "{}: a mask is bool or floating, not {}", op, m);
    Shape scores = with_tail(out, 0, {q[q.size() - 2], k[k.size() - 2]});
    Shape both = broadcast_shapes(op, scores, call.shape(int(mask)));
    bool fit = both.rank() == scores.rank();
    for (size_t d = 0; fit && d < both.size(); ++d) fit = both[d] == scores[d];
    check(fit, "{}: the mask {} does not broadcast to {}", op, call.shape(int(mask)), scores);
  }
  out.push_back(q[q.size() - 2]);
  out.push_back(v.back());
  return {dtype, out, call.inputs[0].device};
}

// Of ops whose gradient is not added up over leading dimensions: they are the same for all, but for heads that share.
void check_leads(const OpCall& call) {
  const int64_t own = call.as<AttentionAttrs>().enable_gqa ? 3 : 2;
  auto lead = [&](int i) { return Shape(call.shape(i).begin(), call.shape(i).end() - own); };
  check(lead(0) == lead(1) && lead(1) == lead(2), "{}: the leading dimensions of query {}, key {} and value {} differ", call.name(),
        call.shape(0), call.shape(1), call.shape(2));
}

Tensor mask_of(std::span<const TensorArg> inputs, size_t mask, const AttentionAttrs& a) {
  return inputs.size() > mask + a.drawn() ? inputs[mask].tensor() : Tensor();
}

// Of an op that takes so many tensors, and perhaps a mask, and a draw.
void check_count(const OpCall& call, size_t tensors, const char* takes) {
  const size_t drawn = call.as<AttentionAttrs>().drawn(), given = call.inputs.size();
  check(given == tensors + drawn || given == tensors + 1 + drawn, "{}: takes {} and perhaps a mask{}", call.name(), takes,
        drawn > 0 ? ", then the seed and the offset of its dropout" : "");
}

}  // namespace

struct ScaledDotProductAttention : Composite {
  static constexpr auto name = "scaled_dot_product_attention";
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = -1;
  using Attributes = AttentionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check_count(call, 3, "query, key, value");
    return {result_type(call, 3)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    auto& a = attrs.as<AttentionAttrs>();
    Tensor v = widened(inputs[2].tensor()), k = widened(inputs[1].tensor()), q = widened(inputs[0].tensor());
    Tensor mask = mask_of(inputs, 3, a), p;
    Heads heads(q, k, a);
    Tensor scores = heads.scores(mask);
    if (mask.defined()) {
      // Zeros instead of 0 / 0 for rows that see nothing, in the gradient too.
      Tensor blind = amax_if_any(scores, {-1}, true) == kNever;
      p = where(blind, 0.0, where(blind, 0.0, scores).softmax(-1));
    } else {
      p = scores.softmax(-1);
    }
    if (Tensor kept = kept_weights(p, inputs, a); kept.defined()) p = p * kept;
    Tensor y = heads.unfold(matmul(heads.fold(p), v));
    return {narrowed(y, inputs[0].dtype())};
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 4e-5};
  SINTER_SAMPLES("x[2, 3, 5, 8], x[2, 3, 7, 8], x[2, 3, 7, 6]", "x[5, 4], x[6, 4], x[6, 3]",
                 "x[1, 2, 17, 16], x[1, 2, 17, 16], x[1, 2, 17, 16] | is_causal=true",
                 "x[1, 2, 1, 16], x[1, 2, 33, 16], x[1, 2, 33, 16]",
                 "x[2, 6, 4, 8], x[2, 2, 9, 8], x[2, 2, 9, 8] | enable_gqa=true",
                 "x[1, 4, 3, 8], x[1, 2, 5, 8], x[1, 2, 5, 8], bool[3, 5] | enable_gqa=true, scale=0.3",
                 "x[2, 2, 3, 4], x[2, 2, 19, 4], x[2, 2, 19, 4], x[2, 1, 3, 19] | scale=0.5",
                 "x[2, 3, 21, 8], x[2, 3, 39, 8], x[2, 3, 39, 6], 5, 7 | dropout_p=0.3",
                 "x[2, 4, 3, 8], x[2, 2, 9, 8], x[2, 2, 9, 8], bool[3, 9], 1, 2 | enable_gqa=true, dropout_p=0.5",
                 "x[1, 2, 17, 16], x[1, 2, 17, 16], x[1, 2, 17, 16], -3, 0 | is_causal=true, dropout_p=0.1")
};

// What flows back through attention: of query, key, value, the logarithms that attention_forward gave, the gradient of its
// result, and by row the mean of what flows back to the weights, which is that gradient times the result, added up.
struct AttentionBackward : Composite {
  static constexpr auto name = "attention_backward";
  static constexpr int inputs = -1;
  using Attributes = AttentionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check_count(call, 6, "query, key, value, logarithms, means, the gradient");
    Type out = result_type(call, 6);
    check_leads(call);
    check(call.shape(5) == out.shape && call.inputs[5].dtype == out.dtype, "attention_backward: the gradient {} must be {}",
          call.inputs[5], out);
    for (int i : {3, 4})
      check(call.shape(i) == Shape(out.shape.begin(), out.shape.end() - 1) && is_floating(call.inputs[size_t(i)].dtype),
            "attention_backward: {} is not one number a row of {}", call.inputs[size_t(i)], out);
    return {call.inputs[0], call.inputs[1], call.inputs[2]};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    DType dtype = inputs[0].tensor().dtype();
    Tensor q = widened(inputs[0].tensor()), k = widened(inputs[1].tensor()), grad = widened(inputs[5].tensor());
    auto& a = attrs.as<AttentionAttrs>();
    Heads heads(q, k, a);
    auto [p, flow] = weights_and_flow(heads, inputs, a);
    Tensor ds = heads.fold(flow * heads.scale()), dv = matmul(heads.fold(p).transpose(-2, -1), heads.fold(grad));
    Tensor dq = heads.unfold(matmul(ds, k)), dk = matmul(ds.transpose(-2, -1), heads.fold(q));
    return {narrowed(dq, dtype), narrowed(dk, dtype), narrowed(dv, dtype)};
  }
  // The weights that the values had, and what flows back to the scores.
  static std::pair<Tensor, Tensor> weights_and_flow(const Heads& heads, std::span<const TensorArg> inputs,
                                                    const AttentionAttrs& a) {
    Tensor v = widened(inputs[2].tensor()), grad = widened(inputs[5].tensor());
    Tensor log_sums = widened(inputs[3].tensor()), means = widened(inputs[4].tensor());
    Tensor p = exp(heads.scores(mask_of(inputs, 6, a)) - log_sums.unsqueeze(-1));
    Tensor flow = heads.unfold(matmul(heads.fold(grad), v.transpose(-2, -1))), kept = kept_weights(p, inputs, a);
    if (kept.defined()) flow = flow * kept;
    return {kept.defined() ? p * kept : p, p * (flow - means.unsqueeze(-1))};
  }
  // Of a mask that is added; as large as all the weights together.
  static Tensor mask_grad(std::span<const TensorArg> inputs, const Attrs& attrs) {
    Tensor q = widened(inputs[0].tensor()), k = widened(inputs[1].tensor());
    const Tensor& mask = inputs[6].tensor();
    auto& a = attrs.as<AttentionAttrs>();
    return sum_to_size(weights_and_flow(Heads(q, k, a), inputs, a).second, mask.sizes()).to(mask.dtype());
  }
  // Weights of any size, since the logarithms of the samples are no sums.
  static constexpr Tolerance tolerance{.ulp = 2048, .absolute = 2e-3};
  SINTER_SAMPLES("x[2, 3, 5, 8], x[2, 3, 7, 8], x[2, 3, 7, 6], x[2, 3, 5], x[2, 3, 5], x[2, 3, 5, 6] | scale=0.1",
                 "x[5, 4], x[6, 4], x[6, 3], x[5], x[5], x[5, 3] | scale=0.1",
                 "x[1, 2, 17, 16], x[1, 2, 17, 16], x[1, 2, 17, 16], x[1, 2, 17], x[1, 2, 17], x[1, 2, 17, 16] | "
                 "is_causal=true, scale=0.1",
                 "x[2, 4, 3, 8], x[2, 2, 9, 8], x[2, 2, 9, 8], x[2, 4, 3], x[2, 4, 3], x[2, 4, 3, 8], bool[3, 9] | "
                 "enable_gqa=true, scale=0.1",
                 "x[2, 3, 21, 8], x[2, 3, 39, 8], x[2, 3, 39, 6], x[2, 3, 21], x[2, 3, 21], x[2, 3, 21, 6], 5, 7 | "
                 "scale=0.1, dropout_p=0.3",
                 "x[2, 4, 17, 8], x[2, 2, 17, 8], x[2, 2, 17, 8], x[2, 4, 17], x[2, 4, 17], x[2, 4, 17, 8], 1, 2 | "
                 "enable_gqa=true, is_causal=true, scale=0.1, dropout_p=0.5")
};

// Attention whose gradient will be wanted: the second result is the logarithm of each row's sum of exp(score), from which
// its weights are found again; infinity for a row to which a mask leaves no key.
struct AttentionForward : Composite {
  static constexpr auto name = "attention_forward";
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = -1;
  using Attributes = AttentionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check_count(call, 3, "query, key, value");
    Type out = result_type(call, 3);
    check_leads(call);
    return {out, Type{wide_dtype(out.dtype), Shape(out.shape.begin(), out.shape.end() - 1), out.device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    auto& a = attrs.as<AttentionAttrs>();
    Tensor q = widened(inputs[0].tensor()), k = widened(inputs[1].tensor()), mask = mask_of(inputs, 3, a);
    Heads heads(q, k, a);
    Tensor scores = heads.scores(mask), top = amax_if_any(scores, {-1}, true), blind;
    if (mask.defined()) {
      blind = top == kNever;
      scores = where(blind, 0.0, scores);
      top = where(blind, 0.0, top);
    }
    Tensor e = exp(scores - top), sums = e.sum({-1}, true), p = e / sums, log_sums = top + log(sums);
    if (mask.defined()) {
      p = where(blind, 0.0, p);
      log_sums = where(blind, -kNever, log_sums);
    }
    if (Tensor kept = kept_weights(p, inputs, a); kept.defined()) p = p * kept;
    Tensor y = heads.unfold(matmul(heads.fold(p), widened(inputs[2].tensor())));
    return {narrowed(y, inputs[0].dtype()), log_sums.squeeze(-1)};
  }
  static TensorList grad(const GradCall& c) {
    TensorList out(c.inputs.size());
    Tensor grad = c.grad(0).defined() ? c.grad(0) : zeros_like(c.out(0));
    Tensor means = (widened(grad) * widened(c.out(0))).sum({-1});
    if (c.grad(1).defined()) means = means - c.grad(1);
    std::vector<TensorArg> operands{c[0], c[1], c[2], c.out(1), means, grad};
    operands.insert(operands.end(), c.inputs.begin() + 3, c.inputs.end());
    TensorList found = call_op_many(op_of<AttentionBackward>, operands, c.attrs, c[0].where());
    for (int i = 0; i < 3; ++i)
      if (c.needs(i)) out[size_t(i)] = found[size_t(i)];
    if (has_attention_mask(c.op, c.inputs.size(), c.as<AttentionAttrs>()) && c.needs(3))
      out[3] = AttentionBackward::mask_grad(operands, c.attrs);
    return out;
  }
  static constexpr Tolerance tolerance = ScaledDotProductAttention::tolerance;
  static constexpr auto& samples = ScaledDotProductAttention::samples;
};

OpFamily attention_ops() {
  static const Op* const ops[] = {&op_of<ScaledDotProductAttention>, &op_of<AttentionForward>, &op_of<AttentionBackward>,
                                  &paged_attention_op()};
  return ops;
}

const Op& attention_backward_op() { return op_of<AttentionBackward>; }
size_t attention_mask_operand(const Op& op) { return &op == &attention_backward_op() ? 6 : 3; }
bool has_attention_mask(const Op& op, size_t operands, const AttentionAttrs& attrs) {
  return operands > attention_mask_operand(op) + attrs.drawn();
}

bool is_attention(const Op& op) {
  auto ops = attention_ops();
  return std::find(ops.begin(), ops.end(), &op) != ops.end();
}

// Whether a gradient is wanted that the op has: none is added up over leading dimensions.
static bool keeps_logarithms(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool enable_gqa) {
  if (!q.requires_grad() && !k.requires_grad() && !v.requires_grad() && !(mask.defined() && mask.requires_grad())) return false;
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2) return false;
  auto leads = [&](const Tensor& t) { return with_tail(t.sizes(), enable_gqa && t.dim() > 2 ? 3 : 2, {}); };
  return leads(q).same_as(leads(k)) && leads(k).same_as(leads(v));
}

Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  constexpr auto op = "scaled_dot_product_attention";
  UserPosition here(query.where());
  const Tensor &q = tensor_operand(op, query), &k = tensor_operand(op, key), &v = tensor_operand(op, value);
  check(dropout_p >= 0 && dropout_p <= 1, "{}: dropout_p {} is not between 0 and 1", op, dropout_p);
  check(!attn_mask.defined() || !is_causal, "{}: give a mask or is_causal, not both", op);
  Attrs attrs(AttentionAttrs{is_causal, scale, enable_gqa, dropout_p});
  std::vector<TensorArg> operands{query, key, value};
  if (attn_mask.defined()) operands.emplace_back(attn_mask, query.where());
  if (dropout_p > 0) {
    // Operands that do not fit are refused before anything is drawn.
    std::vector<Type> types;
    for (auto& arg : operands) types.push_back({arg.dtype(), arg.sizes(), arg.tensor().device()});
    Attrs plain(AttentionAttrs{is_causal, scale, enable_gqa});
    ScaledDotProductAttention::infer(OpCall{op_of<ScaledDotProductAttention>, types, plain});
    for (auto& number : next_draw(query.where())) operands.push_back(number);
  }
  if (keeps_logarithms(q, k, v, attn_mask, enable_gqa))
    return call_op_many(op_of<AttentionForward>, operands, attrs, query.where())[0];
  return call_op(op_of<ScaledDotProductAttention>, operands, attrs, query.where());
}

AttentionHalf attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
                                bool is_causal, std::optional<double> scale) {
  std::vector<TensorArg> operands{query, key, value};
  if (mask.defined()) operands.emplace_back(mask);
  AttentionHalf out;
  if (dropout_p > 0)
    for (auto& number : next_draw(operands[0].where())) out.draw.push_back(number);
  operands.insert(operands.end(), out.draw.begin(), out.draw.end());
  TensorList found = call_op_many(op_of<AttentionForward>, operands, Attrs(AttentionAttrs{is_causal, scale, false, dropout_p}),
                                  operands[0].where());
  out.output = found[0];
  out.logarithms = found[1];
  return out;
}

TensorList attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                              const AttentionHalf& forward, double dropout_p, bool is_causal, std::optional<double> scale,
                              bool wants_mask_grad) {
  Tensor means = (widened(grad) * widened(forward.output)).sum({-1});
  std::vector<TensorArg> operands{query, key, value, forward.logarithms, means, grad};
  if (mask.defined()) operands.emplace_back(mask);
  operands.insert(operands.end(), forward.draw.begin(), forward.draw.end());
  Attrs attrs(AttentionAttrs{is_causal, scale, false, dropout_p});
  TensorList out = call_op_many(op_of<AttentionBackward>, operands, attrs, operands[0].where());
  if (wants_mask_grad) out.push_back(AttentionBackward::mask_grad(operands, attrs));
  return out;
}

}  // namespace sinter
