#pragma once
// What autograd keeps with a tensor, and how it is read. A leaf has a gradient; any other tensor that needs one has an
// edge to the node that made it.
#include "sinter/autograd/node.h"

namespace sinter::autograd {

struct State final : AutogradState {
  Edge edge;                // how the tensor came about
  uint32_t generation = 0;  // writes that changed the history; of a view: as many of its base as `edge` reflects
  Tensor grad;              // of a leaf, or of a tensor that retains it
  Tensor alias;             // the tensor without its history: what nodes keep, so that none owns itself
  std::string stale;        // not empty: a kept value that was overwritten; the Error of whoever reads it
  // Hooks by their numbers, empty once removed. A leaf's run when its gradient is complete; others are with the node, too.
  std::vector<std::shared_ptr<Hook>> hooks;
  std::vector<std::function<void(const Tensor&)>> post_hooks;  // of a leaf: after its gradient has grown
  uint32_t hooks_version = 0;  // another for any other hooks of a leaf; 0: there never were any
  bool retains = false;        // no leaf, and keeps its gradient
};

inline State* state_of(const TensorImpl& impl) { return static_cast<State*>(impl.autograd.get()); }
State& ensure_state(TensorImpl& impl);

// Another number whenever the hooks of the leaf have changed: a program that called them was captured with these.
uint32_t hooks_version(const TensorImpl& leaf);

// The same value without history: an eager one shares the memory and its version.
Tensor detached(const Tensor& tensor);
// A detached alias with this history.
Tensor attached(const Tensor& tensor, const Edge& history);

// Where the tensor's gradient goes. The history of a view is made anew when its base's has changed.
Edge gradient_edge(const Tensor& tensor);
std::vector<Edge> gradient_edges(const TensorList& tensors);
bool needs_gradient(const Tensor& tensor);

// The value at this moment without history, for the tape alone: a traced tensor's later writes do not reach it.
Tensor without_history(const Tensor& tensor);
// What a node keeps of a tensor: a value without a way back to the node.
Tensor saved_form(const Tensor& tensor);
uint32_t version_of(const Tensor& tensor);

}  // namespace sinter::autograd
