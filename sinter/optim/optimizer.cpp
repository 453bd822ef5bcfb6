#include "sinter/optim/optimizer.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "sinter/autograd/autograd.h"
#include "sinter/base/hash.h"
#include "sinter/capture/function.h"
#include "sinter/ops/creation.h"

namespace sinter::optim {

namespace {

// The learning rates of an optimiser, as long as it exists.
class WatchedRates final : public capture::HostState {
 public:
  explicit WatchedRates(const Optimizer& optimizer) : optimizer_(&optimizer) {}
  std::optional<uint64_t> fingerprint() const override {
    std::lock_guard lock(mutex_);
    if (!optimizer_) return std::nullopt;
    uint64_t h = 0;
    for (size_t g = 0; g < optimizer_->num_groups(); ++g) h = hash_mix(h, std::bit_cast<uint64_t>(optimizer_->lr(g)));
    return h;
  }
  bool moves_clock() const override { return false; }
  std::string name() const override { return "a learning rate"; }
  void forget() {
    std::lock_guard lock(mutex_);
    optimizer_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  const Optimizer* optimizer_;
};

}  // namespace

Optimizer::~Optimizer() {
  if (watched_) static_cast<WatchedRates&>(*watched_).forget();
}

void Optimizer::watch() {
  if (!capture::is_capturing()) return;
  if (!watched_) watched_ = make_intrusive<WatchedRates>(*this);
  capture::depend_on(watched_);
}

void Optimizer::check_not_captured(const char* what) {
  check(!capture::is_capturing(),
        "step: {}, which a compiled function cannot do. Call step() outside of it, or write the update with tensors", what);
}

void Optimizer::zero_grad(bool set_to_none) {
  for (size_t g = 0; g < num_groups(); ++g) autograd::zero_grad(params(g), set_to_none);
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < num_groups(); ++g) set_lr(g, lr);
}

void Optimizer::check_params() const {
  std::set<const TensorImpl*> seen;
  for (size_t g = 0; g < num_groups(); ++g)
    for (auto& param : params(g)) {
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

Optimizer::State& Optimizer::state(size_t i) {
  if (i >= states_.size()) states_.resize(i + 1);
  return states_[i];
}

NamedTensors Optimizer::state_dict() const {
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
    check(value.sizes().same_as(all[i].sizes()), "optim: state '{}' is {}, its parameter {}", key, value.sizes(),
          all[i].sizes());
    loaded[i][*known] = value.to(all[i].options()).clone();
  }
  states_ = std::move(loaded);
}

}  // namespace sinter::optim
