#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/capture/function.h"
#include "sinter/ops/creation.h"
#include "sinter/optim/existence.h"
#include "sinter/optim/optim.h"
#include "sinter/optim/state_of.h"
#include "sinter/tensor/tracer.h"

namespace sinter::optim {

// Memory that outlives a program being captured.
static TensorList like(const TensorList& tensors) {
  TracerScope none(nullptr);
  TensorList all;
  for (auto& one : tensors) all.push_back(empty_like(one));
  return all;
}

static void copy_all(const TensorList& to, const TensorList& from) {
  check(to.size() == from.size(), "ExponentialMovingAverage: {} tensors and not {}", to.size(), from.size());
  NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) {
    check(to[i].sizes().same_as(from[i].sizes()), "ExponentialMovingAverage: parameter {} is {} and not {}", i,
          to[i].sizes(), from[i].sizes());
    to[i].copy_(from[i]);
  }
}

ExponentialMovingAverage::ExponentialMovingAverage(const TensorList& params, double decay)
    : params_(params), averages_(like(params)), decay_(decay) {
  check(decay >= 0 && decay <= 1, "ExponentialMovingAverage: decay {} must be in [0, 1]", decay);
  copy_all(averages_, params_);
}

ExponentialMovingAverage::~ExponentialMovingAverage() { Existence::end(state_); }

void ExponentialMovingAverage::update() {
  NoGradGuard no_grad;
  if (capture::is_capturing()) Existence::watch(state_, "an average of parameters");
  perform_on_host(
      "update()", [this] { ++count_; }, [this] { --count_; });
  Scalar weight = capture::host_number([this] { return count_ == 1 ? 1 : 1 - decay_; });
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].is_floating_point())
      averages_[i].lerp_(params_[i], weight);
    else
      averages_[i].copy_(params_[i]);
  }
}

int64_t ExponentialMovingAverage::num_averaged() const {
  note_host_change("num_averaged()");
  return count_;
}

void ExponentialMovingAverage::copy_to(const TensorList& params) const { copy_all(params, averages_); }

void ExponentialMovingAverage::store() {
  if (stored_.empty()) stored_ = like(params_);
  copy_all(stored_, params_);
}

void ExponentialMovingAverage::restore() const {
  check(!stored_.empty() || params_.empty(), "ExponentialMovingAverage: nothing was stored to restore");
  copy_all(params_, stored_);
}

void ExponentialMovingAverage::swap() const {
  TensorList kept;
  for (auto& param : params_) kept.push_back(param.detach().clone());
  copy_all(params_, averages_);
  copy_all(averages_, kept);
}

NamedTensors ExponentialMovingAverage::state_dict() const {
  note_host_change("state_dict()");
  NamedTensors all{{"n_averaged", tensor(count_)}};
  for (size_t i = 0; i < averages_.size(); ++i) all.emplace_back(format("{}", i), averages_[i]);
  return all;
}

void ExponentialMovingAverage::load_state_dict(const NamedTensors& state) {
  note_host_change("load_state_dict()");
  TensorList loaded;
  for (size_t i = 0; i < averages_.size(); ++i) loaded.push_back(state_of(state, format("{}", i)));
  int64_t count = state_of(state, "n_averaged").item<int64_t>();
  copy_all(averages_, loaded);
  count_ = count;
}

}  // namespace sinter::optim
