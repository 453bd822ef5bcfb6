#include "sinter/passes/partial_gradients.h"

#include <algorithm>

#include "sinter/graph/rewrite.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

Graph partial_gradients(const Graph& whole, const std::vector<bool>& flowing, const std::vector<bool>& wanted) {
  enum class Flow { kNo, kYes, kMissing };  // of what does not depend on tangents; of what does
  std::vector<Flow> flow(whole.nodes().size(), Flow::kNo);
  size_t first = whole.inputs().size() - flowing.size();
  for (size_t i = 0; i < flowing.size(); ++i)
    flow[size_t(whole.inputs()[first + i].node->id)] = flowing[i] ? Flow::kYes : Flow::kMissing;
  auto is = [&](Flow which) { return [&flow, which](const Value& v) { return flow[size_t(v.node->id)] == which; }; };
  // What is missing becomes zeros, which stay only where an op takes them together with something that flows.
  auto rule = [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    bool flows = std::ranges::any_of(node.inputs, is(Flow::kYes));
    if (std::ranges::none_of(node.inputs, is(Flow::kMissing)) || flows) {
      flow[size_t(node.id)] = flows ? Flow::kYes : Flow::kNo;
      if (node.op != &known_ops().add || node.inputs.size() != 2) return {};
      for (size_t i = 0; i < 2; ++i)
        if (is(Flow::kMissing)(node.inputs[i]) && node.inputs[1 - i].type() == node.types[0])
          return {{context(node.inputs[1 - i])}};
      return {};
    }
    flow[size_t(node.id)] = Flow::kMissing;
    std::vector<Value> zeros;
    for (auto& type : node.types)
      zeros.push_back(
          context.add(known_ops().full, {context.scalar(0)}, CreationAttrs{type.shape, type.dtype, type.device}).result());
    return zeros;
  };
  Graph out = rewrite(whole, rule);
  std::vector<Value> left;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) left.push_back(out.outputs()[i]);
  out.set_outputs(std::move(left));
  return has_dead_nodes(out) ? drop_dead_nodes(out) : std::move(out);
}

}  // namespace sinter
