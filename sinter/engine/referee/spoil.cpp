#include "sinter/engine/referee/spoil.h"

#include <algorithm>
#include <limits>

#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/ops/fused.h"

namespace sinter::referee {

namespace {

// A scatter changes a copy that an earlier step has made.
bool scatters(const Graph& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(), [](const Node& node) {
    return node.op->kind == OpKind::kScatter || (node.op == &fused_op() && scatters(*node.attrs.as<FusedAttrs>().body));
  });
}

}  // namespace

void spoil_results(const ObservedStep& step) {
  if (!step.plan || step.step->in_place) return;
  if (&step.op == &fused_op() && scatters(*step.attrs.as<FusedAttrs>().body)) return;
  for (auto& result : step.results) {
    auto shares = [&](const TensorArg& arg) {
      return !arg.is_scalar() && eager::share_memory(arg.tensor().impl(), result.impl());
    };
    if (!result.impl().buffer || std::any_of(step.inputs.begin(), step.inputs.end(), shares)) continue;
    if (is_floating(result.dtype()))
      Tensor(result).fill_(std::numeric_limits<double>::quiet_NaN());
    else
      Tensor(result).fill_(77);
  }
}

}  // namespace sinter::referee
