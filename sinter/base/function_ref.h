#pragma once
// FunctionRef<R(Args...)>: a callable passed by reference, two words, no allocation. For parameters only: it must not
// outlive the callable it was made from (a function or function pointer is held by value, so that one may).
#include <memory>
#include <type_traits>
#include <utility>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && !std::is_member_pointer_v<std::decay_t<F>> &&
             std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& f) noexcept {
    if constexpr (std::is_pointer_v<std::decay_t<F>>) {
      target_.function = reinterpret_cast<void (*)()>(+f);
      call_ = [](Target t, Args... args) -> R {
        return R(reinterpret_cast<std::decay_t<F>>(t.function)(std::forward<Args>(args)...));
      };
    } else {
      target_.object = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
      call_ = [](Target t, Args... args) -> R {
        return R((*static_cast<std::remove_reference_t<F>*>(t.object))(std::forward<Args>(args)...));
      };
    }
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };
  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace sinter
