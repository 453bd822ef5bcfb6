// The graph is run on leaves of its own, and gradients flow back to them.
#include "sinter/graph/differentiate.h"

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/graph/run.h"
#include "sinter/ops/view.h"

namespace sinter {

TensorList differentiate(const Graph& graph, const TensorList& inputs, const std::vector<bool>& needed,
                         const TensorList& grads) {
  bool again = autograd::grad_enabled();  // the gradients are themselves to be differentiated
  EnableGradGuard recorded;
  std::vector<TensorArg> operands;
  TensorList leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!needed[i]) {
      operands.emplace_back(inputs[i]);
      continue;
    }
    // One tensor may be two operands, so each is told from the others by a step of its own.
    bool has_history = again && autograd::needs_gradient(inputs[i]);
    leaves.push_back(has_history ? alias(inputs[i]) : autograd::detached(inputs[i]).requires_grad_(true));
    operands.emplace_back(leaves.back());
  }
  TensorList results = run_graph(graph, operands), outputs, flowing;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!grads[i].defined() || !autograd::needs_gradient(results[i])) continue;
    outputs.push_back(results[i]);
    flowing.push_back(grads[i]);
  }
  TensorList found = autograd::grad(outputs, leaves, flowing, std::nullopt, again, true), out(inputs.size());
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (needed[i]) out[i] = found[next++];
  return out;
}

}  // namespace sinter
