#pragma once
// Reverse-mode gradients for users: backward(), grad(), functions with gradients of their own, and the switches of recording.
// Names follow LibTorch. vjp, jacobians and vmap are in functional.h.
#include <functional>
#include <optional>
#include <tuple>
#include <typeinfo>
#include <unordered_map>
#include <variant>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

namespace autograd {

// Whether ops are recorded on this thread.
bool grad_enabled();
void set_grad_enabled(bool enabled);

}  // namespace autograd

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

// Recording on this thread: whether it is on, and the switch.
struct GradMode {
  static bool is_enabled() { return autograd::grad_enabled(); }
  static void set_enabled(bool enabled) { autograd::set_grad_enabled(enabled); }
};

// Nothing is recorded while alive, as with NoGradGuard; tensors made meanwhile may be used like any others afterwards.
class InferenceMode : public AutoGradMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  static bool is_enabled();

 private:
  bool before_;
};

class EnableGradGuard : public AutoGradMode {
 public:
  EnableGradGuard() : AutoGradMode(true) {}
};

namespace autograd {

using Variable = Tensor;
using variable_list = TensorList;
using tensor_list = TensorList;

// Adds the gradients of the outputs to grad() of every leaf they depend on, or of `inputs` alone: in place, unless
// create_graph, so that a tensor that grad() gave before sees the sum. `grad_outputs` may be left out (or
// undefined) for outputs of one element: ones. The graph is freed unless retained; create_graph records the gradients
// themselves, so that they can be differentiated in turn.
void backward(const TensorList& outputs, const TensorList& grad_outputs = {}, std::optional<bool> retain_graph = {},
              bool create_graph = false, const TensorList& inputs = {}, Where where = Where::current());

// The gradients of the outputs with respect to the inputs, and nothing else: no leaf's grad() changes. An input on
// which no output depends is an Error, or an undefined gradient where allow_unused. With is_grads_batched each of
// grad_outputs has one more dimension in front, and so has each result: as many gradients at once, by vmap.
TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grad_outputs = {},
                std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false,
                bool is_grads_batched = false, Where where = Where::current());

// Forgets the gradients of these leaves, or fills them with zeros where they lie: whoever holds one keeps seeing it.
void zero_grad(const TensorList& leaves, bool set_to_none = true);

// A step of the recorded graph, for looking at: an op, a Function, or a leaf's place for its gradient.
struct Edge;
class GradFn {
 public:
  GradFn() = default;
  explicit GradFn(const Edge& edge);

  bool defined() const { return bool(edge_); }
  explicit operator bool() const { return defined(); }
  // LibTorch has a pointer here: y.grad_fn()->name(), y.grad_fn() == nullptr.
  const GradFn* operator->() const { return this; }
  bool operator==(std::nullptr_t) const { return !defined(); }
  // "mul", "AccumulateGrad"; and with the line of the forward: "mul (model.cpp:12)".
  std::string name() const;
  std::string text() const;
  // Where the gradients of its operands go; undefined for one that needs none.
  std::vector<GradFn> next_functions() const;

 private:
  std::shared_ptr<const Edge> edge_;
};
std::ostream& operator<<(std::ostream& out, const GradFn& fn);

// --- a gradient of one's own
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, double scale) {
//       ctx->save_for_backward({x});
//       ctx->saved_data["scale"] = scale;
//       return scale * x * x * x;
//     }
//     static TensorList backward(autograd::AutogradContext* ctx, TensorList grads) {
//       Tensor x = ctx->get_saved_variables()[0];
//       return {grads[0] * 3 * ctx->saved_data["scale"].toDouble() * x * x, Tensor()};   // one for each argument
//     }
//   };
//   Tensor y = Cube::apply(x, 2.0);
//
// forward runs unrecorded. backward gives a gradient for each argument of forward (of a TensorList, for each of its
// tensors), undefined for numbers. In compiled functions both are captured as part of the program.

// What forward leaves for backward besides tensors.
class SavedValue {
 public:
  SavedValue() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  SavedValue(T value) : value_(Scalar(value)) {}
  SavedValue(const Scalar& value) : value_(value) {}
  SavedValue(const char* value) : value_(std::string(value)) {}
  SavedValue(std::string value) : value_(std::move(value)) {}
  SavedValue(IntList value) : value_(std::move(value)) {}
  SavedValue(Tensor value) : value_(std::move(value)) {}
  SavedValue(TensorList value) : value_(std::move(value)) {}

  bool isNone() const { return value_.index() == 0; }
  int64_t toInt() const { return as<Scalar>("a number").to_int(); }
  double toDouble() const { return as<Scalar>("a number").to_double(); }
  bool toBool() const { return as<Scalar>("a number").to_bool(); }
  const Scalar& toScalar() const { return as<Scalar>("a number"); }
  const std::string& toStringRef() const { return as<std::string>("a string"); }
  const IntList& toIntList() const { return as<IntList>("a list of integers"); }
  const Tensor& toTensor() const { return as<Tensor>("a tensor"); }
  const TensorList& toTensorList() const { return as<TensorList>("a list of tensors"); }

 private:
  [[noreturn]] static void fail(const char* wanted);
  template <class T>
  const T& as(const char* wanted) const {
    if (auto* value = std::get_if<T>(&value_)) return *value;
    fail(wanted);
  }
  std::variant<std::monostate, Scalar, std::string, IntList, Tensor, TensorList> value_;
};

class AutogradContext {
 public:
  AutogradContext();
  ~AutogradContext();
  AutogradContext(const AutogradContext&) = delete;

  // Arguments or results that backward reads; an Error there when one was overwritten since.
  void save_for_backward(TensorList tensors);
  TensorList get_saved_variables() const;
  std::unordered_map<std::string, SavedValue> saved_data;

  // Arguments that forward writes in place, which are then among its results; results without a gradient.
  void mark_dirty(const TensorList& inputs);
  void mark_non_differentiable(const TensorList& outputs);
  // Whether backward gets zeros where no gradient flows, as by default, or an undefined tensor.
  void set_materialize_grads(bool value);
  // Whether the gradient of this argument is wanted.
  bool needs_input_grad(size_t argument) const;

 private:
  friend class FunctionNode;
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

using FunctionBackward = TensorList (*)(AutogradContext* context, TensorList grads);

// One call of a Function: its arguments, then forward() between start() and finish().
class FunctionCall {
 public:
  FunctionCall(const std::type_info& type, FunctionBackward backward);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;

  void add(const Tensor& argument);
  void add(const std::optional<Tensor>& argument) { add(argument.value_or(Tensor())); }
  void add(const TensorList& arguments) {
    for (auto& argument : arguments) add(argument);
  }
  template <class T>
  void add(const T&) {
    add(Tensor());
  }
  AutogradContext* start();
  TensorList finish(TensorList outputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

template <class Self>
struct Function {
  template <class... Args>
  static auto apply(const Args&... args) {
    detail::FunctionCall call(typeid(Self), [](AutogradContext* context, TensorList grads) {
      return Self::backward(context, std::move(grads));
    });
    (call.add(args), ...);
    auto forward = [&](AutogradContext* context) {
      NoGradGuard unrecorded;
      return Self::forward(context, args...);
    };
    AutogradContext* context = call.start();
    if constexpr (std::is_same_v<decltype(forward(context)), Tensor>)
      return call.finish({forward(context)})[0];
    else
      return call.finish(forward(context));
  }
};

// --- NaN in gradients

// While alive, a gradient that is NaN is an Error that names the op and its line in the forward. A check per op: slow.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool enabled = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool before_;
};
struct AnomalyMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

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

}  // namespace sinter
