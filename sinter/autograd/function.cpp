// Function: what the user's own forward and backward are on the tape.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/autograd/tape.h"
#include "sinter/ops/batching.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/tracer.h"

namespace sinter::autograd {

namespace {

thread_local bool inference = false;

std::string name_of(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : type.name();
  std::free(text);
  return name;
}

bool is_among(const Tensor& tensor, const TensorList& list) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& other) { return other.defined() && other.is_same(tensor); });
}

}  // namespace

struct AutogradContext::State {
  struct Kept {
    Saved saved;
    Edge history;
  };
  TensorList given;  // by save_for_backward, until forward has run
  std::vector<Kept> kept;
  TensorList dirty, non_differentiable;
  bool materializes = true;
  std::vector<bool> needed;
  const Node* node = nullptr;
};

// The node owns the context, and what forward has saved in it.
class FunctionNode final : public Node {
 public:
  FunctionNode(std::vector<Edge> edges, std::string name, detail::FunctionBackward backward, const TensorList& arguments)
      : Node(std::move(edges)), name_(std::move(name)), backward_(backward), arguments_(arguments.size()) {
    state().node = this;
    for (size_t i = 0; i < arguments.size(); ++i) {
      state().needed.push_back(bool(this->edges()[i]));
      if (this->edges()[i]) arguments_[i] = Type{arguments[i].dtype(), arguments[i].sizes(), arguments[i].device()};
    }
  }

  AutogradContext& context() { return context_; }
  const auto& marks() { return state(); }
  size_t results() const override { return outputs_.size(); }
  std::string name() const override { return name_; }

  // Keeps what forward has saved; the outputs are recorded already.
  void save(const TensorList& outputs) {
    for (auto& tensor : state().given) {
      AutogradContext::State::Kept kept;
      if (tensor.defined()) {
        auto self = std::find_if(outputs.begin(), outputs.end(), [&](const Tensor& out) { return out.is_same(tensor); });
        // The node owns no tensor that owns the node: its own results are attached when they are handed out.
        if (self != outputs.end())
          own_results_.emplace_back(state().kept.size(), uint32_t(self - outputs.begin()));
        else
          kept.history = gradient_edge(tensor);
        kept.saved = {saved_form(tensor), version_of(tensor)};
      }
      state().kept.push_back(std::move(kept));
    }
    state().given.clear();
    state().dirty.clear();
    state().non_differentiable.clear();
    for (auto& out : outputs) outputs_.push_back(Type{out.dtype(), out.sizes(), out.device()});
  }

  TensorList backward(TensorList grads, const std::vector<bool>& needed) override {
    for (size_t i = 0; i < grads.size() && state().materializes; ++i)
      if (!grads[i].defined())
        grads[i] = zeros(outputs_[i].shape, TensorOptions(outputs_[i].dtype).device(outputs_[i].device));
    for (auto& [kept, result] : own_results_)
      state().kept[kept].history = {IntrusivePtr<Node>::share(this), nullptr, result};
    struct Attached {
      FunctionNode& node;
      ~Attached() {
        for (auto& [kept, result] : node.own_results_)
          if (kept < node.state().kept.size()) node.state().kept[kept].history = {};
      }
    } attached{*this};
    state().needed = needed;
    TensorList out = backward_(&context_, std::move(grads));
    size_t count = arguments_.size();
    bool fits = out.size() >= count;
    for (size_t i = count; fits && i < out.size(); ++i) fits = !out[i].defined();
    check(fits, "{}: backward gave {} gradients, but forward took {} arguments: one for each, undefined for numbers", text(),
          out.size(), count);
    out.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (!needed[i]) out[i] = {};
      if (!out[i].defined()) continue;
      const Type& argument = arguments_[i];
      if (!out[i].sizes().same_as(argument.shape)) out[i] = fitted(out[i], i);
      if (out[i].dtype() != argument.dtype) out[i] = out[i].to(argument.dtype);
    }
    return out;
  }

  void release() override {
    Node::release();
    own_results_.clear();
    state().kept.clear();
    context_.saved_data.clear();
  }

 private:
  AutogradContext::State& state() { return *context_.state_; }
  Tensor fitted(const Tensor& grad, size_t i) const {
    try {
      return sum_to_size(grad, arguments_[i].shape);
    } catch (const Error&) {
      throw_error(format("{}: backward gave a gradient of shape {} for argument {} of shape {}", text(), grad.sizes(), i,
                         arguments_[i].shape));
    }
  }

  const std::string name_;
  const detail::FunctionBackward backward_;
  std::vector<Type> arguments_, outputs_;
  std::vector<std::pair<size_t, uint32_t>> own_results_;  // of what is kept: which result it is
  AutogradContext context_;
};

// --- AutogradContext -------------------------------------------------------------------------------------------------

AutogradContext::AutogradContext() : state_(new State) {}
AutogradContext::~AutogradContext() = default;

void AutogradContext::save_for_backward(TensorList tensors) { state_->given = std::move(tensors); }

TensorList AutogradContext::get_saved_variables() const {
  TensorList out;
  for (auto& [saved, history] : state_->kept) {
    if (!saved.value.defined()) {
      out.emplace_back();
      continue;
    }
    check(version_of(saved.value) == saved.version,
          "{}: a saved tensor of shape {} has been changed by an in-place write since: clone() it before the write",
          state_->node->text(), saved.value.sizes());
    bool whole = saved.value.impl().requires_grad || saved.value.impl().autograd;
    out.push_back(history && !whole && grad_enabled() ? attached(saved.value, history) : saved.value);
  }
  return out;
}

void AutogradContext::mark_dirty(const TensorList& inputs) { state_->dirty = inputs; }
void AutogradContext::mark_non_differentiable(const TensorList& outputs) { state_->non_differentiable = outputs; }
void AutogradContext::set_materialize_grads(bool value) { state_->materializes = value; }

bool AutogradContext::needs_input_grad(size_t argument) const {
  check(argument < state_->needed.size(), "needs_input_grad: there is no argument {}, but {} in all", argument,
        state_->needed.size());
  return state_->needed[argument];
}

void SavedValue::fail(const char* wanted) { throw_error(format("saved_data: the value is not {}", wanted)); }

// --- FunctionCall ----------------------------------------------------------------------------------------------------

struct detail::FunctionCall::State {
  std::string name;
  FunctionBackward backward;
  TensorList arguments;
  IntrusivePtr<FunctionNode> node;
  bool records = false;
};

detail::FunctionCall::FunctionCall(const std::type_info& type, FunctionBackward backward)
    : state_(new State{name_of(type), backward, {}, nullptr, false}) {}
detail::FunctionCall::~FunctionCall() = default;

void detail::FunctionCall::add(const Tensor& argument) { state_->arguments.push_back(argument); }

// The histories of the arguments are those from before forward, which may write to them.
AutogradContext* detail::FunctionCall::start() {
  std::vector<Edge> edges(state_->arguments.size());
  auto* tracer = Tracer::current();
  for (size_t i = 0; i < edges.size() && grad_enabled(); ++i) {
    const Tensor& argument = state_->arguments[i];
    if (!argument.defined() || !is_differentiable(argument.dtype())) continue;
    // forward runs unrecorded, outside too.
    if (auto* batch = BatchTracer::current(); batch && batch->keeps_history(argument)) {
      TracerScope scope(batch->outer());
      check(!needs_gradient(batch->outside(argument)),
            "{}: a Function inside vmap() has gradients inside it alone: take them there, with func::grad()", state_->name);
    }
    edges[i] = gradient_edge(tracer && !argument.is_traced() ? tracer->operand(argument) : argument);
    state_->records = state_->records || edges[i];
  }
  state_->node = make_intrusive<FunctionNode>(std::move(edges), state_->name, state_->backward, state_->arguments);
  return &state_->node->context();
}

TensorList detail::FunctionCall::finish(TensorList outputs) {
  auto& node = state_->node;
  auto& marks = node->marks();
  for (auto& dirty : marks.dirty)
    check(is_among(dirty, outputs), "{}: an argument that forward has marked dirty is not among its results", state_->name);
  if (!state_->records) return outputs;
  TensorList given = outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    check(outputs[i].defined(), "{}: result {} of forward is undefined", state_->name, i);
    bool flows = is_differentiable(outputs[i].dtype()) && !is_among(outputs[i], marks.non_differentiable);
    bool written = is_among(outputs[i], marks.dirty);
    check(!written || !outputs[i].impl().requires_grad,
          "{}: forward writes to a leaf that requires a gradient: write to its clone()", state_->name);
    // An argument that is a result as it came keeps its own history.
    if (!written && is_among(outputs[i], state_->arguments)) outputs[i] = detached(outputs[i]);
    if (flows) set_history(outputs[i], node, uint32_t(i), written);
  }
  node->save(given);
  return outputs;
}

}  // namespace sinter::autograd

namespace sinter {

InferenceMode::InferenceMode(bool enabled) : AutoGradMode(!enabled), before_(autograd::inference) { autograd::inference = enabled; }
InferenceMode::~InferenceMode() { autograd::inference = before_; }
bool InferenceMode::is_enabled() { return autograd::inference; }

}  // namespace sinter
