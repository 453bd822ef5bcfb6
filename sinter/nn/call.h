#pragma once
// How a module is called: nn::call runs forward with the module's hooks, a ModuleHolder is a shared handle that calls.
#include <concepts>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/capture/compile.h"
#include "sinter/nn/module.h"

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
      : impl_(std::make_shared<Impl>(std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  bool is_empty() const { return !impl_; }
  explicit operator bool() const { return bool(impl_); }
  const std::shared_ptr<Impl>& ptr() const { return impl_; }
  Impl& operator*() const { return checked(); }
  Impl* operator->() const { return &checked(); }

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
