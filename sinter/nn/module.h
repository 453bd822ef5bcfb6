#pragma once
// Module: a node of a tree of parameters, buffers and other modules, with a `forward` of any signature.
//
//   struct NetImpl : nn::Module {
//     nn::Linear fc{nullptr};
//     NetImpl() { fc = register_module("fc", nn::Linear(4, 8)); }
//     Tensor forward(const Tensor& x) { return relu(fc(x)); }
//   };
//   SINTER_MODULE(Net);        // Net: a shared handle; Net net; net(x); net->parameters();
//
// A module may also be used without a handle: NetImpl net; net.forward(x). Names and order follow PyTorch, so that
// state dicts are exchanged with it. Modules are not copied, since their members are handles on tensors that the tree knows;
// those that are nn::Cloneable are.
//
// nn::call runs forward with the module's hooks, a ModuleHolder is a shared handle that calls.
#include <concepts>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/base/fields.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/function.h"
#include "sinter/capture/options.h"
#include "sinter/io/safetensors.h"
#include "sinter/tensor/tensor.h"

namespace sinter::nn {
class ModuleState;
}

namespace sinter SINTER_API {
namespace nn {

class Module;
namespace detail {
struct HookedCall;
}

// Undoes the registration of a hook. Outlives the module safely; destroying it changes nothing.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, {})();
  }

 private:
  std::function<void()> remove_;
};

// Sees the tensors among the arguments of a call, in order, and may replace them.
using ForwardPreHook = std::function<void(Module& module, TensorList& inputs)>;
// Sees them and the results (a Tensor, a tuple or a list of them), which it may replace.
using ForwardHook = std::function<void(Module& module, const TensorList& inputs, TensorList& outputs)>;

struct LoadOptions {
  bool strict = true;   // a missing or an unexpected name is an Error
  bool assign = false;  // take the tensors themselves, with their dtype and device, instead of copying their values
};
struct LoadResult {
  std::vector<std::string> missing, unexpected;
};

class Module {
 public:
  Module();
  // Called so where it is shown; otherwise by its type.
  explicit Module(std::string name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  // Of one by value on its way into a Sequential; nobody may know it yet: no hook, no captured program, no guarded member.
  Module(Module&& other);

  // --- building; names are not empty, hold no dot and are used once
  // Gives the tensor back, now a leaf that requires a gradient. An undefined one (no bias) is not registered.
  Tensor register_parameter(const std::string& name, const Tensor& tensor, bool requires_grad = true);
  // State that is no parameter; in the state dict when persistent.
  Tensor register_buffer(const std::string& name, const Tensor& tensor, bool persistent = true);
  // A handle or a shared_ptr, given back.
  template <class M>
  M register_module(const std::string& name, const M& module) {
    add_module(name, pointer_of(module));
    return module;
  }
  template <class M>
  M replace_module(const std::string& name, const M& module) {
    set_module(name, pointer_of(module));
    return module;
  }
  void unregister_module(const std::string& name);
  // The tensor itself stays as it is; who holds it goes on using it.
  void unregister_parameter(const std::string& name);

  // --- walking the tree; a tensor or module reached twice is listed once, under its first name
  TensorList parameters(bool recurse = true) const;
  NamedTensors named_parameters(bool recurse = true) const;
  TensorList buffers(bool recurse = true) const;
  NamedTensors named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return modules_; }
  // This module (named "", and left out unless include_self) and all below it.
  std::vector<Module*> modules(bool include_self = true);
  OrderedDict<std::string, Module*> named_modules();
  // Calls `f` on every module, this one last; with its name below this one, where f takes that, too.
  void apply(const std::function<void(Module&)>& f);
  void apply(const std::function<void(const std::string& name, Module&)>& f, const std::string& prefix = "");
  // This module as a Linear, say, by the name of the handle or of the class: null when it is none.
  template <class M>
  auto* as() {
    if constexpr (requires { typename M::Impl; })
      return dynamic_cast<typename M::Impl*>(this);
    else
      return dynamic_cast<M*>(this);
  }
  template <class M>
  auto* as() const {
    const auto* found = const_cast<Module*>(this)->as<M>();
    return found;
  }

  // --- state
  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const {
    if (capture::is_tracing()) [[unlikely]]
      const_cast<Module*>(this)->note_call();
    return training_;
  }
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool requires_grad = true);
  // Conversions keep the identity of every parameter and buffer: who holds one (an optimiser, a tied layer) sees the
  // new values. A dtype concerns floating-point tensors only, a memory format those of 4 (or 5) dimensions.
  virtual void to(DType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  void to(MemoryFormat format);
  virtual void to(Device device, DType dtype, bool = false) {
    to(dtype);
    to(device);
  }

  // Parameters and persistent buffers by name, sharing their memory.
  NamedTensors state_dict() const;
  // Fills the tensors of these names. Nothing is written unless everything fits; the Error lists all missing,
  // unexpected and wrong-shaped names.
  LoadResult load_state_dict(const NamedTensors& state, const LoadOptions& options = {});
  // The state dict as a safetensors file.
  void save(const std::string& path) const;
  LoadResult load(const std::string& path, const LoadOptions& options = {});
  // Into an archive of sinter/serialize.h, and from one.
  template <class Archive>
    requires requires(Archive& archive, const Module& module) { archive.write(module); }
  void save(Archive& archive) const {
    archive.write(*this);
  }
  template <class Archive>
    requires requires(Archive& archive, Module& module) { archive.read(module); }
  void load(Archive& archive) {
    archive.read(*this);
  }
  // Another of the same type with copies of all parameters and buffers, on this device where one is told. Of modules that are
  // nn::Cloneable, as all layers of the library are; of others an Error.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const;

  // --- hooks run around forward when the module is called through a handle or nn::call
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);

  // --- compiling
  // From now on calls of this module (through a handle or nn::call) run captured programs: a region of a larger model.
  void compile(const CompileOptions& options = {}, Where where = Where::current());

  // What captured programs watch of this module and of those inside it.
  std::vector<IntrusivePtr<capture::HostState>> watched();
  // Where a module is known by a word that outlives the process (capture/fingerprint.h); null by default.
  virtual std::shared_ptr<const capture::Fingerprint> fingerprint() { return nullptr; }

  // --- showing: Net( (fc): Linear(in_features=4, out_features=8, bias=true) ) over several lines
  // The type's name without namespace and without a trailing "Impl".
  virtual std::string name() const;
  // What follows the opening parenthesis: "in_features=4, out_features=8".
  virtual std::string extra_repr() const { return ""; }
  void pretty_print(std::ostream& out) const;

  // Changes whenever a parameter, buffer, module or hook of this tree is added, replaced or removed; training flags,
  // dtypes and values take no part. Never the same again after a change.
  uint64_t structure_version() const;
  // Changes whenever the structure of any module of the process does: a cheap first question.
  static uint64_t structure_clock();

 protected:
  // Plain members that forward reads: captured programs are guarded by their bytes. guarded(scale, window);
  template <class... T>
  void guarded(const T&... fields) {
    static_assert((std::is_trivially_copyable_v<T> && ...), "guarded: plain members only (numbers, enums, plain structs)");
    (add_guarded(&fields, sizeof(fields)), ...);
  }
  // Of a handle or a shared_ptr.
  template <class M>
  static std::shared_ptr<Module> pointer_of(const M& module) {
    if constexpr (requires { module.ptr(); })
      return module.ptr();
    else
      return module;
  }

 private:
  friend class ModuleState;
  friend class CloneableBase;
  friend struct detail::HookedCall;
  template <class M, class... Args>
  friend auto call(M& module, Args&&... args);
  struct Hooks;
  struct Slot {
    std::string name;
    Tensor tensor;
    bool persistent = true;
  };

  // Takes the registered members, name, flag and hooks of another; what captured programs and compile() know of it stays there.
  void take(const Module& other);
  void add_module(const std::string& name, std::shared_ptr<Module> module);
  void set_module(const std::string& name, std::shared_ptr<Module> module);
  void check_new_name(const std::string& name) const;
  void add_guarded(const void* field, size_t bytes);
  ModuleState& state();
  // Tells the capture under way that its program depends on this module.
  void note_call();
  void touch();
  template <class Hook>
  HookHandle add_hook(std::map<uint64_t, Hook> Hooks::*list, Hook hook);
  void run_pre_hooks(TensorList& inputs);
  void run_hooks(const TensorList& inputs, TensorList& outputs);
  void walk(const std::string& prefix, const std::function<void(const std::string& prefix, Module&)>& f);
  NamedTensors collect(bool recurse, bool want_buffers) const;
  NamedTensors state_slots() const;
  void convert(const std::function<Tensor(const Tensor&)>& f);

  std::vector<Slot> parameters_, buffers_;
  OrderedDict<std::string, std::shared_ptr<Module>> modules_;
  std::string name_;  // empty unless given
  std::shared_ptr<Hooks> hooks_;  // null while there are none
  uint64_t version_ = 0;
  bool training_ = true;
  const void* const made_in_;  // the capture, if any, whose function has made it
  IntrusivePtr<capture::HostState> state_;     // null until a capture or a guarded member needs it
  std::shared_ptr<capture::Function> region_;  // null unless compiled in place
};

std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

// --- modules that clone() copies: those that register their parameters, buffers and modules in reset()
//
//   struct NetImpl : nn::Cloneable<NetImpl> {
//     NetImpl(int64_t width) : width(width) { reset(); }
//     void reset() override { fc = register_module("fc", nn::Linear(width, width)); }
//     int64_t width;
//     nn::Linear fc{nullptr};
//   };
//   auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());

// What Cloneable does without knowing the type; also the base of classes that several layers share. By its C++ copy a module
// shares parameters, buffers and modules with the original, and has its hooks; compile() in place is not copied.
class CloneableBase : public Module {
 public:
  using Module::Module;
  CloneableBase() = default;
  CloneableBase(const CloneableBase& other) : Module() { take(other); }
  CloneableBase& operator=(const CloneableBase& other) {
    take(other);
    return *this;
  }
  // Registers everything anew. Called by the constructor, and on copies, in which plain members are those of the original.
  virtual void reset() {}
  // Reset and then filled, module by module: parameters keep whether they require a gradient, gradients are not copied, and what
  // is registered twice becomes two. Draws nothing for the layers of the library.
  std::shared_ptr<Module> clone(const std::optional<Device>& device = {}) const override;

 protected:
  // Gives a copy that has nothing registered yet its members, by default by reset(); what containers do otherwise.
  virtual void clone_members(CloneableBase& copy, const std::optional<Device>& device) const;

 private:
  void fill(CloneableBase& copy, const std::optional<Device>& device) const;
  // By C++, and the size of both.
  virtual std::pair<CloneableBase*, size_t> copied() const = 0;
  virtual void assign(const CloneableBase& same) = 0;
};

template <class Derived, class Base = CloneableBase>
class Cloneable : public Base {
 public:
  using Base::Base;

 private:
  std::pair<CloneableBase*, size_t> copied() const final {
    return {new Derived(static_cast<const Derived&>(*this)), sizeof(Derived)};
  }
  void assign(const CloneableBase& same) final { static_cast<Derived&>(*this) = static_cast<const Derived&>(same); }
};

namespace detail {
// A copy of a parameter or buffer, on the device where one is told.
Tensor cloned(const Tensor& tensor, const std::optional<Device>& device);
// A handle on a copy of its module; an empty one stays empty.
template <class Holder>
  requires requires(const Holder& holder) { holder.ptr(); }
Holder cloned(const Holder& holder, const std::optional<Device>& device) {
  if (holder.is_empty()) return holder;
  return Holder(std::static_pointer_cast<std::remove_cvref_t<decltype(*holder)>>(holder->clone(device)));
}
}  // namespace detail

// While alive, layers made on this thread create their parameters with these options; `initialise` false leaves their
// memory as it comes, for a checkpoint to fill.
class ParameterScope {
 public:
  explicit ParameterScope(const TensorOptions& options, bool initialise = true);
  ~ParameterScope();
  ParameterScope(const ParameterScope&) = delete;

 private:
  TensorOptions previous_options_;
  bool previous_initialise_;
};
// The options in force, the default dtype on the CPU at first; whether layers fill their new parameters.
TensorOptions parameter_options();
bool initialises_parameters();
// Memory for a parameter, not yet filled.
Tensor new_parameter(const Shape& shape);

}  // namespace nn
}  // namespace sinter

// --- how a module is called

namespace sinter SINTER_API {
namespace nn {

namespace detail {

template <class T>
concept TensorLike = std::same_as<std::remove_cvref_t<T>, Tensor> || std::same_as<std::remove_cvref_t<T>, TensorArg>;

// An argument as hooks leave it: tensors by value, the rest as it came.
template <class T>
using Hooked = std::conditional_t<TensorLike<T>, std::remove_cvref_t<T>, T>;

template <class T>
void collect(TensorList& inputs, const T& arg) {
  if constexpr (std::same_as<T, Tensor>)
    inputs.push_back(arg);
  else if constexpr (std::same_as<T, TensorArg>)
    inputs.push_back(arg.tensor());
}

template <class T>
Hooked<T&&> hooked(T&& arg, const TensorList& inputs, size_t& next) {
  if constexpr (std::same_as<std::remove_cvref_t<T>, Tensor>)
    return inputs[next++];
  else if constexpr (std::same_as<std::remove_cvref_t<T>, TensorArg>)
    return TensorArg(inputs[next++], arg.where());
  else
    return std::forward<T>(arg);
}

template <class... T>
concept AllTensors = (std::same_as<T, Tensor> && ...);

// The results as a list for the hooks, and back.
template <class F>
void visit_results(Tensor& result, F run) {
  TensorList list{result};
  run(list);
  result = list[0];
}
template <class F>
void visit_results(TensorList& result, F run) {
  run(result);
}
template <AllTensors... T, class F>
void visit_results(std::tuple<T...>& result, F run) {
  std::apply(
      [&](auto&... tensors) {
        TensorList list{tensors...};
        run(list);
        size_t i = 0;
        ((tensors = list[i++]), ...);
      },
      result);
}
template <class R, class F>
void visit_results(R&, F run) {
  TensorList none;
  run(none);
}

// Whether forward takes its first argument as a TensorArg.
template <class Impl, class... Args>
struct TakesTensorArg : std::false_type {};
template <class Impl, std::convertible_to<TensorArg> First, class... Rest>
  requires requires(Impl& m, const TensorArg& x, Rest&&... rest) { m.forward(x, std::forward<Rest>(rest)...); }
struct TakesTensorArg<Impl, First, Rest...> : std::true_type {};

}  // namespace detail

namespace detail {

// module.forward(args...) between the module's hooks.
struct HookedCall {
  // The program being captured, if any, depends on the module.
  static void note(Module& module) { module.note_call(); }

  template <class M, class... Args>
  static auto run(M& module, Args&&... args) {
    Module& base = module;
    if (!base.hooks_) [[likely]]
      return module.forward(std::forward<Args>(args)...);
    TensorList inputs;
    (collect(inputs, args), ...);
    base.run_pre_hooks(inputs);
    size_t next = 0;
    // Braces fix the order of evaluation.
    std::tuple<Hooked<Args&&>...> changed{hooked(std::forward<Args>(args), inputs, next)...};
    auto result = std::apply(
        [&](auto&&... all) { return module.forward(std::forward<decltype(all)>(all)...); }, std::move(changed));
    visit_results(result, [&](TensorList& outputs) { base.run_hooks(inputs, outputs); });
    return result;
  }
};

}  // namespace detail

// Calls the module: its forward between its hooks (which neither add nor remove inputs or outputs), as a captured program
// where the module is compiled in place.
template <class M, class... Args>
auto call(M& module, Args&&... args) {
  Module& base = module;
  if (capture::is_tracing()) [[unlikely]] {
    base.note_call();
  } else if (base.region_) [[unlikely]] {
    if constexpr ((capture::CapturableArgument<Args> && ...) &&
                  requires { module.forward(std::as_const(args)...); }) {
      auto forward = [&module](const auto&... given) {
        if (capture::is_tracing()) static_cast<Module&>(module).note_call();
        return detail::HookedCall::run(module, given...);
      };
      using R = decltype(detail::HookedCall::run(module, std::as_const(args)...));
      if constexpr (capture::CapturableResult<R>)
        return capture::call_compiled<std::decay_t<Args>...>(*base.region_, forward, args...);
    }
    throw_error(base.name() + ": cannot be compiled in place, since an argument or result of its forward cannot be followed "
                              "(a pointer, a reference that is not const, a struct without SINTER_FIELDS)");
  }
  return detail::HookedCall::run(module, std::forward<Args>(args)...);
}

// A shared handle on a module. Copies share it; one made with nullptr is empty until assigned.
template <class Impl>
class ModuleHolder {
 public:
  ModuleHolder()
    requires std::default_initializable<Impl>
      : impl_(std::make_shared<Impl>()) {}
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <class First, class... Rest>
    requires(std::constructible_from<Impl, First, Rest...> &&
             !std::derived_from<std::remove_cvref_t<First>, ModuleHolder>)
  explicit ModuleHolder(First&& first, Rest&&... rest)
      // Not make_shared: what is wrong with the arguments would be told through five of its own functions.
      : impl_(new Impl(std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  template <class First, class... Rest>
    requires(!std::constructible_from<Impl, First, Rest...> && !std::convertible_to<First, std::shared_ptr<Impl>> &&
             !std::derived_from<std::remove_cvref_t<First>, ModuleHolder>)
  explicit ModuleHolder(First&&, Rest&&...) {
    static_assert(sinter::detail::never<First>,
                  "nn: no constructor of this module takes these arguments: see those of the class of its name with Impl behind");
  }

  bool is_empty() const { return !impl_; }
  explicit operator bool() const { return bool(impl_); }
  const std::shared_ptr<Impl>& ptr() const { return impl_; }
  Impl* get() const { return &checked(); }
  Impl& operator*() const { return checked(); }
  Impl* operator->() const { return &checked(); }

  // Of those that hold modules: net[0].
  template <class Key>
    requires requires(Impl& impl, const Key& key) { impl[key]; }
  decltype(auto) operator[](const Key& key) const {
    return checked()[key];
  }

  template <class... Args>
    requires(!detail::TakesTensorArg<Impl, Args...>::value)
  auto operator()(Args&&... args) const {
    return call(checked(), std::forward<Args>(args)...);
  }
  // The library's own layers learn the line of the call, for their errors: the conversion to TensorArg is the caller's.
  template <class... Rest>
    requires(detail::TakesTensorArg<Impl, const TensorArg&, Rest...>::value)
  auto operator()(const TensorArg& x, Rest&&... rest) const {
    return call(checked(), x, std::forward<Rest>(rest)...);
  }

 private:
  Impl& checked() const {
    if (!impl_) [[unlikely]]
      throw_error("nn: this module handle is empty: it was made with nullptr and never assigned");
    return *impl_;
  }

  std::shared_ptr<Impl> impl_;
};

template <class Impl>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Impl>& holder) {
  return out << static_cast<const Module&>(*holder);
}

}  // namespace nn
}  // namespace sinter

namespace sinter SINTER_API {

// --- compile() of a module that is no handle: a shared_ptr, which is kept, or a reference, which must outlive the result

namespace nn::detail {

// Options with the module's word for itself.
template <class M>
CompileOptions with_fingerprint(M& module, CompileOptions options) {
  if (!options.fingerprint) options.fingerprint = [&module] { return module.fingerprint(); };
  return options;
}

template <class M>
struct CallModule {
  std::shared_ptr<M> kept;  // null for a reference
  M* module;
  template <class... Args>
  auto operator()(Args&&... args) const {
    return call(*module, std::forward<Args>(args)...);
  }
};

// A member function of a module other than through its handle.
template <class D, class M, class R, class... P>
struct ModuleMember {
  M member;
  D* object;
  R operator()(P... arguments) const {
    HookedCall::note(const_cast<std::remove_const_t<D>&>(*object));
    return (object->*member)(static_cast<P&&>(arguments)...);
  }
};

}  // namespace nn::detail

// compile(&NetImpl::encode, &*net)
template <class C, class R, class... P, std::derived_from<C> D>
  requires std::derived_from<D, nn::Module>
auto compile(R (C::*member)(P...), D* object, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where);
  return compile(nn::detail::ModuleMember<D, R (C::*)(P...), R, P...>{member, object}, options, where);
}
template <class C, class R, class... P, std::derived_from<C> D>
  requires std::derived_from<D, nn::Module>
auto compile(R (C::*member)(P...) const, const D* object, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where);
  return compile(nn::detail::ModuleMember<const D, R (C::*)(P...) const, R, P...>{member, object}, options, where);
}

template <std::derived_from<nn::Module> M>
auto compile(const std::shared_ptr<M>& module, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  check(module != nullptr, "compile: the module is null");
  return compile(nn::detail::CallModule<M>{module, module.get()}, nn::detail::with_fingerprint(*module, options), where);
}

template <std::derived_from<nn::Module> M>
auto compile(M& module, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  return compile(nn::detail::CallModule<M>{nullptr, &module}, nn::detail::with_fingerprint(module, options), where);
}

}  // namespace sinter

// SINTER_MODULE(Net): the handle Net of the module NetImpl.
#define SINTER_MODULE(Name)                                     \
  class Name : public ::sinter::nn::ModuleHolder<Name##Impl> {  \
   public:                                                      \
    using ::sinter::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl = Name##Impl;                                    \
  }
