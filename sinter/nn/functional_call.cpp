#include "sinter/nn/functional_call.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::func {

namespace {

// The tensor of every name, also of those that are tied to another one.
NamedTensors state_of(nn::Module& module) {
  NamedTensors all;
  for (auto& [prefix, part] : module.named_modules()) {
    auto add = [&, &prefix = prefix](const NamedTensors& tensors) {
      for (auto& [name, tensor] : tensors) all.emplace_back(prefix.empty() ? name : prefix + "." + name, tensor);
    };
    add(part->named_parameters(false));
    add(part->named_buffers(false));
  }
  return all;
}

}  // namespace

namespace detail {

// Delegating, so that what was exchanged goes back where one of the others is refused.
Substitution::Substitution(nn::Module& module, const NamedTensors& values) : Substitution() {
  const NamedTensors all = state_of(module);
  std::vector<const Tensor*> held;
  for (auto& [name, value] : values) {
    check(value.defined(), "functional_call: the tensor for '{}' is undefined", name);
    held.push_back(all.find(name));
    check(held.back(), "functional_call: {} has no parameter or buffer '{}'", module.name(), name);
  }
  for (size_t i = 0; i < held.size(); ++i) exchange(values[i].first, *held[i], values[i].second);
}

Substitution::Substitution(nn::Module& module, const TensorList& parameters) : Substitution() {
  const NamedTensors all = module.named_parameters();
  check(all.size() == parameters.size(), "functional_call: {} tensors for the {} parameters of {}", parameters.size(),
        all.size(), module.name());
  for (size_t i = 0; i < all.size(); ++i) {
    check(parameters[i].defined(), "functional_call: the tensor for '{}' is undefined", all[i].first);
    exchange(all[i].first, all[i].second, parameters[i]);
  }
}

Substitution::~Substitution() { end(); }

// The bodies are swapped, so that every handle on the parameter is one on the value. A look at the value, since a leaf is known by
// its body, which stays where it is.
void Substitution::exchange(const std::string& name, const Tensor& held, const Tensor& value) {
  for (auto& known : exchanges_) {
    if (&known.held.impl() != &held.impl()) continue;
    check(&known.value.impl() == &value.impl(),
          "functional_call: '{}' is tied to a parameter that is given another tensor", name);
    return;
  }
  exchanges_.push_back({held, alias(value), value});
  std::swap(held.impl(), exchanges_.back().other.impl());
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
}

void Substitution::end() {
  for (; !exchanges_.empty(); exchanges_.pop_back())
    std::swap(exchanges_.back().held.impl(), exchanges_.back().other.impl());
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
}

void Substitution::end(TensorList& results) {
  for (auto& result : results)
    for (auto& known : exchanges_)
      if (result.defined() && &result.impl() == &known.held.impl()) {
        result = known.value;
        break;
      }
  end();
}

}  // namespace detail

std::pair<NamedTensors, NamedTensors> stack_module_state(const std::vector<nn::Module*>& modules) {
  check(!modules.empty(), "stack_module_state: no module is given");
  auto stacked = [&](NamedTensors (nn::Module::*named)(bool) const, const char* what) {
    NamedTensors all = (modules[0]->*named)(true);
    for (size_t i = 0; i < all.size(); ++i) {
      TensorList each;
      for (auto* module : modules) {
        const NamedTensors its = (module->*named)(true);
        check(its.size() == all.size() && its[i].first == all[i].first,
              "stack_module_state: {} '{}' is not at the same place in {}", what, all[i].first, module->name());
        each.push_back(its[i].second.detach());
      }
      all[i].second = stack(each).requires_grad_(all[i].second.requires_grad());
    }
    return all;
  };
  NamedTensors parameters = stacked(&nn::Module::named_parameters, "parameter");
  return {std::move(parameters), stacked(&nn::Module::named_buffers, "buffer")};
}

}  // namespace sinter::func
