#pragma once
// compile(): a callable of the same signature that runs a captured, optimised program.
//
//   auto f = compile([](const Tensor& x, const Tensor& w) { return gelu(matmul(x, w)) + x; });
//   Tensor y = f(x, w);         // captured at the first call, run from then on
//
// The function itself runs only when it is captured: what it does beside tensors (printing, counting) happens then. See
// docs/guide.md for what is guarded and what is not.
#include "sinter/base/api.h"
#include "sinter/capture/function.h"
#include "sinter/capture/leaves.h"

namespace sinter SINTER_API {

namespace capture {

// One call through a compiled function.
template <class... Stored, class F>
auto call_compiled(Function& function, F& f, const Stored&... arguments) {
  using Invocation = InvocationOf<F, Stored...>;
  using R = typename Invocation::R;
  Invocation invocation(f, arguments...);
  Results results;
  auto eagerly = [&] {
    std::tuple<Stored...> copy(arguments...);
    return std::apply([&](const auto&... argument) -> R { return std::invoke(f, argument...); }, copy);
  };
  if (!function.call(invocation, results)) return eagerly();
  if constexpr (!std::is_void_v<R>) {
    auto* box = static_cast<const ResultBox*>(results.prototype.get());
    R out = static_cast<const ResultOf<R>*>(box)->value;
    detail::Fill fill(results);
    detail::walk<Role::kResult>(fill, out);
    return out;
  }
}

template <class P>
using Stored = std::remove_cvref_t<P>;
template <class P>
inline constexpr bool may_rebind = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

// A compiled function whose parameters are known: arguments convert to them first.
template <class F, class... P>
class Compiled {
  static_assert(!(may_rebind<P> || ...),
                "compile: a parameter that is a non-const reference could be assigned to, which a captured program does not "
                "see: take it by value or const reference and return what changes (in-place writes are seen)");
  static_assert(!(std::is_rvalue_reference_v<P> || ...), "compile: arguments are not moved from: take them by value");

 public:
  Compiled(std::shared_ptr<F> f, std::shared_ptr<Function> function) : f_(std::move(f)), function_(std::move(function)) {}

  auto operator()(P... arguments) const {
    if (is_tracing()) return std::remove_cvref_t<std::invoke_result_t<F&, P...>>(std::invoke(*f_, arguments...));
    return call_compiled<Stored<P>...>(*function_, *f_, arguments...);
  }
  Function& function() const { return *function_; }
  const std::shared_ptr<F>& target() const { return f_; }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<Function> function_;
};

// One with any parameters: a generic lambda, a module. Each combination of argument types is captured apart. Arguments are
// handed on as const, so that a parameter cannot be assigned to here either.
template <class F>
class CompiledGeneric {
 public:
  CompiledGeneric(std::shared_ptr<F> f, std::shared_ptr<Function> function)
      : f_(std::move(f)), function_(std::move(function)) {}

  template <class... A>
    requires std::invocable<F&, const std::decay_t<A>&...>
  auto operator()(A&&... arguments) const {
    if (is_tracing()) return std::invoke(*f_, std::as_const(arguments)...);
    return call_compiled<std::decay_t<A>...>(*function_, *f_, arguments...);
  }
  Function& function() const { return *function_; }
  const std::shared_ptr<F>& target() const { return f_; }
  F* operator->() const { return f_.get(); }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<Function> function_;
};

template <class F>
struct CallOperator;
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...)> {
  template <class F>
  using Of = Compiled<F, P...>;
};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) const> : CallOperator<R (C::*)(P...)> {};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) noexcept> : CallOperator<R (C::*)(P...)> {};
template <class C, class R, class... P>
struct CallOperator<R (C::*)(P...) const noexcept> : CallOperator<R (C::*)(P...)> {};

// A member function and its object.
template <class C, class M, class R, class... P>
struct BoundMember {
  M member;
  C* object;
  R operator()(P... arguments) const { return (object->*member)(static_cast<P&&>(arguments)...); }
  C* guarded_object() const { return object; }
};

}  // namespace capture

namespace capture {

// Modules are compiled by the functions of nn/module.h.
template <class F>
concept FunctionObject = std::is_class_v<F> && !requires(F& f) { f.is_training(); } && !requires(F& f) { f.use_count(); };

}  // namespace capture

// Lambdas, function objects and handles of modules.
template <class F>
  requires capture::FunctionObject<std::decay_t<F>>
auto compile(F&& f, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  using Callable = std::decay_t<F>;
  auto kept = std::make_shared<Callable>(std::forward<F>(f));
  auto function = capture::Function::make(options, to_string(where));
  if constexpr (requires { &Callable::operator(); })
    return typename capture::CallOperator<decltype(&Callable::operator())>::template Of<Callable>(kept, function);
  else
    return capture::CompiledGeneric<Callable>(kept, function);
}

template <class R, class... P>
auto compile(R (*f)(P...), const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  using Pointer = R (*)(P...);
  return capture::Compiled<Pointer, P...>(std::make_shared<Pointer>(f), capture::Function::make(options, to_string(where)));
}

// compile(&Model::step) alone.
template <class R, class C>
  requires std::is_function_v<R>
auto compile(R C::*, const CompileOptions& = {}, Where = Where::current()) {
  static_assert(sinter::detail::never<R>, "compile: a member function needs its object: compile(&Model::step, &model)");
  return std::function<R>();
}

// compile(&Model::step, &model)
template <class C, class R, class... P, std::derived_from<C> D>
auto compile(R (C::*member)(P...), D* object, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  using Bound = capture::BoundMember<D, R (C::*)(P...), R, P...>;
  return capture::Compiled<Bound, P...>(std::make_shared<Bound>(Bound{member, object}),
                                        capture::Function::make(options, to_string(where)));
}
template <class C, class R, class... P, std::derived_from<C> D>
auto compile(R (C::*member)(P...) const, const D* object, const CompileOptions& options = {}, Where where = Where::current()) {
  UserPosition here(where, "compile");
  using Bound = capture::BoundMember<const D, R (C::*)(P...) const, R, P...>;
  return capture::Compiled<Bound, P...>(std::make_shared<Bound>(Bound{member, object}),
                                        capture::Function::make(options, to_string(where)));
}

}  // namespace sinter
