#include "sinter/nn/utils/parametrizations.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn::utils {

namespace {

// "parametrizations.weight" of a module: what its weight is computed from.
struct Parametrization : Module {
  HookHandle before, after;
  virtual Tensor value() = 0;
};

// The norms of slices along dim, or of everything.
Tensor lengths(const Tensor& v, int64_t dim) {
  if (dim == -1) return norm(v);
  IntList others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  return others.empty() ? abs(v) : norm(v, 2, others, true);
}

struct WeightNorm final : Parametrization {
  Tensor length, direction;
  const int64_t dim;

  WeightNorm(const Tensor& weight, int64_t dim) : dim(dim) {
    check(dim >= -1 && dim < weight.dim(), "weight_norm: a weight {} has no dimension {}", weight.sizes(), dim);
    length = register_parameter("original0", lengths(weight, dim));
    direction = register_parameter("original1", weight);
  }
  Tensor value() override { return direction * (length / lengths(direction, dim)); }
};

struct SpectralNorm final : Parametrization {
  struct Vectors : Module {
    Tensor u, v;
  };
  Tensor original;
  std::shared_ptr<Vectors> vectors = std::make_shared<Vectors>();
  const int64_t iterations, dim;
  const double eps;

  SpectralNorm(const Tensor& weight, int64_t iterations, double eps, int64_t dim)
      : iterations(iterations), dim(dim), eps(eps) {
    check(iterations > 0, "spectral_norm: n_power_iterations {} is not positive", iterations);
    check(dim >= 0 && dim < weight.dim(), "spectral_norm: a weight {} has no dimension {}", weight.sizes(), dim);
    original = register_parameter("original", weight);
    register_module("0", vectors);
    if (weight.dim() < 2) return;
    Tensor m = matrix();
    vectors->u = vectors->register_buffer("_u", normalize(randn({m.size(0)}, m.options()), 2, 0, eps));
    vectors->v = vectors->register_buffer("_v", normalize(randn({m.size(1)}, m.options()), 2, 0, eps));
    approach(m, 15);
  }
  Tensor matrix() const { return original.movedim(dim, 0).flatten(1); }
  void approach(const Tensor& m, int64_t steps) const {
    for (int64_t i = 0; i < steps; ++i) {
      vectors->u.copy_(normalize(mv(m, vectors->v), 2, 0, eps));
      vectors->v.copy_(normalize(mv(m.t(), vectors->u), 2, 0, eps));
    }
  }
  Tensor value() override {
    if (original.dim() < 2) return normalize(original, 2, 0, eps);
    Tensor m = matrix();
    if (is_training()) {
      NoGradGuard no_grad;
      approach(m.detach(), iterations);
    }
    // Copies: the next call moves them before this one is differentiated.
    return original / dot(vectors->u.clone(), mv(m, vectors->v.clone()));
  }
};

std::shared_ptr<Module> child(const Module& module, const std::string& name) {
  for (auto& [its_name, its_module] : module.named_children())
    if (its_name == name) return its_module;
  return nullptr;
}

template <class P, class... Args>
void install(const char* function, Module& module, Tensor& member, const std::string& name, const Args&... args) {
  check(member.defined(), "{}: {} has no '{}' to compute", function, module.name(), name);
  NoGradGuard no_grad;
  auto all = child(module, "parametrizations");
  auto own = std::make_shared<P>(member, args...);
  module.unregister_parameter(name);
  if (!all) all = module.register_module("parametrizations", std::make_shared<Module>());
  all->register_module(name, own);
  own->train(module.is_training());
  // What a program being captured computes must not outlive the call.
  own->before =
      module.register_forward_pre_hook([&member, p = own.get()](Module&, TensorList&) { member = p->value(); });
  own->after = module.register_forward_hook([&member](Module&, const TensorList&, TensorList&) { member = Tensor(); });
  member = Tensor();
}

}  // namespace

void weight_norm(Module& module, Tensor& member, const std::string& name, int64_t dim) {
  install<WeightNorm>("weight_norm", module, member, name, dim);
}

void spectral_norm(Module& module, Tensor& member, const std::string& name, int64_t n_power_iterations, double eps,
                   int64_t dim) {
  install<SpectralNorm>("spectral_norm", module, member, name, n_power_iterations, eps, dim);
}

void remove_parametrizations(Module& module, Tensor& member, const std::string& name) {
  auto all = child(module, "parametrizations");
  auto own = std::dynamic_pointer_cast<Parametrization>(all ? child(*all, name) : nullptr);
  check(own != nullptr, "remove_parametrizations: '{}' of {} is no computed parameter", name, module.name());
  own->before.remove();
  own->after.remove();
  NoGradGuard no_grad;
  own->eval();
  member = own->value().clone();
  all->unregister_module(name);
  if (all->children().empty()) module.unregister_module("parametrizations");
  module.register_parameter(name, member);
}

}  // namespace sinter::nn::utils
