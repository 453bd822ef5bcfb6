#include "sinter/passes/target_kernels.h"

#include <algorithm>

#include "sinter/graph/nodes.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/dequantize.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

bool takes_attention(const Target::Attention& facts, const OpCall& call) {
  const size_t mask = attention_mask_operand(call.op);
  const bool backward = &call.op == &attention_backward_op();
  if (!facts.dtypes.contains(call.inputs[0].dtype)) return false;
  auto& attrs = call.as<AttentionAttrs>();
  // Seed and offset are numbers, as the generator gives them.
  for (size_t i = call.inputs.size() - attrs.drawn(); i < call.inputs.size(); ++i)
    if (!call.inputs[i].weak) return false;
  if (has_attention_mask(call.op, call.inputs.size(), attrs) && !facts.masks.contains(call.inputs[mask].dtype)) return false;
  for (size_t i = 0; i < call.inputs.size() - attrs.drawn(); ++i) {
    auto& type = call.inputs[i];
    if (type.weak || type.rank() > facts.most_dimensions) return false;
    if (std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.same_as(0); })) return false;
    // Logarithms and means, one a row.
    if (backward && (i == 3 || i == 4)) {
      if (type.dtype != kFloat32) return false;
      continue;
    }
    const int64_t largest = backward ? facts.largest_row_backward : facts.largest_row;
    if (i == mask || largest == 0) continue;
    const Dim& row = type.shape.back();
    if (!row.is_number() || row.number() > largest) return false;
  }
  return true;
}

bool takes_paged_attention(const Target::Attention& facts, const OpCall& call) {
  if (!facts.paged || !facts.dtypes.contains(call.inputs[0].dtype)) return false;
  // Table, starts and lengths as the kernel reads them.
  for (size_t i = 3; i < call.inputs.size(); ++i)
    if (call.inputs[i].dtype != kInt64) return false;
  return std::none_of(call.inputs.begin(), call.inputs.end(), [](const Type& type) {
    return type.weak || std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.same_as(0); });
  });
}

}  // namespace

bool takes_whole(const Target& target, const OpCall& call) {
  if (&call.op == &paged_attention_op()) return takes_paged_attention(target.attention, call);
  return is_attention(call.op) && takes_attention(target.attention, call);
}

bool takes_convolution(const Target::Convolutions& facts, DType dtype, const ConvolutionAttrs& attrs) {
  const size_t spatial = attrs.stride.size();
  return facts.dtypes.contains(dtype) && spatial >= facts.least_spatial && spatial <= facts.most_spatial &&
         (facts.transposed || !attrs.transposed) && (facts.grouped || attrs.groups == 1);
}

namespace {

bool has_many_rows(const Target& target, const Node& product) {
  if (target.most_finished_rows == 0 || product.op == &convolution_op()) return false;
  const Shape& shape = product.types[0].shape;
  Dim batch = 1;
  for (size_t d = 0; d + 2 < shape.size(); ++d) batch *= shape[d];
  const Dim rows = shape.size() > 1 ? shape[shape.size() - 2] : Dim(1);
  return (batch.is_number() && batch.number() != 1) || (rows.is_number() && rows.number() > target.most_finished_rows);
}

}  // namespace

bool finishes(const Target& target, const Node& contraction, const Node& node) {
  if (!takes_contraction(target, contraction)) return false;
  if (!has_many_rows(target, contraction)) return true;
  auto& ops = known_ops();
  const Type& result = contraction.types[0];
  if (node.op == &ops.relu) return node.types[0].dtype == result.dtype;
  if (node.op != &ops.add || node.inputs.size() != 2) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](auto& v) {
    return v.type().dtype == result.dtype && !v.type().weak && v.type().rank() > 0;
  });
}

const Node* encoded_weight(const Target& target, const Node& node) {
  auto& ops = known_ops();
  if (node.op != &ops.mm || !takes_contraction(target, node)) return nullptr;
  if (!target.encoded_products.contains(node.types[0].dtype)) return nullptr;
  const Node& turned = *node.inputs[1].node;
  if (turned.op != &ops.permute || turned.inputs[0].node->op != &dequantize_op()) return nullptr;
  const Node& weight = *turned.inputs[0].node;
  auto &dims = turned.attrs.as<PermuteAttrs>().dims;
  if (dims.size() != 2 || wrap_dim("permute", dims[0], 2) != 1) return nullptr;
  for (auto& d : weight.types[0].shape)
    if (!d.is_number() || d.number() == 0) return nullptr;
  auto& attrs = weight.attrs.as<DequantizeAttrs>();
  // Kernels take so many codes of a group at a time.
  constexpr int64_t kStep = 8;
  if (attrs.group_size % kStep != 0 && attrs.group_size < weight.types[0].shape.back().number()) return nullptr;
  for (size_t i = 0; i < weight.inputs.size(); ++i) {
    const Value& v = weight.inputs[i];
    const DType dtype = v.type().dtype;
    if (behind_views(v.node)->op->kind != OpKind::kInput) return nullptr;
    const bool zero = attrs.has_zero && i == 2, byte = dtype == kUInt8 || dtype == kInt8;
    if (i > 0 && (!is_floating(dtype) || dtype == kFloat64) && !(zero && byte)) return nullptr;
  }
  return &weight;
}

bool takes_contraction(const Target& target, const Node& node) {
  if (!is_contraction(node)) return false;
  const DType dtype = node.types[0].dtype;
  if (node.op != &convolution_op()) return target.products.contains(dtype);
  // No taps: nothing to multiply.
  auto& weight = node.inputs[1].type().shape;
  const bool empty = std::any_of(weight.begin(), weight.end(), [](const Dim& d) { return d.same_as(0); });
  return !empty && takes_convolution(target.convolutions, dtype, node.attrs.as<ConvolutionAttrs>());
}

}  // namespace sinter
