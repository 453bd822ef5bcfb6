#include "sinter/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <typeinfo>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/nn/module_state.h"
#include "sinter/ops/creation.h"

namespace sinter::nn {

namespace {

std::atomic<uint64_t> clock_of_structures{0};

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// Captured programs watch the same changes.
uint64_t next_version() {
  capture::HostState::clock.fetch_add(1, std::memory_order_relaxed);
  return ++clock_of_structures;
}

}  // namespace

// By id, in the order of registration. Handles may outlive the module, so the stamp of the last change lives here.
struct Module::Hooks {
  std::map<uint64_t, ForwardPreHook> before;
  std::map<uint64_t, ForwardHook> after;
  uint64_t next_id = 0, version = 0;
};

Module::Module() : made_in_(HostEffects::current()) {}
Module::Module(std::string name) : name_(std::move(name)), made_in_(HostEffects::current()) {}

Module::Module(Module&& other) : made_in_(HostEffects::current()) {
  check(!other.state_ && !other.region_ && !other.hooks_,
        "{}: a module that has hooks or guarded members, or that compiled functions know, cannot be moved: use a handle "
        "(SINTER_MODULE)",
        other.name());
  take(other);
}

// --- building

void Module::touch() {
  // Of a module that the function being captured has made itself, nobody else knows.
  if (made_in_ != HostEffects::current()) note_single_change("a change of a module's structure");
  version_ = next_version();
}

uint64_t Module::structure_clock() { return clock_of_structures; }

uint64_t Module::structure_version() const {
  // The clock only grows, so a change anywhere below makes the largest stamp larger.
  uint64_t version = hooks_ ? std::max(version_, hooks_->version) : version_;
  for (auto& [name, module] : modules_) version = std::max(version, module->structure_version());
  return version;
}

void Module::check_new_name(const std::string& name) const {
  check(!name.empty(), "{}: a parameter, buffer or module needs a name", this->name());
  check(name.find('.') == std::string::npos, "{}: the name '{}' holds a dot, which separates modules", this->name(),
        name);
  auto taken = [&](auto& slots) {
    return std::any_of(slots.begin(), slots.end(), [&](auto& slot) { return slot.name == name; });
  };
  bool is_module = std::any_of(modules_.begin(), modules_.end(), [&](auto& m) { return m.first == name; });
  check(!taken(parameters_) && !taken(buffers_) && !is_module, "{}: the name '{}' is taken", this->name(), name);
}

Tensor Module::register_parameter(const std::string& name, const Tensor& tensor, bool requires_grad) {
  check_new_name(name);
  if (!tensor.defined()) return tensor;
  check(tensor.is_leaf(), "register_parameter '{}': the tensor is the result of recorded ops; register its detach()",
        name);
  tensor.requires_grad_(requires_grad);
  parameters_.push_back({name, tensor});
  touch();
  return tensor;
}

Tensor Module::register_buffer(const std::string& name, const Tensor& tensor, bool persistent) {
  check_new_name(name);
  if (!tensor.defined()) return tensor;
  buffers_.push_back({name, tensor, persistent});
  touch();
  return tensor;
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  check_new_name(name);
  check(bool(module), "register_module '{}': the module is empty", name);
  modules_.emplace_back(name, std::move(module));
  touch();
}

void Module::set_module(const std::string& name, std::shared_ptr<Module> module) {
  check(bool(module), "replace_module '{}': the module is empty", name);
  for (auto& [its_name, its_module] : modules_) {
    if (its_name != name) continue;
    its_module = std::move(module);
    return touch();
  }
  throw_error(format("replace_module: {} has no module '{}'", this->name(), name));
}

void Module::unregister_module(const std::string& name) {
  auto removed = std::erase_if(modules_, [&](auto& m) { return m.first == name; });
  check(removed == 1, "unregister_module: {} has no module '{}'", this->name(), name);
  touch();
}

void Module::unregister_parameter(const std::string& name) {
  auto removed = std::erase_if(parameters_, [&](auto& slot) { return slot.name == name; });
  check(removed == 1, "unregister_parameter: {} has no parameter '{}'", this->name(), name);
  touch();
}

// --- walking

void Module::walk(const std::string& prefix, const std::function<void(const std::string&, Module&)>& f) {
  f(prefix, *this);
  for (auto& [name, module] : modules_) module->walk(join(prefix, name), f);
}

NamedTensors Module::collect(bool recurse, bool want_buffers) const {
  NamedTensors found;
  std::set<const TensorImpl*> seen;
  auto take = [&](const std::string& prefix, const Module& module) {
    for (auto& slot : want_buffers ? module.buffers_ : module.parameters_)
      if (seen.insert(&slot.tensor.impl()).second) found.emplace_back(join(prefix, slot.name), slot.tensor);
  };
  if (recurse)
    const_cast<Module*>(this)->walk("", take);
  else
    take("", *this);
  return found;
}

static TensorList without_names(const NamedTensors& named) {
  TensorList tensors;
  for (auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

NamedTensors Module::named_parameters(bool recurse) const { return collect(recurse, false); }
NamedTensors Module::named_buffers(bool recurse) const { return collect(recurse, true); }
TensorList Module::parameters(bool recurse) const { return without_names(named_parameters(recurse)); }
TensorList Module::buffers(bool recurse) const { return without_names(named_buffers(recurse)); }

std::vector<std::shared_ptr<Module>> Module::children() const {
  std::vector<std::shared_ptr<Module>> all;
  for (auto& [name, module] : modules_) all.push_back(module);
  return all;
}

OrderedDict<std::string, Module*> Module::named_modules() {
  OrderedDict<std::string, Module*> found;
  std::set<Module*> seen;
  walk("", [&](const std::string& prefix, Module& module) {
    if (seen.insert(&module).second) found.emplace_back(prefix, &module);
  });
  return found;
}

std::vector<Module*> Module::modules(bool include_self) {
  std::vector<Module*> all;
  for (auto& [name, module] : named_modules())
    if (include_self || module != this) all.push_back(module);
  return all;
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (auto& [name, module] : modules_) module->apply(f);
  f(*this);
}

void Module::apply(const std::function<void(const std::string&, Module&)>& f, const std::string& prefix) {
  for (auto& [name, module] : modules_) module->apply(f, join(prefix, name));
  f(prefix, *this);
}

// --- state

void Module::train(bool on) {
  auto set = [this](bool training) {
    if (training_ == training) return;
    training_ = training;
    capture::HostState::clock.fetch_add(1, std::memory_order_relaxed);
  };
  if (HostEffects::current()) {
    note_call();
    perform_on_host("train()", [=] { set(on); }, [=, before = training_] { set(before); });
  } else {
    set(on);
  }
  for (auto& [name, module] : modules_) module->train(on);
}

void Module::zero_grad(bool set_to_none) { autograd::zero_grad(parameters(), set_to_none); }

void Module::requires_grad_(bool requires_grad) {
  for (auto& parameter : parameters()) parameter.requires_grad_(requires_grad);
}

void Module::convert(const std::function<Tensor(const Tensor&)>& f) {
  NoGradGuard no_grad;
  auto convert_one = [&](const Tensor& tensor) {
    Tensor grad = tensor.grad();
    tensor.set_grad({});
    tensor.set_data(f(tensor.detach()));
    if (grad.defined()) tensor.set_grad(f(grad));
  };
  for (auto& parameter : parameters()) convert_one(parameter);
  for (auto& buffer : buffers()) convert_one(buffer);
}

void Module::to(DType dtype, bool) {
  check(is_floating(dtype), "Module::to: {} is no floating-point type; parameters could not keep their gradients",
        dtype);
  convert([&](const Tensor& t) { return t.is_floating_point() ? t.to(dtype) : t; });
}

void Module::to(Device device, bool non_blocking) {
  convert([&](const Tensor& t) { return t.to(TensorOptions(device), non_blocking); });
}

void Module::to(MemoryFormat format) {
  convert([&](const Tensor& t) {
    int64_t rank = format == kChannelsLast3d ? 5 : 4;
    return t.dim() == rank || format == kContiguousFormat ? t.contiguous(format) : t;
  });
}

NamedTensors Module::state_slots() const {
  NamedTensors state;
  const_cast<Module*>(this)->walk("", [&](const std::string& prefix, Module& module) {
    for (auto& slot : module.parameters_) state.emplace_back(join(prefix, slot.name), slot.tensor);
    for (auto& slot : module.buffers_)
      if (slot.persistent) state.emplace_back(join(prefix, slot.name), slot.tensor);
  });
  return state;
}

NamedTensors Module::state_dict() const {
  auto state = state_slots();
  for (auto& [name, tensor] : state) tensor = tensor.detach();
  return state;
}

LoadResult Module::load_state_dict(const NamedTensors& state, const LoadOptions& options) {
  std::map<std::string_view, const Tensor*> given;
  for (auto& [name, tensor] : state) given[name] = &tensor;

  LoadResult result;
  std::string problems;
  std::set<std::string> used;
  std::vector<std::pair<Tensor, const Tensor*>> pairs;
  for (auto& [name, tensor] : state_slots()) {
    auto at = given.find(name);
    if (at == given.end()) {
      result.missing.push_back(name);
      continue;
    }
    used.insert(name);
    const Tensor& source = *at->second;
    if (!source.sizes().same_as(tensor.sizes()))
      problems +=
          format("\n  wrong shape: {} is {} in the module, {} in the state", name, tensor.sizes(), source.sizes());
    pairs.emplace_back(tensor, &source);
  }
  for (auto& [name, tensor] : state)
    if (!used.contains(name)) result.unexpected.push_back(name);
  if (options.strict) {
    for (auto& name : result.missing) problems += "\n  missing from the state: " + name;
    for (auto& name : result.unexpected) problems += "\n  not in the module: " + name;
  }
  check(problems.empty(), "load_state_dict: the state does not fit {}:{}", this->name(), problems);

  NoGradGuard no_grad;
  for (auto& [tensor, source] : pairs) {
    if (!options.assign) {
      tensor.copy_(source->to(tensor.device()));
      continue;
    }
    tensor.set_grad({});
    tensor.set_data(*source);
  }
  return result;
}

void Module::save(const std::string& path) const { save_safetensors(path, state_dict()); }

LoadResult Module::load(const std::string& path, const LoadOptions& options) {
  return load_state_dict(load_safetensors(path), options);
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  throw_error(format("clone: {} cannot be copied: derive {}Impl from nn::Cloneable<{}Impl> in place of nn::Module, and register its "
                     "parameters, buffers and modules in reset()",
                     name(), name(), name()));
}

void Module::take(const Module& other) {
  parameters_ = other.parameters_;
  buffers_ = other.buffers_;
  modules_ = other.modules_;
  name_ = other.name_;
  training_ = other.training_;
  hooks_ = other.hooks_ ? std::make_shared<Hooks>(*other.hooks_) : nullptr;
  touch();
}

// --- hooks

// Adds a hook to one of the lists and gives the handle that takes it out again.
template <class Hook>
HookHandle Module::add_hook(std::map<uint64_t, Hook> Hooks::*list, Hook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  touch();
  uint64_t id = hooks_->next_id++;
  ((*hooks_).*list).emplace(id, std::move(hook));
  hooks_->version = next_version();
  return HookHandle([weak = std::weak_ptr(hooks_), list, id] {
    auto hooks = weak.lock();
    if (!hooks) return;
    note_single_change("removing a hook");
    ((*hooks).*list).erase(id);
    hooks->version = next_version();
  });
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) { return add_hook(&Hooks::before, std::move(hook)); }
HookHandle Module::register_forward_hook(ForwardHook hook) { return add_hook(&Hooks::after, std::move(hook)); }

void Module::run_pre_hooks(TensorList& inputs) {
  size_t count = inputs.size();
  auto hooks = hooks_->before;  // a hook may remove itself
  for (auto& [id, hook] : hooks) hook(*this, inputs);
  check(inputs.size() == count, "{}: a forward pre-hook changed the number of inputs from {} to {}", name(), count,
        inputs.size());
}

void Module::run_hooks(const TensorList& inputs, TensorList& outputs) {
  size_t count = outputs.size();
  auto hooks = hooks_->after;
  for (auto& [id, hook] : hooks) hook(*this, inputs, outputs);
  check(outputs.size() == count, "{}: a forward hook changed the number of outputs from {} to {}", name(), count,
        outputs.size());
}

// --- showing

std::string Module::name() const {
  if (!name_.empty()) return name_;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status),
                                              std::free);
  std::string name = status == 0 ? text.get() : typeid(*this).name();
  if (auto colon = name.rfind("::"); colon != std::string::npos) name.erase(0, colon + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

static void print(std::string& out, const Module& module, const std::string& indent) {
  auto children = module.named_children();
  out += module.name() + "(" + module.extra_repr();
  for (auto& [name, child] : children) {
    out += "\n" + indent + "  (" + name + "): ";
    print(out, *child, indent + "  ");
  }
  if (!children.empty()) out += "\n" + indent;
  out += ")";
}

std::string to_string(const Module& module) {
  std::string text;
  print(text, module, "");
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << to_string(module); }
void Module::pretty_print(std::ostream& out) const { out << *this; }

// --- how parameters are made

namespace {
thread_local TensorOptions scope_options;
thread_local bool scope_initialises = true;
}  // namespace

ParameterScope::ParameterScope(const TensorOptions& options, bool initialise)
    : previous_options_(scope_options), previous_initialise_(scope_initialises) {
  check(is_floating(options.dtype_), "ParameterScope: parameters of {} could not have gradients", options.dtype_);
  scope_options = options;
  scope_initialises = initialise;
}

ParameterScope::~ParameterScope() {
  scope_options = previous_options_;
  scope_initialises = previous_initialise_;
}

TensorOptions parameter_options() {
  return scope_options.over(TensorOptions(get_default_dtype()).device(scope_options.device_));
}
bool initialises_parameters() { return scope_initialises; }
Tensor new_parameter(const Shape& shape) { return empty(shape, parameter_options()); }

}  // namespace sinter::nn
