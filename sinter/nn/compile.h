#pragma once
// compile() of a module that is no handle: a shared_ptr, which is kept, or a reference, which must outlive the result.
#include "sinter/nn/module.h"

namespace sinter {

namespace nn::detail {

template <class M>
struct CallModule {
  std::shared_ptr<M> kept;  // null for a reference
  M* module;
  template <class... Args>
  auto operator()(Args&&... args) const {
    return call(*module, std::forward<Args>(args)...);
  }
};

}  // namespace nn::detail

template <std::derived_from<nn::Module> M>
auto compile(const std::shared_ptr<M>& module, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  check(module != nullptr, "compile: the module is null");
  return compile(nn::detail::CallModule<M>{module, module.get()}, options, where);
}

template <std::derived_from<nn::Module> M>
auto compile(M& module, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  return compile(nn::detail::CallModule<M>{nullptr, &module}, options, where);
}

}  // namespace sinter
