#include "sinter/engine/step/attention_parts.h"

#include <algorithm>

namespace sinter {

AttentionParts read_attention(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs) {
  const Graph& body = *attrs.body;
  AttentionParts out{.body = attrs.body,
                     .node = &template_op_in(attrs),
                     .operands = {},
                     .results = {},
                     .numbers = {},
                     .operand_geometries = {},
                     .result_geometries = {}};
  auto position = [](const std::vector<Value>& values, Value v) {
    return size_t(std::find(values.begin(), values.end(), v) - values.begin());
  };
  for (auto& v : out.node->inputs) {
    const bool fixed = v.node->op->kind == OpKind::kScalar;
    size_t at = fixed ? 0 : position(body.inputs(), v);
    out.operands.push_back(fixed ? -1 : int(at));
    out.numbers.push_back(fixed ? v.node->attrs.as<ScalarAttrs>().value : Scalar(0));
    out.operand_geometries.push_back(v.type().weak ? nullptr : make_intrusive<TensorImpl>(*inputs[at]));
  }
  for (size_t r = 0; r < out.node->types.size(); ++r) {
    size_t at = position(body.outputs(), out.node->result(int(r)));
    const bool wanted = at < outputs.size();
    out.results.push_back(wanted ? int(inputs.size() + at) : -1);
    out.result_geometries.push_back(wanted ? make_intrusive<TensorImpl>(*outputs[at]) : nullptr);
  }
  return out;
}

}  // namespace sinter
