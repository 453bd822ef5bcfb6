#pragma once
// compile() of a module that is no handle: a shared_ptr, which is kept, or a reference, which must outlive the result.
#include "sinter/nn/module.h"

namespace sinter {

namespace nn::detail {

// Options with the module's word for itself.
template <class M>
CompileOptions vouched_by(M& module, CompileOptions options) {
  if (!options.vouched) options.vouched = [&module] { return module.vouch(); };
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
  return compile(nn::detail::CallModule<M>{module, module.get()}, nn::detail::vouched_by(*module, options), where);
}

template <std::derived_from<nn::Module> M>
auto compile(M& module, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  return compile(nn::detail::CallModule<M>{nullptr, &module}, nn::detail::vouched_by(module, options), where);
}

}  // namespace sinter
