// The flow of gradients: nodes run latest first, each once all gradients of its results have arrived.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "sinter/autograd/autograd.h"
#include "sinter/ops/batching.h"
#include "sinter/autograd/history.h"
#include "sinter/autograd/tape.h"
#include "sinter/ops/autocast.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/tensor/autocast.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter::autograd {

namespace {

thread_local int flows = 0, hooks_later = 0;
thread_local bool finds_nan = false;

// While gradients are made ready and flow.
struct Flowing {
  Flowing() { ++flows; }
  ~Flowing() { --flows; }
  Flowing(const Flowing&) = delete;
};

// Whether nobody else sees the memory of an eager tensor.
bool is_own(const Tensor& t) {
  auto& impl = t.impl();
  return impl.buffer && t.impl_ptr().use_count() == 1 && impl.buffer.use_count() == 1;
}

void add_to(Tensor& sum, const Tensor& grad) {
  if (!sum.defined())
    sum = grad;
  else if (!grad_enabled() && !Tracer::current() && !grad.is_traced() && is_own(sum) && sum.is_contiguous())
    sum.add_(grad);
  else
    sum = add(sum, grad);
}

// Where tensors have memory: everywhere but in a plain graph, whose values nothing can write to.
bool has_memory() {
  auto* tracer = Tracer::current();
  return !tracer || tracer->answers();
}

bool lies_in(const TensorImpl& impl, const IntList& strides) {
  for (size_t d = 0; d < strides.size(); ++d)
    if (impl.sizes[d] != 1 && impl.strides[d] != strides[d]) return impl.numel == 0;
  return true;
}

// The first gradient of a leaf is memory of its own, since users write to it and later ones are added to it; it lies in
// memory as the leaf does. One that is to be differentiated in turn is a copy, and so is a traced one, which costs nothing:
// a copy that nobody needs is no part of the program in the end.
Tensor first_gradient(Tensor grad, const TensorImpl& leaf) {
  IntList strides = preserved_strides(leaf.sizes, leaf.strides);
  if (!grad_enabled() && !Tracer::current() && is_own(grad) && lies_in(grad.impl(), strides)) return grad;
  if (has_format(leaf.sizes, strides, kContiguousFormat)) return grad.clone(kContiguousFormat);
  Tensor own = empty_strided(grad.sizes(), strides, grad.options());
  own.copy_(grad);
  return own;
}

// What a leaf holds grows where it lies, so that whoever holds it too sees the sum; one that is to be differentiated in
// turn is made anew.
void accumulate(Tensor& sum, Tensor grad, const TensorImpl& leaf) {
  if (!has_memory())
    add_to(sum, grad);
  else if (!sum.defined())
    sum = first_gradient(std::move(grad), leaf);
  else if (grad_enabled())
    sum = add(sum, grad);
  else
    sum.add_(grad);
}

Tensor run_hook(const Hook& hook, const Tensor& grad) {
  Tensor changed = hook ? hook(grad) : Tensor();
  if (!changed.defined()) return grad;
  check(changed.sizes() == grad.sizes() && changed.dtype() == grad.dtype(),
        "register_hook: the hook made {}{} of a gradient that is {}{}", changed.dtype(), changed.sizes(), grad.dtype(),
        grad.sizes());
  return changed;
}

// A gradient of a tensor that is no leaf. It is seen by hooks before, and by the user alone: nobody adds to it in place.
void retain(State& state, const Tensor& grad) { state.grad = state.grad.defined() ? add(state.grad, grad) : grad; }

// An Error when a gradient is NaN; what came to the node is not, or the node after it would have been found.
void check_finite(const Node& node, const TensorList& grads) {
  NoGradGuard unrecorded;
  for (size_t i = 0; i < grads.size(); ++i)
    check(!grads[i].defined() || !isnan(grads[i]).any().item<bool>(),
          "detect_anomaly: the gradient of {} is NaN for operand {}", node.text(), i);
}

// The gradient of a leaf grows by this one.
void add_to_leaf(const IntrusivePtr<TensorImpl>& impl, Tensor grad) {
  Tensor leaf(impl);
  State& state = ensure_state(*impl);
  if (auto* tracer = Tracer::current()) {
    Tensor present = tracer->grad_of(leaf, state.grad);
    tracer->before_grad_changes(leaf);  // remembers the real gradient, so the traced one comes after
    state.grad = std::move(present);
  }
  accumulate(state.grad, std::move(grad), *impl);
  if (hooks_later == 0)
    for (auto hooks = state.post_hooks; auto& hook : hooks) hook(leaf);
}

struct NodeSlot {
  IntrusivePtr<Node> node;
  TensorList grads;
};

struct LeafSlot {
  IntrusivePtr<TensorImpl> leaf;
  Tensor grad;
};

class Flow {
 public:
  explicit Flow(bool retain) : retain_(retain) {}

  // From now on only what these edges need is computed, and their gradients are kept instead of added to leaves.
  void restrict_to(const std::vector<Edge>& targets, const std::vector<Edge>& roots);
  void send(const Edge& edge, Tensor grad);
  void run();
  Tensor kept(const Edge& target) const;

 private:
  void run_node(NodeSlot slot);
  void finish_leaf(LeafSlot& slot);
  bool is_useful(const Edge& edge) const;

  const bool retain_;
  bool restricted_ = false;
  std::unordered_set<const Node*> useful_;
  std::unordered_map<const Node*, TensorList> kept_;  // targets that are results of nodes
  std::unordered_map<const Node*, NodeSlot> nodes_;
  std::unordered_map<const TensorImpl*, LeafSlot> leaves_;  // those that gather: targets, and leaves with hooks
  std::vector<const TensorImpl*> gathered_;  // leaves that have gathered something, in that order
  std::priority_queue<std::pair<uint64_t, const Node*>> queue_;
};

void Flow::restrict_to(const std::vector<Edge>& targets, const std::vector<Edge>& roots) {
  restricted_ = true;
  for (auto& target : targets) {
    if (target.node) kept_[target.node.get()].resize(target.node->results());
    if (target.leaf) leaves_[target.leaf.get()].leaf = target.leaf;
  }
  std::vector<const Node*> reached, pending;
  std::unordered_set<const Node*> seen;
  auto visit = [&](const Edge& edge) {
    if (edge.node && seen.insert(edge.node.get()).second) pending.push_back(edge.node.get());
  };
  for (auto& root : roots) visit(root);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    reached.push_back(node);
    for (auto& edge : node->edges()) visit(edge);
  }
  // Operands before results, so that one sweep tells.
  std::sort(reached.begin(), reached.end(), [](auto* a, auto* b) { return a->sequence() < b->sequence(); });
  for (auto* node : reached) {
    auto leads = [&](const Edge& edge) { return is_useful(edge); };
    if (kept_.contains(node) || std::any_of(node->edges().begin(), node->edges().end(), leads)) useful_.insert(node);
  }
}

bool Flow::is_useful(const Edge& edge) const {
  if (!restricted_) return bool(edge);
  return edge.node ? useful_.contains(edge.node.get()) : edge.leaf && leaves_.contains(edge.leaf.get());
}

void Flow::send(const Edge& edge, Tensor grad) {
  if (edge.node) {
    auto [it, fresh] = nodes_.try_emplace(edge.node.get());
    NodeSlot& slot = it->second;
    if (fresh) {
      slot.node = edge.node;
      slot.grads.resize(edge.node->results());
      queue_.emplace(edge.node->sequence(), edge.node.get());
    }
    Tensor& sum = slot.grads[edge.index];
    if (sum.defined())
      add_to(sum, grad);
    else
      sum = std::move(grad);
    return;
  }
  if (!restricted_ && hooks_version(*edge.leaf) == 0) return add_to_leaf(edge.leaf, std::move(grad));
  LeafSlot& slot = leaves_[edge.leaf.get()];
  if (!slot.leaf) slot.leaf = edge.leaf;
  if (!slot.grad.defined()) gathered_.push_back(edge.leaf.get());
  if (slot.grad.defined())
    add_to(slot.grad, grad);
  else
    slot.grad = std::move(grad);
}

void Flow::finish_leaf(LeafSlot& slot) {
  Tensor grad = std::move(slot.grad);
  if (auto* state = state_of(*slot.leaf); state && hooks_later == 0)
    for (auto hooks = state->hooks; auto& hook : hooks) grad = run_hook(*hook, grad);
  if (restricted_)
    slot.grad = grad;
  else
    add_to_leaf(slot.leaf, std::move(grad));
}

void Flow::run_node(NodeSlot slot) {
  Node& node = *slot.node;
  for (auto hooks = node.hooks; auto& [index, hook] : hooks)
    if (slot.grads[index].defined()) slot.grads[index] = run_hook(*hook, slot.grads[index]);
  for (auto& [index, kept] : node.retained)
    if (auto state = kept.lock(); state && slot.grads[index].defined())
      retain(static_cast<State&>(*state), slot.grads[index]);
  auto target = kept_.find(&node);
  if (target != kept_.end()) target->second = slot.grads;
  check(!node.is_freed(slot.grads) || target != kept_.end(),
        "backward: the graph through {} has been freed by an earlier backward(); pass retain_graph = true to that one "
        "to go through it again",
        node.text());
  const auto& edges = node.edges();
  std::vector<bool> needed(edges.size());
  bool any = false;
  for (size_t i = 0; i < edges.size(); ++i) any |= needed[i] = is_useful(edges[i]);
  if (!any) return;
  TensorList grads = node.backward(std::move(slot.grads), needed);
  if (finds_nan && hooks_later == 0) [[unlikely]]
    check_finite(node, grads);
  for (size_t i = 0; i < edges.size(); ++i)
    if (needed[i] && grads[i].defined()) send(edges[i], std::move(grads[i]));
  if (!retain_) node.release();
}

void Flow::run() {
  autocast::Pause pause;
  while (!queue_.empty()) {
    auto it = nodes_.find(queue_.top().second);
    queue_.pop();
    NodeSlot slot = std::move(it->second);
    nodes_.erase(it);
    run_node(std::move(slot));
  }
  for (auto* leaf : gathered_) finish_leaf(leaves_.at(leaf));
  if (!retain_) forget_low_weights();
}

Tensor Flow::kept(const Edge& target) const {
  if (target.leaf) return leaves_.at(target.leaf.get()).grad;
  return kept_.at(target.node.get())[target.index];
}

// The gradients that start the flow, checked against the outputs.
TensorList start_gradients(const char* op, const TensorList& outputs, const std::vector<Edge>& roots,
                           const TensorList& given) {
  check(given.empty() || given.size() == outputs.size(), "{}: {} gradients for {} outputs", op, given.size(),
        outputs.size());
  TensorList grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    check(bool(roots[i]),
          "{}: output {} does not depend on a tensor that requires a gradient (or was computed under a NoGradGuard)",
          op, i);
    if (given.empty() || !given[i].defined()) {
      check(output.numel().same_as(1),
            "{}: output {} has shape {}; only for a single element is the gradient 1, else pass one", op, i,
            output.sizes());
      check(!is_complex(output.dtype()),
            "{}: output {} is complex ({}), and only of a real number the gradient is 1: take abs(x) or real(x) of it, or pass a "
            "gradient", op, i, output.dtype());
      grads.push_back(ones(output.sizes(), output.options()));
      continue;
    }
    check(given[i].sizes() == output.sizes(), "{}: the gradient of output {} has shape {}, the output {}", op, i,
          given[i].sizes(), output.sizes());
    grads.push_back(given[i].dtype() == output.dtype() ? given[i] : given[i].to(output.dtype()));
  }
  return grads;
}

TensorList joined(TensorList a, const TensorList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::pair<TensorList, TensorList> split(const TensorList& all, size_t first) {
  return {TensorList(all.begin(), all.begin() + int64_t(first)), TensorList(all.begin() + int64_t(first), all.end())};
}

}  // namespace

bool is_flowing() { return flows > 0; }

LeafHooksLater::LeafHooksLater() { ++hooks_later; }
LeafHooksLater::~LeafHooksLater() { --hooks_later; }

bool AnomalyMode::is_enabled() { return finds_nan; }
void AnomalyMode::set_enabled(bool enabled) { finds_nan = enabled; }
DetectAnomalyGuard::DetectAnomalyGuard(bool enabled) : before_(finds_nan) { finds_nan = enabled; }
DetectAnomalyGuard::~DetectAnomalyGuard() { finds_nan = before_; }

namespace {

// To these inputs alone, leaves or not.
void backward_to(const TensorList& inputs, const TensorList& grads) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!grads[i].defined()) continue;
    if (Edge edge = gradient_edge(inputs[i]); edge.leaf)
      add_to_leaf(edge.leaf, grads[i]);
    else if (State& state = ensure_state(inputs[i].impl()); !state.retains)  // else it has the gradient already
      retain(state, grads[i]);
  }
}

}  // namespace

void backward(const TensorList& outputs, const TensorList& grad_outputs, std::optional<bool> retain_graph,
              bool create_graph, const TensorList& inputs, Where where) {
  UserPosition here(where);
  if (!inputs.empty()) {
    TensorList grads = grad(outputs, inputs, grad_outputs, retain_graph, create_graph, true, false, where);
    AutoGradMode mode(create_graph);
    return backward_to(inputs, grads);
  }
  auto outside = [&](const TensorList& real) {
    auto [ys, gys] = split(real, outputs.size());
    backward(ys, gys, retain_graph, create_graph, {}, where);
    return TensorList();
  };
  auto* program = ProgramTracer::current();
  if (program && program->flow_outside(joined(outputs, grad_outputs), {}, outside)) return;
  AutoGradMode mode(create_graph);
  Flowing flowing;
  auto roots = gradient_edges(outputs);
  TensorList grads = start_gradients("backward", outputs, roots, grad_outputs);
  Flow flow(retain_graph.value_or(false) || create_graph);
  for (size_t i = 0; i < roots.size(); ++i) flow.send(roots[i], std::move(grads[i]));
  flow.run();
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grad_outputs,
                std::optional<bool> retain_graph, bool create_graph, bool allow_unused, bool is_grads_batched,
                Where where) {
  UserPosition here(where);
  auto outside = [&](const TensorList& real) {
    auto [ys, rest] = split(real, outputs.size());
    auto [xs, gys] = split(rest, inputs.size());
    return grad(ys, xs, gys, retain_graph, create_graph, allow_unused, is_grads_batched, where);
  };
  if (auto* program = ProgramTracer::current())
    if (auto found = program->flow_outside(joined(joined(outputs, inputs), grad_outputs), inputs, outside)) return *found;
  AutoGradMode mode(create_graph);
  Flowing flowing;
  for (size_t i = 0; i < inputs.size(); ++i)
    check(needs_gradient(inputs[i]), "grad: input {} does not require a gradient", i);
  auto roots = gradient_edges(outputs), targets = gradient_edges(inputs);
  auto run = [&](const TensorList& given) {
    TensorList grads = start_gradients("grad", outputs, roots, given);
    Flow flow(retain_graph.value_or(false) || create_graph);
    flow.restrict_to(targets, roots);
    for (size_t i = 0; i < roots.size(); ++i) flow.send(roots[i], std::move(grads[i]));
    flow.run();
    TensorList out;
    for (auto& target : targets) out.push_back(flow.kept(target));
    return out;
  };
  TensorList out = is_grads_batched ? over_batch(grad_outputs, run) : run(grad_outputs);
  for (size_t i = 0; i < out.size(); ++i)
    check(out[i].defined() || allow_unused,
          "grad: no output depends on input {}; pass allow_unused = true to get an undefined gradient for it", i);
  return out;
}

void zero_grad(const TensorList& leaves, bool set_to_none) {
  NoGradGuard no_grad;
  for (auto& leaf : leaves) {
    // Without asking whether there is one: a program that is captured serves both.
    if (set_to_none && !leaf.is_traced() && leaf.is_leaf() && leaf.requires_grad()) {
      leaf.set_grad({});
      continue;
    }
    Tensor grad = leaf.grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      leaf.set_grad({});
      continue;
    }
    if (needs_gradient(grad) && !grad.is_traced()) set_history(grad, nullptr, 0, true);
    grad.zero_();
  }
}

}  // namespace sinter::autograd
