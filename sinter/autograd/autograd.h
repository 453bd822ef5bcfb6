#pragma once
// Reverse-mode gradients for users: backward(), grad(), and the switches of recording. Names follow LibTorch.
#include <functional>
#include <optional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

namespace autograd {

// Whether ops are recorded on this thread.
bool grad_enabled();
void set_grad_enabled(bool enabled);

// Adds the gradients of the outputs to grad() of every leaf they depend on: in place, unless create_graph, so that a
// tensor that grad() gave before sees the sum. `grad_outputs` may be left out (or
// undefined) for outputs of one element: ones. The graph is freed unless retained; create_graph records the gradients
// themselves, so that they can be differentiated in turn.
void backward(const TensorList& outputs, const TensorList& grad_outputs = {}, std::optional<bool> retain_graph = {},
              bool create_graph = false, Where where = Where::current());

// The gradients of the outputs with respect to the inputs, and nothing else: no leaf's grad() changes. An input on
// which no output depends is an Error, or an undefined gradient where allow_unused.
TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grad_outputs = {},
                std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false,
                Where where = Where::current());

// Forgets the gradients of these leaves, or fills them with zeros where they lie: whoever holds one keeps seeing it.
void zero_grad(const TensorList& leaves, bool set_to_none = true);

// Calls `hook` with the gradient of the tensor whenever one is complete; a defined result takes its place.
void register_hook(const Tensor& tensor, std::function<Tensor(const Tensor& grad)> hook);

// While alive, nothing of what runs is kept for gradients; when some flow through it, `again` runs it a second time. See
// checkpoint().
class CheckpointScope {
 public:
  // `arguments` must not change in between.
  explicit CheckpointScope(std::function<void()> again, const TensorList& arguments);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;

 private:
  const bool traced_;
};

// An argument as the second run gets it: a tensor without its history, and a leaf where it had one.
Tensor argument_again(const Tensor& argument, TensorList& arguments);
TensorList argument_again(const TensorList& argument, TensorList& arguments);
template <class T>
T argument_again(const T& argument, TensorList&) {
  return argument;
}

}  // namespace autograd

// f(args…), whose gradients keep nothing but the arguments: memory for time. When gradients flow through the results, f runs
// a second time, with the same arguments, random numbers and autocast, and must do the same again; torch.utils.checkpoint
// with use_reentrant=False. What f reaches by itself (parameters) has its gradient as without, calls may be nested, and in
// compiled programs the same values are computed again inside the program.
//
//   for (auto& block : blocks) x = checkpoint([&](const Tensor& x) { return block->forward(x); }, x);
//
// f is copied, and what it refers to must be alive when gradients flow.
template <class F, class... Args>
auto checkpoint(const F& f, const Args&... args) {
  TensorList tensors;
  auto kept = std::make_tuple(autograd::argument_again(args, tensors)...);
  autograd::CheckpointScope scope([f, kept = std::move(kept)] { std::apply(f, kept); }, tensors);
  return f(args...);
}

// Switches recording on this thread while alive.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : previous_(autograd::grad_enabled()) { autograd::set_grad_enabled(enabled); }
  ~AutoGradMode() { autograd::set_grad_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool previous_;
};

class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

// Mixed precision on this thread while alive: on such devices matrix products, convolutions and attention run in the lower
// type, bf16 or f16, whatever their operands are; what needs more digits runs in f32 (sums, exponentials, norms and losses;
// on CPUs losses alone). The lists are PyTorch's. Parameters stay f32, and so do their gradients; each is converted once while
// the guard is alive. backward() may be called inside or outside.
//
//   { AutocastGuard autocast(kCUDA, kBFloat16); loss = cross_entropy(net(x), y); }
//   loss.backward();
class AutocastGuard {
 public:
  explicit AutocastGuard(DeviceType device, DType dtype = kBFloat16, bool enabled = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;

 private:
  DeviceType device_;
  std::optional<DType> before_;
};

class EnableGradGuard : public AutoGradMode {
 public:
  EnableGradGuard() : AutoGradMode(true) {}
};

}  // namespace sinter
