#include "sinter/optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/host_effects.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/optim/state_of.h"
#include "sinter/optim/strong_wolfe.h"

namespace sinter::optim {

namespace {

double product(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }
double largest_size(const Tensor& x) { return x.numel() == 0 ? 0 : abs(x).max().item<double>(); }
Tensor kept(double value) { return tensor(value, kFloat64); }

}  // namespace

LBFGS::LBFGS(const TensorList& params, const LBFGSOptions& options) : LBFGS(std::vector<Group>{{params, options}}) {}

LBFGS::LBFGS(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) {
  check(groups_.size() == 1, "LBFGS: all parameters are one vector, so that there is one group and not {}", groups_.size());
  const LBFGSOptions& o = groups_[0].options();
  check(o.lr() >= 0, "LBFGS: lr {} must not be negative", o.lr());
  check(o.history_size() >= 1, "LBFGS: history_size {} must be 1 or more", o.history_size());
  check(!o.line_search_fn() || *o.line_search_fn() == "strong_wolfe", "LBFGS: line_search_fn '{}' is not 'strong_wolfe'",
        o.line_search_fn().value_or(""));
}

void LBFGS::step() {
  throw Error("LBFGS: a step needs a closure that computes the loss and its gradients, as often as it is called: "
              "step([&] { optimizer.zero_grad(); Tensor l = loss(); l.backward(); return l; })");
}

Tensor LBFGS::gradient() const {
  TensorList pieces;
  for (auto& param : groups_[0].params()) {
    const Tensor grad = param.grad();
    pieces.push_back(grad.defined() ? grad.reshape({-1}) : zeros({param.numel()}, param.options()));
  }
  return cat(pieces, 0);
}

void LBFGS::move(double length, const Tensor& direction) const {
  int64_t at = 0;
  for (auto& param : groups_[0].params()) {
    param.add_(direction.slice(0, at, at + param.numel()).view(param.sizes()), length);
    at += param.numel();
  }
}

void LBFGS::remember(const Tensor& gradient_change, const Tensor& change) {
  const double curvature = product(gradient_change, change);
  if (!(curvature > 1e-10)) return;
  if (int64_t(changes_.size()) == groups_[0].options().history_size()) {
    changes_.erase(changes_.begin());
    gradient_changes_.erase(gradient_changes_.begin());
    curvatures_.erase(curvatures_.begin());
  }
  gradient_changes_.push_back(gradient_change);
  changes_.push_back(change);
  curvatures_.push_back(1 / curvature);
  scale_ = curvature / product(gradient_change, gradient_change);
}

// The estimate of the inverse Hessian times the negative gradient, by its two loops over the history.
void LBFGS::find_direction(const Tensor& gradient) {
  Tensor d = -gradient;
  std::vector<double> shares(changes_.size());
  for (size_t i = changes_.size(); i-- > 0;) {
    shares[i] = product(changes_[i], d) * curvatures_[i];
    d.add_(gradient_changes_[i], -shares[i]);
  }
  d.mul_(scale_);
  for (size_t i = 0; i < changes_.size(); ++i)
    d.add_(changes_[i], shares[i] - product(gradient_changes_[i], d) * curvatures_[i]);
  direction_ = d;
}

Tensor LBFGS::step(const std::function<Tensor()>& closure) {
  call_every_time("LBFGS's step()");
  NoGradGuard no_grad;
  const LBFGSOptions o = groups_[0].options();
  const int64_t most_evaluations = o.max_eval().value_or(o.max_iter() * 5 / 4);
  int64_t evaluations = 0;
  auto evaluate = [&] {
    EnableGradGuard with_gradients;
    ++evaluations;
    ++evaluations_;
    return closure();
  };

  const Tensor first_loss = evaluate();
  double loss = first_loss.item<double>();
  Tensor g = gradient();
  if (largest_size(g) <= o.tolerance_grad()) return first_loss;

  for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
    if (++iterations_ > 1) remember(g - last_gradient_, direction_ * length_);
    find_direction(g);
    last_gradient_ = g;
    last_loss_ = loss;
    length_ = (iterations_ == 1 ? std::min(1.0, 1 / abs(g).sum().item<double>()) : 1.0) * o.lr();
    const double slope = product(g, direction_), reach = largest_size(direction_);
    if (slope > -o.tolerance_change()) break;

    if (o.line_search_fn()) {
      TensorList origin;
      for (auto& param : groups_[0].params()) origin.push_back(param.clone());
      auto at = [&](double length) {
        move(length, direction_);
        LinePoint point{.at = length, .loss = evaluate().item<double>(), .gradient = gradient()};
        point.slope = product(point.gradient, direction_);
        for (size_t i = 0; i < origin.size(); ++i) groups_[0].params()[i].copy_(origin[i]);
        return point;
      };
      const LinePoint found = strong_wolfe(at, {.at = 0, .loss = loss, .gradient = g, .slope = slope}, length_, reach);
      loss = found.loss;
      g = found.gradient;
      length_ = found.at;
      move(length_, direction_);
    } else {
      move(length_, direction_);
      // Of the last point nobody asks; the next step begins there.
      if (iteration == o.max_iter()) break;
      loss = evaluate().item<double>();
      g = gradient();
    }
    const bool stands = reach * std::abs(length_) <= o.tolerance_change() || std::abs(loss - last_loss_) < o.tolerance_change();
    if (evaluations >= most_evaluations || largest_size(g) <= o.tolerance_grad() || stands) break;
  }
  return first_loss;
}

NamedTensors LBFGS::state_dict() const {
  note_host_change("state_dict()");
  if (evaluations_ == 0) return {};
  NamedTensors all;
  all.emplace_back("0.func_evals", tensor(evaluations_));
  all.emplace_back("0.n_iter", tensor(iterations_));
  if (iterations_ == 0) return all;
  all.emplace_back("0.t", kept(length_));
  all.emplace_back("0.prev_loss", kept(last_loss_));
  all.emplace_back("0.H_diag", kept(scale_));
  all.emplace_back("0.d", direction_);
  all.emplace_back("0.prev_flat_grad", last_gradient_);
  if (changes_.empty()) return all;
  all.emplace_back("0.old_dirs", stack(gradient_changes_));
  all.emplace_back("0.old_stps", stack(changes_));
  all.emplace_back("0.ro", tensor(curvatures_, kFloat64));
  return all;
}

void LBFGS::load_state_dict(const NamedTensors& state) {
  note_host_change("load_state_dict()");
  NoGradGuard no_grad;
  int64_t size = 0;
  for (auto& param : groups_[0].params()) size += param.numel();
  const TensorOptions options = groups_[0].params().at(0).options();
  auto find = [&](const char* name) -> const Tensor& { return state_of(state, name); };
  // A vector of all parameters, or rows of such.
  auto vectors = [&](const char* name, int64_t dims) {
    const Tensor& value = find(name);
    check(value.dim() == dims && value.size(-1) == size, "LBFGS: state '{}' has shape {}, the parameters have {} elements", name,
          value.sizes(), size);
    return value.to(options).clone();
  };
  const bool is_new = state.empty();
  evaluations_ = is_new ? 0 : find("0.func_evals").item<int64_t>();
  iterations_ = is_new ? 0 : find("0.n_iter").item<int64_t>();
  gradient_changes_.clear();
  changes_.clear();
  curvatures_.clear();
  scale_ = 1;
  if (iterations_ > 0) {
    length_ = find("0.t").item<double>();
    last_loss_ = find("0.prev_loss").item<double>();
    scale_ = find("0.H_diag").item<double>();
    direction_ = vectors("0.d", 1);
    last_gradient_ = vectors("0.prev_flat_grad", 1);
  }
  if (state.contains("0.old_dirs")) {
    gradient_changes_ = unbind(vectors("0.old_dirs", 2), 0);
    changes_ = unbind(vectors("0.old_stps", 2), 0);
    curvatures_ = find("0.ro").to(kFloat64).to_vector<double>();
    check(gradient_changes_.size() == changes_.size() && changes_.size() == curvatures_.size(),
          "LBFGS: the state's history has {} gradients, {} steps and {} factors", gradient_changes_.size(), changes_.size(),
          curvatures_.size());
  }
  touch();
}

}  // namespace sinter::optim
