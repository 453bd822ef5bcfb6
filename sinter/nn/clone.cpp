#include "sinter/nn/module.h"

#include <algorithm>
#include <typeinfo>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/module_state.h"

namespace sinter::nn {

Tensor detail::cloned(const Tensor& tensor, const std::optional<Device>& device) {
  NoGradGuard no_grad;
  const Tensor values = tensor.detach();
  Tensor copy = device && !(*device == values.device()) ? values.to(*device) : values.clone();
  return tensor.requires_grad() ? copy.requires_grad_() : copy;
}

std::shared_ptr<Module> CloneableBase::clone(const std::optional<Device>& device) const {
  auto [made, bytes] = copied();
  std::shared_ptr<CloneableBase> copy(made);
  check(typeid(*copy) == typeid(*this),
        "clone: {} is a class of its own, derived from one that is copied: derive {}Impl from nn::Cloneable<{}Impl, "
        "Base> in place of "
        "Base",
        name(), name(), name());
  copy->parameters_.clear();
  copy->buffers_.clear();
  copy->modules_ = {};
  if (state_)
    copy->state().add_fields(static_cast<const ModuleState&>(*state_), dynamic_cast<const void*>(this), bytes,
                             dynamic_cast<const void*>(copy.get()));
  clone_members(*copy, device);
  return copy;
}

void CloneableBase::clone_members(CloneableBase& copy, const std::optional<Device>& device) const {
  {
    ParameterScope memory(parameter_options(), /*initialise=*/false);
    copy.reset();
  }
  fill(copy, device);
}

namespace {

template <class Slots>
std::vector<std::string> names_of(const Slots& slots) {
  std::vector<std::string> names;
  for (auto& slot : slots) {
    if constexpr (requires { slot.name; })
      names.push_back(slot.name);
    else
      names.push_back(slot.first);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

template <class Slots>
void check_same_names(const Module& module, const char* what, const Slots& own, const Slots& of_copy) {
  const auto names = names_of(own), made = names_of(of_copy);
  check(names == made, "clone: {} has the {} {}, and its reset() registers {}; register all of them there",
        module.name(), what, listed(names), listed(made));
}

template <class Slots>
auto& named(Slots& slots, const std::string& name) {
  return *std::find_if(slots.begin(), slots.end(), [&](auto& slot) { return slot.name == name; });
}

}  // namespace

void CloneableBase::fill(CloneableBase& copy, const std::optional<Device>& device) const {
  check_same_names(*this, "parameters", parameters_, copy.parameters_);
  check_same_names(*this, "buffers", buffers_, copy.buffers_);
  check_same_names(*this, "modules", modules_, copy.modules_);
  NoGradGuard no_grad;
  for (auto& slot : parameters_) {
    const Tensor& parameter = named(copy.parameters_, slot.name).tensor;
    parameter.requires_grad_(false);
    parameter.set_data(detail::cloned(slot.tensor, device).detach());
    parameter.requires_grad_(slot.tensor.requires_grad());
  }
  for (auto& slot : buffers_)
    named(copy.buffers_, slot.name).tensor.set_data(detail::cloned(slot.tensor, device).detach());
  for (auto& [name, module] : modules_) {
    Module& made = **copy.modules_.find(name);
    check(typeid(made) == typeid(*module), "clone: module {} of {} is a {}, and its reset() makes a {}", name,
          this->name(), module->name(), made.name());
    // In place, since the copy's own members are handles on it.
    auto theirs = module->clone(device);
    static_cast<CloneableBase&>(made).assign(static_cast<const CloneableBase&>(*theirs));
  }
}

}  // namespace sinter::nn
