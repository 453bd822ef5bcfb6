#pragma once
// Control flow that depends on the data and stays inside a captured graph. No methods of Tensor.
//
//   Tensor y = cond(x.sum() > 0, [&](const Tensor& x) { return x * w; }, [](const Tensor& x) { return -x; }, x);
//   auto [z, n] = while_loop([](const Tensor& z, const Tensor&) { return z.abs().amax() > 1; },
//                            [](const Tensor& z, const Tensor& n) { return std::tuple(z / 2, n + 1); }, y, tensor(0));
//
// Eagerly the predicate is read and the function called; gradients work as everywhere. Under capture every function is
// recorded once, as a graph inside the node. Tensors of the outside that a function uses become operands of the node.
// Inside, nothing may be drawn at random and no result may have a size that only the data knows.
#include <concepts>
#include <functional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

using ListFunction = std::function<TensorList(const TensorList&)>;

namespace detail {
TensorList cond(const TensorArg& predicate, const ListFunction& then_f, const ListFunction& else_f,
                const TensorList& args);
TensorList while_loop(const ListFunction& cond_f, const ListFunction& body_f, const TensorList& state,
                      const Where& where);
}  // namespace detail

// --- functions of lists. `L` keeps other calls from looking here, which a generic lambda would not survive.

// then_f(args) where the predicate, a 0-d bool tensor or a plain number, holds, else else_f(args). Captured branches
// must give as many results, of the same dtypes and shapes. The gradient is a cond over the gradients of the branches.
template <std::same_as<TensorList> L = TensorList>
TensorList cond(const TensorArg& predicate, const ListFunction& then_f, const ListFunction& else_f, const L& args) {
  return detail::cond(predicate, then_f, else_f, args);
}

// state = body_f(state) for as long as the one result of cond_f(state), a 0-d bool tensor, holds. Captured bodies must
// keep the dtypes and shapes of the state, and have no gradient: how often a loop runs, a graph does not know.
template <std::same_as<TensorList> L = TensorList>
TensorList while_loop(const ListFunction& cond_f, const ListFunction& body_f, const L& state,
                      Where where = Where::current()) {
  return detail::while_loop(cond_f, body_f, state, where);
}

// --- functions of tensors. They give a tensor, a tuple of tensors or a TensorList.

namespace detail {

// A result as a list, and a list as a result.
template <class R>
struct Results;
template <>
struct Results<Tensor> {
  static TensorList pack(Tensor r) { return {std::move(r)}; }
  static Tensor unpack(TensorList list) { return std::move(list[0]); }
};
template <>
struct Results<TensorList> {
  static TensorList pack(TensorList r) { return r; }
  static TensorList unpack(TensorList list) { return list; }
};
template <std::same_as<Tensor>... T>
struct Results<std::tuple<T...>> {
  static TensorList pack(const std::tuple<T...>& r) {
    return std::apply([](const T&... t) { return TensorList{t...}; }, r);
  }
  static std::tuple<T...> unpack(TensorList list) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return std::tuple<T...>(list[I]...); }(
               std::index_sequence_for<T...>());
  }
};

template <class R, size_t N, class F>
ListFunction on_list(F& f) {
  return [&f](const TensorList& args) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return Results<R>::pack(f(args[I]...)); }(
               std::make_index_sequence<N>());
  };
}

}  // namespace detail

template <class Then, class Else, std::same_as<Tensor>... T>
  requires std::invocable<Then&, const T&...>
auto cond(const TensorArg& predicate, Then then_f, Else else_f, const T&... args) {
  using R = std::invoke_result_t<Then&, const T&...>;
  static_assert(std::is_same_v<R, std::invoke_result_t<Else&, const T&...>>, "the branches return different types");
  return detail::Results<R>::unpack(detail::cond(predicate, detail::on_list<R, sizeof...(T)>(then_f),
                                                 detail::on_list<R, sizeof...(T)>(else_f), {args...}));
}

// The first of the state carries the line of the caller.
template <class Condition, class Body, std::same_as<Tensor>... T>
  requires std::invocable<Condition&, const Tensor&, const T&...>
auto while_loop(Condition cond_f, Body body_f, const TensorArg& first, const T&... rest) {
  constexpr size_t count = 1 + sizeof...(T);
  using R = std::invoke_result_t<Body&, const Tensor&, const T&...>;
  return detail::Results<R>::unpack(detail::while_loop(detail::on_list<Tensor, count>(cond_f),
                                                       detail::on_list<R, count>(body_f), {first.tensor(), rest...},
                                                       first.where()));
}

}  // namespace sinter
