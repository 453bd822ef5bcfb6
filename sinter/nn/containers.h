#pragma once
// Modules made of modules: Sequential calls them one after another, ModuleList and ModuleDict only hold
// them (ModuleListOf those of one type), ParameterList and ParameterDict hold parameters.
#include <concepts>
#include <initializer_list>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace nn {

// A plain function of one tensor as a module, with what else it takes: Functional(leaky_relu, 0.2).
struct FunctionalImpl : Cloneable<FunctionalImpl> {
  explicit FunctionalImpl(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {}
  template <class F, class... Rest>
    requires(sizeof...(Rest) > 0 && std::is_invocable_r_v<Tensor, F, const Tensor&, Rest...>)
  explicit FunctionalImpl(F function, Rest... rest)
      : function_([=](const Tensor& x) { return function(x, rest...); }) {}
  Tensor forward(const Tensor& x) { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};
SINTER_MODULE(Functional);

namespace detail {
template <class M>
concept MapsOneTensor = requires(M& m, const Tensor& x) {
  { m.forward(x) } -> std::same_as<Tensor>;
};
template <class M>
concept Handle = requires(const M& m) {
  { m.ptr() } -> std::convertible_to<std::shared_ptr<Module>>;
};
}  // namespace detail

// Any module that takes one tensor and gives one: made from a handle, a shared_ptr or a plain function.
class AnyModule {
 public:
  AnyModule() = default;
  template <detail::Handle M>
  AnyModule(const M& holder) : AnyModule(holder.ptr()) {}
  template <std::derived_from<Module> M>
    requires(!detail::MapsOneTensor<M>)
  AnyModule(const std::shared_ptr<M>&) {
    static_assert(sinter::detail::never<M>,
                  "nn: a module of a Sequential takes one tensor and gives one: Tensor forward(const Tensor&); call others in the "
                  "forward of a module of your own");
  }
  template <std::derived_from<Module> M>
    requires detail::MapsOneTensor<M>
  AnyModule(const std::shared_ptr<M>& module)
      : module_(module),
        call_([m = module.get()](const Tensor& x) { return nn::call(*m, x); }),
        again_([](const std::shared_ptr<Module>& same) { return AnyModule(std::static_pointer_cast<M>(same)); }) {
    check(bool(module), "nn: an empty module handle cannot be called");
  }
  // A module by value, which moves in.
  template <std::derived_from<Module> M>
    requires detail::MapsOneTensor<M>
  AnyModule(M&& module) : AnyModule(std::make_shared<M>(std::move(module))) {}
  template <class F>
    requires(!detail::Handle<F> && std::is_invocable_r_v<Tensor, F, const Tensor&>)
  AnyModule(F function) : AnyModule(std::make_shared<FunctionalImpl>(std::move(function))) {}

  bool is_empty() const { return !module_; }
  const std::shared_ptr<Module>& ptr() const { return module_; }
  // Of a copy of the module.
  AnyModule clone(const std::optional<Device>& device = {}) const { return module_ ? again_(module_->clone(device)) : AnyModule(); }
  // As a Linear, say; an Error when it is none.
  template <class M>
  auto& get() const {
    check(bool(module_), "nn::AnyModule: it holds no module");
    auto* module = module_->as<M>();
    check(module, "nn::AnyModule: it holds a {}, not a module of the type asked for", module_->name());
    return *module;
  }
  Tensor operator()(const Tensor& x) const {
    check(bool(module_), "nn::AnyModule: it holds no module");
    return call_(x);
  }
  template <std::same_as<Tensor> R = Tensor>
  R forward(const Tensor& x) const {
    return (*this)(x);
  }

 private:
  std::shared_ptr<Module> module_;
  std::function<Tensor(const Tensor&)> call_;
  AnyModule (*again_)(const std::shared_ptr<Module>& same) = nullptr;  // of another module of that type
};

namespace detail {

// What containers of modules of any type have in common: walking over them, and module i as the type it has,
// list->at<LinearImpl>(0).
template <class Self, class Item>
class ModuleSequence : public CloneableBase {
 public:
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  std::shared_ptr<Module> ptr(size_t i) const { return pointer(checked(i)); }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  template <class M = Module>
  auto& at(size_t i) const {
    auto* module = ptr(i)->template as<M>();
    check(module, "nn::{}: module {} is a {}, not of the type asked for", name(), i, ptr(i)->name());
    return *module;
  }
  template <class M>
  std::shared_ptr<M> ptr(size_t i) const {
    return std::shared_ptr<M>(ptr(i), &at<M>(i));
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  // The modules of another container, or of a vector of handles.
  template <class Container>
  void extend(const Container& container) {
    for (auto& module : container) static_cast<Self&>(*this).push_back(module);
  }

 protected:
  static const std::shared_ptr<Module>& pointer(const std::shared_ptr<Module>& item) { return item; }
  static const std::shared_ptr<Module>& pointer(const AnyModule& item) { return item.ptr(); }
  const Item& checked(size_t i) const {
    check(i < size(), "nn::{}: no module {} among {}", name(), i, size());
    return items_[i];
  }

  std::vector<Item> items_;
};

}  // namespace detail

// A module and its name, for a Sequential.
struct NamedAnyModule {
  std::string name;
  AnyModule module;
  template <class M>
    requires std::convertible_to<M, AnyModule>
  NamedAnyModule(std::string name, const M& module) : name(std::move(name)), module(module) {}
};

// Sequential(Linear(4, 8), ReLU(), Linear(8, 2)): each gets what the one before gave. Named 0, 1, … unless told.
class SequentialImpl : public Cloneable<SequentialImpl, detail::ModuleSequence<SequentialImpl, AnyModule>> {
 public:
  SequentialImpl() = default;
  template <class... M>
    requires(sizeof...(M) > 0 && !(std::same_as<std::remove_cvref_t<M>, SequentialImpl> || ...) &&
             (std::convertible_to<M, AnyModule> && ...))
  explicit SequentialImpl(M&&... modules) {
    (push_back(AnyModule(std::forward<M>(modules))), ...);
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (auto& module : modules) push_back(module.name, module.module);
  }

  void push_back(const AnyModule& module) { push_back(std::to_string(size()), module); }
  void push_back(const std::string& name, const AnyModule& module) {
    register_module(name, module);
    items_.push_back(module);
  }

  Tensor forward(const TensorArg& x) {
    UserPosition here(x.where(), "nn::Sequential");
    Tensor y = x.tensor();
    for (auto& module : items_) y = module(y);
    return y;
  }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    auto& own = static_cast<SequentialImpl&>(copy);
    own.items_.clear();
    const auto names = named_children().keys();
    for (size_t i = 0; i < size(); ++i) own.push_back(names[i], items_[i].clone(device));
  }
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  // Sequential({{"fc", Linear(4, 8)}, {"relu", ReLU()}}).
  Sequential(std::initializer_list<NamedAnyModule> modules) : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

// Modules by number, of any type: ModuleList list(Linear(4, 4), ReLU()); list->push_back(Linear(4, 2));
//   for (auto& module : *list) if (auto* linear = module->as<Linear>()) x = linear->forward(x);
class ModuleListImpl : public Cloneable<ModuleListImpl, detail::ModuleSequence<ModuleListImpl, std::shared_ptr<Module>>> {
 public:
  ModuleListImpl() = default;
  template <class... M>
    requires(sizeof...(M) > 0)
  explicit ModuleListImpl(const M&... modules) {
    (push_back(modules), ...);
  }
  template <class M>
  void push_back(const M& module) {
    items_.push_back(pointer_of(register_module(std::to_string(size()), module)));
  }
  // In front of module i.
  template <class M>
  void insert(size_t i, const M& module) {
    check(i <= size(), "nn::ModuleList: no place {} among {}", i, size());
    items_.insert(items_.begin() + std::ptrdiff_t(i), pointer_of(module));
    for (size_t j = 0; j + 1 < size(); ++j) unregister_module(std::to_string(j));
    for (size_t j = 0; j < size(); ++j) register_module(std::to_string(j), items_[j]);
  }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    auto& own = static_cast<ModuleListImpl&>(copy);
    own.items_.clear();
    for (auto& module : items_) own.push_back(module->clone(device));
  }
};
SINTER_MODULE(ModuleList);

// Modules of one type by number:
//   ModuleListOf<Block> blocks; blocks->push_back(Block(8)); for (auto& block : *blocks) x = block(x);
template <class M>
class ModuleListOfImpl : public Cloneable<ModuleListOfImpl<M>> {
 public:
  ModuleListOfImpl() = default;
  explicit ModuleListOfImpl(const std::vector<M>& modules) {
    for (auto& module : modules) push_back(module);
  }

  void push_back(const M& module) { items_.push_back(this->register_module(std::to_string(size()), module)); }
  size_t size() const { return items_.size(); }
  const M& operator[](size_t i) const {
    check(i < size(), "nn::ModuleList: no module {} among {}", i, size());
    return items_[i];
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::string name() const override { return "ModuleList"; }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    auto& own = static_cast<ModuleListOfImpl&>(copy);
    own.items_.clear();
    for (auto& module : items_) own.push_back(detail::cloned(module, device));
  }

 private:
  std::vector<M> items_;
};

template <class M>
class ModuleListOf : public ModuleHolder<ModuleListOfImpl<M>> {
 public:
  using ModuleHolder<ModuleListOfImpl<M>>::ModuleHolder;
};

// Modules by name, of any type, in the order of insertion.
class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Items = OrderedDict<std::string, std::shared_ptr<Module>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const Items& modules) { update(modules); }

  template <class M>
  void insert(const std::string& name, const M& module) {
    register_module(name, module);
  }
  // Modules of names that are there take the place of those; others come behind.
  template <class Modules>
  void update(const Modules& modules) {
    for (auto& [name, module] : modules) contains(name) ? void(replace_module(name, module)) : insert(name, module);
  }
  std::shared_ptr<Module> operator[](const std::string& name) const {
    Items all = items();
    auto* found = all.find(name);
    check(found, "nn::ModuleDict: no module '{}'", name);
    return *found;
  }
  template <class M = Module>
  auto& at(const std::string& name) const {
    auto* module = (*this)[name]->template as<M>();
    check(module, "nn::ModuleDict: '{}' is a {}, not of the type asked for", name, (*this)[name]->name());
    return *module;
  }
  std::shared_ptr<Module> pop(const std::string& name) {
    auto module = (*this)[name];
    unregister_module(name);
    return module;
  }
  void clear() {
    for (auto& name : keys()) unregister_module(name);
  }
  Items items() const { return named_children(); }
  std::vector<std::string> keys() const { return items().keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children(); }
  size_t size() const { return children().size(); }
  bool empty() const { return size() == 0; }
  bool contains(const std::string& name) const { return items().contains(name); }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    for (auto& [name, module] : items()) static_cast<ModuleDictImpl&>(copy).insert(name, module->clone(device));
  }
};
class ModuleDict : public ModuleHolder<ModuleDictImpl> {
 public:
  using ModuleHolder<ModuleDictImpl>::ModuleHolder;
  using Impl = ModuleDictImpl;
};

// Parameters by number: ParameterList list(a, b); list->append(c); list[0].
class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <std::convertible_to<Tensor>... T>
    requires(sizeof...(T) > 0)
  explicit ParameterListImpl(const T&... tensors) {
    (append(tensors), ...);
  }

  void append(const Tensor& tensor) {
    items_.push_back(register_parameter(std::to_string(size()), tensor));
  }
  void extend(const TensorList& tensors) {
    for (auto& tensor : tensors) append(tensor);
  }
  size_t size() const { return items_.size(); }
  const Tensor& operator[](size_t i) const {
    check(i < size(), "nn::ParameterList: no parameter {} among {}", i, size());
    return items_[i];
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    auto& own = static_cast<ParameterListImpl&>(copy);
    own.items_.clear();
    for (auto& tensor : items_) {
      own.append(detail::cloned(tensor, device));
      own.items_.back().requires_grad_(tensor.requires_grad());
    }
  }

 private:
  TensorList items_;
};
SINTER_MODULE(ParameterList);

// Parameters by name, in the order of insertion.
class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  void insert(const std::string& name, const Tensor& tensor) {
    items_.emplace_back(name, register_parameter(name, tensor));
  }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  bool contains(const std::string& name) const { return items_.contains(name); }
  const Tensor& operator[](const std::string& name) const {
    auto* tensor = items_.find(name);
    check(tensor, "nn::ParameterDict: no parameter '{}'", name);
    return *tensor;
  }
  const Tensor& get(const std::string& name) const { return (*this)[name]; }
  std::vector<std::string> keys() const { return items_.keys(); }
  TensorList values() const { return items_.values(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override {
    auto& own = static_cast<ParameterDictImpl&>(copy);
    own.items_ = {};
    for (auto& [name, tensor] : items_) {
      own.insert(name, detail::cloned(tensor, device));
      own[name].requires_grad_(tensor.requires_grad());
    }
  }

 private:
  NamedTensors items_;
};
SINTER_MODULE(ParameterDict);

}  // namespace nn
}  // namespace sinter
