#include "sinter/engine/cuda/library_epilogue.h"

#include <algorithm>

#include "sinter/engine/eager/eager.h"
#include "sinter/graph/verify.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// Whether a view of a row-major tensor has the same elements in the same order.
bool keeps_order(const Node& view) {
  auto row_major = [](const Type& type) {
    IntList strides;
    int64_t stride = 1;
    for (size_t d = type.shape.size(); d-- > 0;) {
      strides.insert(strides.begin(), stride);
      stride *= std::max<int64_t>(type.shape[d].number(), 1);
    }
    return strides;
  };
  const Type &from = view.inputs[0].type(), &to = view.types[0];
  if (from.shape.numel() != to.shape.numel()) return false;
  auto found = eager::find_view(OpCall{*view.op, types_of(view.inputs), view.attrs}, row_major(from));
  if (!found || found->offset != 0) return false;
  IntList wanted = row_major(to);
  for (size_t d = 0; d < wanted.size(); ++d)
    if (!to.shape[d].same_as(1) && found->strides[d] != wanted[d]) return false;
  return true;
}

Value behind_views(Value v) {
  while (v.node->op->kind == OpKind::kView && keeps_order(*v.node)) v = v.node->inputs[0];
  return v;
}

struct Term {
  Value value;
  const Type* sum;  // of the addition that it belongs to
};

// What a chain of additions adds up.
void collect_terms(Value v, const Type& sum, std::vector<Term>& terms) {
  Value value = behind_views(v);
  if (value.node->op != &known_ops().add) {
    terms.push_back({v, &sum});
    return;
  }
  for (auto& input : value.node->inputs) collect_terms(input, value.type(), terms);
}

}  // namespace

std::optional<LibraryEpilogue> library_epilogue(const ContractionParts::Inner& follow, int64_t n,
                                                std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs) {
  const Graph& body = *follow.attrs().body;
  if (body.outputs().size() != 1) return std::nullopt;
  LibraryEpilogue out;
  auto geometries = geometries_of(follow.operands, inputs, outputs);
  const TensorImpl* result = geometries.outputs[0];
  Value last = behind_views(body.outputs()[0]);
  if (last.node->op == &known_ops().relu) {
    out.relu = true;
    last = behind_views(last.node->inputs[0]);
  }
  std::vector<Term> terms;
  collect_terms(last, last.type(), terms);
  bool multiplied = false;
  for (auto& [term, sum] : terms) {
    Value source = behind_views(term);
    auto at = size_t(std::find(body.inputs().begin(), body.inputs().end(), source) - body.inputs().begin());
    if (at == 0) {
      // All of it, and nothing more: what is broadcast or cut is another tensor.
      if (multiplied || source.type().shape.numel() != last.type().shape.numel()) return std::nullopt;
      if (source.type().dtype != result->dtype) return std::nullopt;
      multiplied = true;
      continue;
    }
    if (source.node->op->kind != OpKind::kInput || source.type().weak) return std::nullopt;
    const int position = follow.operands[at - 1];
    const TensorImpl* operand = geometries.inputs[at - 1];
    if (!operand || !operand->contiguous || operand->dtype != result->dtype) return std::nullopt;
    if (operand->numel == result->numel && out.added < 0 && out.bias != position) {
      out.added = position;
      continue;
    }
    // Broadcasting goes by the last dimension: a row of n elements, ones before it.
    bool row = operand->numel == n && !operand->sizes.empty() && operand->sizes.back() == n &&
               !sum->shape.empty() && sum->shape.back().same_as(n) && source == term;
    if (!row || out.bias >= 0) return std::nullopt;
    out.bias = position;
  }
  if (!multiplied || !result->contiguous || result->sizes.empty() || result->sizes.back() != n) return std::nullopt;
  if (terms.size() == 1 && !out.relu) return std::nullopt;
  return out;
}

}  // namespace sinter
