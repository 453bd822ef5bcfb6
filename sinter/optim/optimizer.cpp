#include "sinter/optim/optimizer.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/host_effects.h"
#include "sinter/capture/function.h"
#include "sinter/ops/creation.h"
#include "sinter/tensor/tracer.h"

namespace sinter::optim {

// What captured programs watch of an optimiser, as long as it exists.
class Optimizer::Watched final : public capture::HostState {
 public:
  Watched(const Optimizer& optimizer, bool rates) : optimizer_(&optimizer), rates_(rates) {}
  std::optional<uint64_t> fingerprint() const override {
    std::lock_guard lock(mutex_);
    if (!optimizer_) return std::nullopt;
    return hash_mix(optimizer_->version_, optimizer_->fingerprint(rates_));
  }
  // Options are written to where they are.
  bool moves_clock() const override { return false; }
  std::string name() const override { return rates_ ? "a learning rate or a momentum" : "an optimiser's options"; }
  void forget() {
    std::lock_guard lock(mutex_);
    optimizer_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  const Optimizer* optimizer_;
  const bool rates_;
};

Optimizer::~Optimizer() {
  for (auto* state : {&options_state_, &rates_state_})
    if (*state) static_cast<Watched&>(**state).forget();
}

void Optimizer::watch() const {
  if (!capture::is_capturing()) return;
  if (!options_state_) options_state_ = make_intrusive<Watched>(*this, false);
  capture::depend_on(options_state_);
}

const IntrusivePtr<capture::HostState>& Optimizer::rates_state() const {
  if (!rates_state_) rates_state_ = make_intrusive<Watched>(*this, true);
  return rates_state_;
}

void Optimizer::watch_rates() const {
  if (capture::is_capturing()) capture::depend_on(rates_state());
}

Scalar Optimizer::number(const std::function<double()>& read) { return capture::host_number(read); }

void Optimizer::call_every_time(const char* what) { note_host_change(what); }
void Optimizer::serve_once(const char* what) { note_single_change(what); }
void Optimizer::perform(const char* what, const std::function<void()>& apply, const std::function<void()>& undo) {
  perform_on_host(what, apply, undo);
}

void Optimizer::refuse_momentum() { throw Error("optim: this optimiser has no momentum to set"); }

uint64_t Optimizer::hash_options(const char* begin, const char* end, uint64_t seed) {
  return hash_bytes(begin, size_t(end - begin), seed);
}

void Optimizer::count_steps(const std::vector<size_t>& which) {
  auto add = [this](const std::vector<size_t>& to, int64_t steps) {
    for (size_t i : to) states_[i].steps += steps;
  };
  if (HostEffects::current())
    perform_on_host("step()", [=] { add(which, 1); }, [=] { add(which, -1); });
  else
    add(which, 1);
}

void Optimizer::begin_zero(State& state, const char* name, const Tensor& param) {
  begin_full(state, name, param, param.sizes(), 0);
}

// Like the parameter in memory, too, where it can be, so that an update walks both in one order.
static Tensor new_state(const Tensor& param, const Shape& sizes) {
  return sizes.same_as(param.sizes()) ? empty_like(param) : empty(sizes, param.options());
}

void Optimizer::begin_full(State& state, const char* name, const Tensor& param, const Shape& sizes, double value) {
  Tensor& tensor = state[name];
  if (tensor.defined()) return;
  // Memory that outlives a program being captured, which writes into it.
  TracerScope scope(param.is_traced() ? Tracer::current() : nullptr);
  NoGradGuard no_grad;
  tensor = new_state(param, sizes).fill_(value);
  state.first = state.steps + 1;
}

Shape Optimizer::state_sizes(std::string_view, const Tensor& param) const { return param.sizes(); }

void Optimizer::zero_grad(bool set_to_none) {
  for (size_t g = 0; g < num_groups(); ++g) autograd::zero_grad(params(g), set_to_none);
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  EnableGradGuard with_gradients;
  Tensor loss = closure();
  step();
  return loss;
}

TensorList Optimizer::parameters() const {
  TensorList all;
  for (size_t g = 0; g < num_groups(); ++g) all.insert(all.end(), params(g).begin(), params(g).end());
  return all;
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < num_groups(); ++g) set_lr(g, lr);
}

void Optimizer::check_params() const {
  std::set<const TensorImpl*> seen;
  for (size_t g = 0; g < num_groups(); ++g)
    for (auto& param : params(g)) {
      check(!is_complex(param.dtype()), "optim: a parameter of shape {} is complex ({}): make the leaf real, and use "
            "view_as_complex(leaf)", param.sizes(), param.dtype());
      check(param.is_leaf(), "optim: a parameter of shape {} is the result of recorded ops; give its leaf",
            param.sizes());
      check(seen.insert(&param.impl()).second, "optim: a parameter of shape {} is given twice", param.sizes());
    }
}

Tensor& Optimizer::State::operator[](const char* name) {
  for (auto& [its_name, tensor] : tensors)
    if (its_name == std::string_view(name)) return tensor;
  return tensors.emplace_back(name, Tensor()).second;
}

void Optimizer::make_states(size_t count) {
  if (states_.size() < count) states_.resize(count);
}

NamedTensors Optimizer::state_dict() const {
  note_host_change("state_dict()");
  NamedTensors all;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].steps == 0) continue;
    all.emplace_back(format("{}.step", i), tensor(states_[i].steps));
    for (auto& [name, value] : states_[i].tensors)
      if (value.defined()) all.emplace_back(format("{}.{}", i, name), value);
  }
  return all;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  note_host_change("load_state_dict()");
  TensorList all;
  for (size_t g = 0; g < num_groups(); ++g) all.insert(all.end(), params(g).begin(), params(g).end());

  NoGradGuard no_grad;
  std::vector<State> loaded(all.size());
  for (auto& [key, value] : state) {
    size_t dot = key.find('.'), i = all.size();
    if (dot != std::string::npos && dot > 0 && dot < 10 && key.find_first_not_of("0123456789") == dot)
      i = std::stoul(key.substr(0, dot));
    check(i < all.size(), "optim: state '{}' belongs to none of {} parameters", key, all.size());
    std::string name = key.substr(dot + 1);
    if (name == "step") {
      loaded[i].steps = value.item<int64_t>();
      continue;
    }
    auto names = state_names();
    auto known = std::find(names.begin(), names.end(), std::string_view(name));
    check(known != names.end(), "optim: this optimiser keeps no '{}', which the state holds for parameter {}", name, i);
    Shape sizes = state_sizes(name, all[i]);
    check(value.sizes().same_as(sizes), "optim: state '{}' is {} and not {}, its parameter is {}", key, value.sizes(), sizes,
          all[i].sizes());
    loaded[i][*known] = new_state(all[i], sizes).copy_(value);
  }
  states_ = std::move(loaded);
  touch();
}

}  // namespace sinter::optim
