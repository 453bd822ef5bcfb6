// The flow of gradients: nodes run latest first, each once all gradients of its results have arrived.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/autograd/tape.h"
#include "sinter/base/host_effects.h"
#include "sinter/ops/autocast.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/tensor/autocast.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter::autograd {

namespace {

thread_local int flows = 0;

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
  auto* state = state_of(*edge.leaf);
  if (!restricted_ && !(state && !state->hooks.empty())) {
    LeafSlot now{edge.leaf, std::move(grad)};
    return finish_leaf(now);
  }
  LeafSlot& slot = leaves_[edge.leaf.get()];
  slot.leaf = edge.leaf;
  if (slot.grad.defined())
    add_to(slot.grad, grad);
  else
    slot.grad = std::move(grad);
}

void Flow::finish_leaf(LeafSlot& slot) {
  State& state = ensure_state(*slot.leaf);
  Tensor grad = std::move(slot.grad);
  for (auto& hook : state.hooks) {
    Tensor changed = hook(grad);
    if (changed.defined()) grad = changed;
  }
  if (restricted_) {
    slot.grad = grad;
    return;
  }
  if (auto* tracer = Tracer::current()) {
    Tensor leaf(slot.leaf);
    Tensor present = tracer->grad_of(leaf, state.grad);
    tracer->before_grad_changes(leaf);  // remembers the real gradient, so the traced one comes after
    state.grad = std::move(present);
  }
  accumulate(state.grad, std::move(grad), *slot.leaf);
}

void Flow::run_node(NodeSlot slot) {
  Node& node = *slot.node;
  for (auto& [index, hook] : node.hooks) {
    Tensor& grad = slot.grads[index];
    if (!grad.defined()) continue;
    Tensor changed = hook(grad);
    if (changed.defined()) grad = changed;
  }
  auto target = kept_.find(&node);
  if (target != kept_.end()) target->second = slot.grads;
  check(!node.is_freed(slot.grads) || target != kept_.end(),
        "backward: the graph through {} has been freed by an earlier backward(); pass retain_graph = true to that one "
        "to go through it again",
        node.name());
  const auto& edges = node.edges();
  std::vector<bool> needed(edges.size());
  bool any = false;
  for (size_t i = 0; i < edges.size(); ++i) any |= needed[i] = is_useful(edges[i]);
  if (!any) return;
  TensorList grads = node.backward(std::move(slot.grads), needed);
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
  for (auto& [impl, slot] : leaves_)
    if (slot.grad.defined()) finish_leaf(slot);
  if (!retain_) forget_low_weights();
}

Tensor Flow::kept(const Edge& target) const {
  if (target.leaf) return leaves_.at(target.leaf.get()).grad;
  return kept_.at(target.node.get())[target.index];
}

// The gradients that start the flow, checked against the outputs.
TensorList start_gradients(const char* op, const TensorList& outputs, const TensorList& given) {
  check(given.empty() || given.size() == outputs.size(), "{}: {} gradients for {} outputs", op, given.size(),
        outputs.size());
  TensorList grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    check(needs_gradient(output),
          "{}: output {} does not depend on a tensor that requires a gradient (or was computed under a NoGradGuard)",
          op, i);
    if (given.empty() || !given[i].defined()) {
      check(output.numel().same_as(1),
            "{}: output {} has shape {}; only for a single element is the gradient 1, else pass one", op, i,
            output.sizes());
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

void backward(const TensorList& outputs, const TensorList& grad_outputs, std::optional<bool> retain_graph,
              bool create_graph, Where where) {
  UserPosition here(where);
  auto outside = [&](const TensorList& real) {
    auto [ys, gys] = split(real, outputs.size());
    backward(ys, gys, retain_graph, create_graph, where);
    return TensorList();
  };
  auto* program = ProgramTracer::current();
  if (program && program->flow_outside(joined(outputs, grad_outputs), {}, outside)) return;
  AutoGradMode mode(create_graph);
  Flowing flowing;
  TensorList grads = start_gradients("backward", outputs, grad_outputs);
  auto roots = gradient_edges(outputs);
  Flow flow(retain_graph.value_or(create_graph));
  for (size_t i = 0; i < roots.size(); ++i) flow.send(roots[i], std::move(grads[i]));
  flow.run();
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grad_outputs,
                std::optional<bool> retain_graph, bool create_graph, bool allow_unused, Where where) {
  UserPosition here(where);
  auto outside = [&](const TensorList& real) {
    auto [ys, rest] = split(real, outputs.size());
    auto [xs, gys] = split(rest, inputs.size());
    return grad(ys, xs, gys, retain_graph, create_graph, allow_unused, where);
  };
  if (auto* program = ProgramTracer::current())
    if (auto found = program->flow_outside(joined(joined(outputs, inputs), grad_outputs), inputs, outside)) return *found;
  AutoGradMode mode(create_graph);
  Flowing flowing;
  for (size_t i = 0; i < inputs.size(); ++i)
    check(needs_gradient(inputs[i]), "grad: input {} does not require a gradient", i);
  TensorList grads = start_gradients("grad", outputs, grad_outputs);
  auto roots = gradient_edges(outputs), targets = gradient_edges(inputs);
  Flow flow(retain_graph.value_or(create_graph));
  flow.restrict_to(targets, roots);
  for (size_t i = 0; i < roots.size(); ++i) flow.send(roots[i], std::move(grads[i]));
  flow.run();
  TensorList out;
  for (size_t i = 0; i < targets.size(); ++i) {
    out.push_back(flow.kept(targets[i]));
    check(out.back().defined() || allow_unused,
          "grad: no output depends on input {}; pass allow_unused = true to get an undefined gradient for it", i);
  }
  return out;
}

void zero_grad(const TensorList& leaves, bool set_to_none) {
  NoGradGuard no_grad;
  for (auto& leaf : leaves) {
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

void register_hook(const Tensor& tensor, Hook hook) {
  Edge edge = gradient_edge(tensor);
  check(bool(edge), "register_hook: the tensor does not require a gradient");
  if (edge.leaf && !edge.leaf->traced) note_host_change("register_hook()");
  if (edge.leaf)
    ensure_state(*edge.leaf).hooks.push_back(std::move(hook));
  else
    edge.node->hooks.emplace_back(edge.index, std::move(hook));
}

}  // namespace sinter::autograd
