#pragma once
// Modules made of modules: Sequential calls them one after another, ModuleList and ModuleDict only hold
// them, ParameterList and ParameterDict hold parameters.
#include <algorithm>
#include <concepts>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace nn {

// A plain function of one tensor as a module.
struct FunctionalImpl : Module {
  explicit FunctionalImpl(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {}
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
      : module_(module), call_([m = module.get()](const Tensor& x) { return nn::call(*m, x); }) {
    check(bool(module), "nn: an empty module handle cannot be called");
  }
  template <class F>
    requires(!detail::Handle<F> && std::is_invocable_r_v<Tensor, F, const Tensor&>)
  AnyModule(F function) : AnyModule(std::make_shared<FunctionalImpl>(std::move(function))) {}

  const std::shared_ptr<Module>& ptr() const { return module_; }
  Tensor operator()(const Tensor& x) const { return call_(x); }

 private:
  std::shared_ptr<Module> module_;
  std::function<Tensor(const Tensor&)> call_;
};

// Sequential(Linear(4, 8), ReLU(), Linear(8, 2)): each gets what the one before gave. Named 0, 1, … unless told.
class SequentialImpl : public Module {
 public:
  SequentialImpl() = default;
  template <class... M>
    requires(sizeof...(M) > 0 && (std::convertible_to<M, AnyModule> && ...))
  explicit SequentialImpl(M&&... modules) {
    (push_back(AnyModule(std::forward<M>(modules))), ...);
  }

  void push_back(const AnyModule& module) { push_back(std::to_string(size()), module); }
  void push_back(const std::string& name, const AnyModule& module) {
    register_module(name, module);
    steps_.push_back(module);
  }
  size_t size() const { return steps_.size(); }
  // Module i as the type it has: seq->at<LinearImpl>(0).
  template <class M = Module>
  M& at(size_t i) const {
    check(i < size(), "nn::Sequential: no module {} among {}", i, size());
    M* module = dynamic_cast<M*>(steps_[i].ptr().get());
    check(module, "nn::Sequential: module {} is a {}, not of the type asked for", i, steps_[i].ptr()->name());
    return *module;
  }

  Tensor forward(const TensorArg& x) {
    UserPosition here(x.where(), "nn::Sequential");
    Tensor y = x.tensor();
    for (auto& step : steps_) y = step(y);
    return y;
  }

 private:
  std::vector<AnyModule> steps_;
};
SINTER_MODULE(Sequential);

// Modules by number, of one type or any that maps a tensor to a tensor:
//   ModuleList<Block> blocks; blocks->push_back(Block(8)); for (auto& block : *blocks) x = block(x);
template <class M>
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() = default;
  explicit ModuleListImpl(const std::vector<M>& modules) {
    for (auto& module : modules) push_back(module);
  }

  void push_back(const M& module) { items_.push_back(register_module(std::to_string(size()), module)); }
  size_t size() const { return items_.size(); }
  const M& operator[](size_t i) const {
    check(i < size(), "nn::ModuleList: no module {} among {}", i, size());
    return items_[i];
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::string name() const override { return "ModuleList"; }

 private:
  std::vector<M> items_;
};

template <class M = AnyModule>
class ModuleList : public ModuleHolder<ModuleListImpl<M>> {
 public:
  using ModuleHolder<ModuleListImpl<M>>::ModuleHolder;
  const M& operator[](size_t i) const { return (**this)[i]; }
};

// Modules by name, in the order of insertion.
template <class M>
class ModuleDictImpl : public Module {
 public:
  void insert(const std::string& name, const M& module) {
    items_.emplace_back(name, this->register_module(name, module));
  }
  size_t size() const { return items_.size(); }
  bool contains(const std::string& name) const {
    return std::any_of(items_.begin(), items_.end(), [&](auto& item) { return item.first == name; });
  }
  const M& operator[](const std::string& name) const {
    for (auto& [its_name, module] : items_)
      if (its_name == name) return module;
    throw_error(format("nn::ModuleDict: no module '{}'", name));
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::string name() const override { return "ModuleDict"; }

 private:
  std::vector<std::pair<std::string, M>> items_;
};

template <class M = AnyModule>
class ModuleDict : public ModuleHolder<ModuleDictImpl<M>> {
 public:
  using ModuleHolder<ModuleDictImpl<M>>::ModuleHolder;
  const M& operator[](const std::string& name) const { return (**this)[name]; }
};

// Parameters by number: ParameterList list(a, b); list->append(c); list[0].
class ParameterListImpl : public Module {
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

 private:
  TensorList items_;
};
class ParameterList : public ModuleHolder<ParameterListImpl> {
 public:
  using ModuleHolder<ParameterListImpl>::ModuleHolder;
  const Tensor& operator[](size_t i) const { return (**this)[i]; }
};

// Parameters by name, in the order of insertion.
class ParameterDictImpl : public Module {
 public:
  void insert(const std::string& name, const Tensor& tensor) {
    items_.emplace_back(name, register_parameter(name, tensor));
  }
  size_t size() const { return items_.size(); }
  bool contains(const std::string& name) const {
    return std::any_of(items_.begin(), items_.end(), [&](auto& item) { return item.first == name; });
  }
  const Tensor& operator[](const std::string& name) const {
    for (auto& [its_name, tensor] : items_)
      if (its_name == name) return tensor;
    throw_error(format("nn::ParameterDict: no parameter '{}'", name));
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> items_;
};
class ParameterDict : public ModuleHolder<ParameterDictImpl> {
 public:
  using ModuleHolder<ParameterDictImpl>::ModuleHolder;
  const Tensor& operator[](const std::string& name) const { return (**this)[name]; }
};

}  // namespace nn
}  // namespace sinter
