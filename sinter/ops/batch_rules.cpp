// What each kind of op does with a batch dimension in front. Few ops have a rule of their own: views and products that passes
// and templates know by their names stay what they are.
#include <map>

#include "sinter/ops/attributes.h"
#include "sinter/ops/batched_op.h"
#include "sinter/ops/batching.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/fourier.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/search.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

using Rule = TensorList (*)(const BatchCall& call);

TensorList run(const Op& op, const std::vector<TensorArg>& operands, const Attrs& attrs) {
  return Dispatcher::instance().run(op, operands, attrs);
}

Shape with_batch(const BatchCall& c, const Shape& shape) {
  Shape out{c.size};
  out.append(shape);
  return out;
}

Shape result_shape(const BatchCall& c) { return infer_types(c.op, c.types, c.attrs)[0].shape; }

// The operand with the batch dimension, whether the batch shares it or not.
Tensor whole(const BatchCall& c, size_t i) {
  const Tensor& x = c.operands[i].tensor();
  return c.batched[i] ? x : expand(x, with_batch(c, x.sizes()));
}

// With dimensions of size 1 after that of the batch, so that it has this many without it.
Tensor at_rank(const BatchCall& c, size_t i, int64_t rank) {
  Tensor x = c.operands[i].tensor();
  for (int64_t r = c.types[i].rank(); r < rank; ++r) x = unsqueeze(x, 1);
  return x;
}

// --- kinds

// Operands are aligned at their last dimensions. A single number of the function promotes as one, though here it is many.
TensorList pointwise(const BatchCall& c) {
  int64_t rank = 0;
  for (auto& type : c.types) rank = std::max(rank, type.rank());
  auto operands = c.operands;
  std::vector<Type> types = c.types;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!c.batched[i]) continue;
    operands[i] = TensorArg(at_rank(c, i, rank), c.operands[i].where());
    types[i].shape = operands[i].sizes();
  }
  DType computing = computing_type(OpCall{c.op, c.types, c.attrs});
  if (computing_type(OpCall{c.op, types, c.attrs}) != computing)
    for (size_t i = c.op.pointwise->typing == Typing::kSelect ? 1 : 0; i < operands.size(); ++i)
      if (c.batched[i] && c.types[i].rank() == 0)
        operands[i] = TensorArg(operands[i].tensor().to(computing), c.operands[i].where());
  return run(c.op, operands, c.attrs);
}

TensorList reduce(const BatchCall& c) {
  auto attrs = c.attrs.as<ReduceAttrs>();
  OpCall call{c.op, c.types, c.attrs};
  bool single = c.types[0].rank() == 0;
  IntList dims = single ? IntList{0} : reduced_dims(call, attrs.dims);
  for (auto& d : dims) ++d;
  attrs.dims = dims;
  if (single) attrs.keepdim = false;
  return run(c.op, {TensorArg(at_rank(c, 0, 1), c.operands[0].where())}, attrs);
}

// The definition of the op with one more coordinate. A scatter writes into its first operand, which each element has its own of.
TensorList by_elements(const BatchCall& c) {
  auto operands = c.operands;
  auto batched = c.batched;
  if (c.op.kind == OpKind::kScatter && !batched[0]) {
    operands[0] = TensorArg(whole(c, 0), c.operands[0].where());
    batched[0] = true;
  }
  return run(batched_op(c.op, batched), operands, c.attrs);
}

TensorList one_by_one(const BatchCall& c) {
  std::vector<TensorList> results;
  int64_t size = c.size.to_int();
  for (int64_t b = 0; b < size; ++b) {
    auto operands = c.operands;
    for (size_t i = 0; i < operands.size(); ++i)
      if (c.batched[i]) operands[i] = TensorArg(select(c.operands[i], 0, b), c.operands[i].where());
    results.push_back(run(c.op, operands, c.attrs));
  }
  TensorList out;
  if (results.empty()) {
    for (auto& type : infer_types(c.op, c.types, c.attrs))
      out.push_back(zeros(with_batch(c, type.shape), TensorOptions(type.dtype).device(type.device)));
    return out;
  }
  for (size_t r = 0; r < results[0].size(); ++r) {
    TensorList parts;
    for (auto& each : results) {
      check(each[r].sizes() == results[0][r].sizes(),
            "vmap: {} gives results of shapes {} and {} for different elements of the batch", c.op.name,
            results[0][r].sizes(), each[r].sizes());
      parts.push_back(each[r]);
    }
    out.push_back(stack(parts));
  }
  return out;
}

// --- single ops

TensorList expand_rule(const BatchCall& c) {
  Shape shape = result_shape(c);
  return {expand(at_rank(c, 0, shape.rank()), with_batch(c, shape))};
}
// Inside vmap() tensors have no strides, so that nothing refuses what needs a copy.
TensorList view_rule(const BatchCall& c) { return {reshape(c.operands[0], with_batch(c, result_shape(c)))}; }
TensorList permute_rule(const BatchCall& c) {
  IntList dims{0};
  for (int64_t d : c.attrs.as<PermuteAttrs>().dims) dims.push_back(wrap_dim("permute", d, c.types[0].rank()) + 1);
  return {permute(c.operands[0], dims)};
}
template <class A>
TensorList next_dim(const BatchCall& c) {
  auto attrs = c.attrs.as<A>();
  int64_t rank = c.types[0].rank() + (std::is_same_v<A, UnsqueezeAttrs> ? 1 : 0);
  attrs.dim = wrap_dim(c.op.name.data(), attrs.dim, rank) + 1;
  return run(c.op, c.operands, attrs);
}
TensorList as_it_is(const BatchCall& c) { return run(c.op, c.operands, c.attrs); }

// Of attributes that count all their dimensions from the front.
template <class A>
TensorList next_dims(const BatchCall& c) {
  auto attrs = c.attrs.as<A>();
  for (auto& d : attrs.dims) ++d;
  return run(c.op, c.operands, attrs);
}

// A single number is sorted as a row of one.
template <class A>
TensorList sort_rule(const BatchCall& c) {
  if (c.types[0].rank() > 0) return next_dim<A>(c);
  auto attrs = c.attrs.as<A>();
  attrs.dim = 1;
  TensorList out = run(c.op, {TensorArg(at_rank(c, 0, 1), c.operands[0].where())}, attrs);
  for (auto& result : out) result = squeeze(result, 1);
  return out;
}

TensorList mm_rule(const BatchCall& c) { return {matmul(c.operands[0], c.operands[1])}; }
TensorList bmm_rule(const BatchCall& c) {
  auto aligned = [&](size_t i) { return c.batched[i] ? c.operands[i].tensor() : unsqueeze(c.operands[i], 0); };
  return {matmul(aligned(0), aligned(1))};
}

// [b, n, c, …] → [n, b * c, …], and back for a result of `groups` times as many channels.
Tensor batch_into_channels(const Tensor& x) {
  Tensor moved = movedim(x, 0, 1);
  Shape shape = moved.sizes();
  Shape folded{shape[0], shape[1] * shape[2]};
  folded.append(Shape(shape.begin() + 3, shape.end()));
  return reshape(moved, folded);
}

// Inputs of the batch are more inputs; weights of the batch are more groups.
TensorList convolution_rule(const BatchCall& c) {
  auto attrs = c.attrs.as<ConvolutionAttrs>();
  const TensorArg &x = c.operands[0], &w = c.operands[1];
  if (!c.batched[1]) {
    Tensor y = run(c.op, {TensorArg(flatten(x, 0, 1), x.where()), w}, c.attrs)[0];
    return {unflatten(y, 0, {c.size, c.types[0].shape[0]})};
  }
  // Groups are plain numbers.
  int64_t size = c.size.to_int();
  attrs.groups *= size;
  Tensor y = run(c.op, {TensorArg(batch_into_channels(whole(c, 0)), x.where()), TensorArg(flatten(w, 0, 1), w.where())}, attrs)[0];
  return {movedim(unflatten(y, 1, {size, -1}), 1, 0)};
}

TensorList weight_grad_rule(const BatchCall& c) {
  auto attrs = c.attrs.as<ConvolutionWeightGradAttrs>();
  int64_t size = c.size.to_int();
  attrs.groups *= size;
  Tensor w = run(c.op, {TensorArg(batch_into_channels(whole(c, 0))), TensorArg(batch_into_channels(whole(c, 1)))}, attrs)[0];
  return {unflatten(w, 0, {size, -1})};
}

// Attention takes any dimensions in front.
TensorList attention_rule(const BatchCall& c) {
  check(c.attrs.as<AttentionAttrs>().dropout_p == 0,
        "{}: dropout inside attention has no rule for vmap(); give dropout_p = 0, or drop elements of its result", c.op.name);
  auto operands = c.operands;
  int64_t rank = c.types[0].rank();
  size_t mask = attention_mask_operand(c.op);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == mask && c.batched[i])
      operands[i] = TensorArg(at_rank(c, i, rank), c.operands[i].where());
    else if (i != mask && !operands[i].is_scalar())
      operands[i] = TensorArg(whole(c, i), c.operands[i].where());
  }
  return run(c.op, operands, c.attrs);
}

const std::map<const Op*, Rule>& own_rules() {
  static const auto rules = [] {
    auto& known = known_ops();
    std::map<const Op*, Rule> out{{&known.alias, as_it_is},
                                  {&known.view, view_rule},
                                  {&known.expand, expand_rule},
                                  {&known.permute, permute_rule},
                                  {&known.unsqueeze, next_dim<UnsqueezeAttrs>},
                                  {&known.select, next_dim<SelectAttrs>},
                                  {&known.slice, next_dim<SliceAttrs>},
                                  {&known.mm, mm_rule},
                                  {&known.bmm, bmm_rule},
                                  {&convolution_op(), convolution_rule},
                                  {&convolution_weight_grad_op(), weight_grad_rule},
                                  {find_op("sort"), sort_rule<SortAttrs>},
                                  {find_op("topk"), sort_rule<TopkAttrs>},
                                  {find_op("_fft_c2c"), next_dims<ComplexToComplexAttrs>},
                                  {find_op("_fft_r2c"), next_dims<RealToComplexAttrs>},
                                  {find_op("_fft_c2r"), next_dims<ComplexToRealAttrs>},
                                  {find_op("to_device"), as_it_is},
                                  {find_op("view_as_real"), as_it_is},
                                  {find_op("view_as_complex"), as_it_is}};
    for (auto* op : all_ops())
      if (is_attention(*op) && op != &paged_attention_op()) out[op] = attention_rule;
    return out;
  }();
  return rules;
}

Rule rule_of(const Op& op) {
  if (auto own = own_rules().find(&op); own != own_rules().end()) return own->second;
  if (op.kind == OpKind::kPointwise) return pointwise;
  if (op.kind == OpKind::kReduce) return reduce;
  return has_batched_op(op) ? by_elements : one_by_one;
}

}  // namespace

TensorList run_batched(const BatchCall& call) { return rule_of(call.op)(call); }

bool needs_batch_loop(const Op& op) { return rule_of(op) == one_by_one; }

}  // namespace sinter
