#pragma once
// Functions of functions, as torch.func: gradients, jacobians and batches of what a C++ function computes. They may be nested in
// each other, and used inside and around compiled functions. Not part of sinter.h.
//
//   auto loss = [&](const Tensor& w, const Tensor& x) { return square(mv(x, w)).sum(); };
//   Tensor g = func::grad(loss)(w, x);                                      // of the first argument
//   Tensor each = func::vmap(func::grad(loss), {{}, 0})(w, xs);             // one gradient for each x
//   Tensor h = func::hessian([&](const Tensor& w) { return loss(w, x); })(w);
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sinter/autograd/autograd.h"

namespace sinter SINTER_API {
namespace func {

using Map = std::function<TensorList(const TensorList&)>;

namespace detail {

// The list forms, which the templates below call.
std::pair<TensorList, TensorList> grad_and_value(const Map& f, const TensorList& inputs, const std::vector<int64_t>& argnums);
TensorList jacrev(const Map& f, const TensorList& inputs, size_t argnum);
TensorList jacfwd(const Map& f, const TensorList& inputs, size_t argnum);
TensorList vmap(const Map& f, const TensorList& inputs, const std::vector<std::optional<int64_t>>& in_dims,
                const std::vector<int64_t>& out_dims, const std::string& randomness);

inline TensorList as_list(const Tensor& t) { return {t}; }
inline TensorList as_list(const TensorList& list) { return list; }
template <class... T>
TensorList as_list(const std::tuple<T...>& t) {
  return std::apply([](const auto&... each) { return TensorList{each...}; }, t);
}
template <class R>
R from_list(const TensorList& list) {
  if constexpr (std::is_same_v<R, Tensor>)
    return list.at(0);
  else if constexpr (std::is_same_v<R, TensorList>)
    return list;
  else
    return [&]<size_t... I>(std::index_sequence<I...>) { return R(list.at(I)...); }(
               std::make_index_sequence<std::tuple_size_v<R>>());
}
template <class F, class... Args>
Map list_form(F f) {
  return [f = std::move(f)](const TensorList& inputs) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return as_list(f(inputs.at(I)...)); }(
               std::index_sequence_for<Args...>());
  };
}

}  // namespace detail

// The results of f, and a function from gradients of the results to gradients of the inputs.
std::pair<TensorList, Map> vjp(const Map& f, const TensorList& inputs);
// The results of f, and their change for a change of the inputs: forward mode, here by differentiating vjp once more, so f's
// ops need gradients that have gradients.
std::pair<TensorList, TensorList> jvp(const Map& f, const TensorList& inputs, const TensorList& tangents);

// The gradient of f, whose result is one number, of its argument number `argnum`.
template <class F>
auto grad(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> Tensor {
    return detail::grad_and_value(detail::list_form<F, decltype(args)...>(f), {args...}, {argnum}).first[0];
  };
}
// And its result.
template <class F>
auto grad_and_value(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> std::pair<Tensor, Tensor> {
    auto [grads, values] = detail::grad_and_value(detail::list_form<F, decltype(args)...>(f), {args...}, {argnum});
    return {grads[0], values[0]};
  };
}

// The derivatives of every element of f's result by every element of an argument, [result's shape, argument's shape]:
// jacrev by one vjp for all elements of the result at once (vmap), jacfwd by one jvp for all of the argument.
template <class F>
auto jacrev(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> Tensor {
    return detail::jacrev(detail::list_form<F, decltype(args)...>(f), {args...}, size_t(argnum))[0];
  };
}
template <class F>
auto jacfwd(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> Tensor {
    return detail::jacfwd(detail::list_form<F, decltype(args)...>(f), {args...}, size_t(argnum))[0];
  };
}
// The jacobian of the gradient of f, whose result is one number.
template <class F>
auto hessian(F f, int64_t argnum = 0) {
  return jacrev(jacrev(std::move(f), argnum), argnum);
}

// f for every element of a batch at once: f sees each tensor without its dimension in_dims, {} for one that all of the batch
// share; results have the batch at out_dims. Every op runs once, for the whole batch, as if it had been written for it; ops
// that have no such form (nonzero, searchsorted, cond, an op of one's own that has a kernel) run element by element.
// randomness: "error" where f draws random numbers, "different" in each element, or the "same". What f returns is a Tensor,
// a TensorList or a tuple of Tensors.
template <class F>
auto vmap(F f, std::vector<std::optional<int64_t>> in_dims = {0}, std::vector<int64_t> out_dims = {0},
          std::string randomness = "error") {
  return [=](const auto&... args) {
    using Result = std::decay_t<decltype(f(args...))>;
    return detail::from_list<Result>(
        detail::vmap(detail::list_form<F, decltype(args)...>(f), {args...}, in_dims, out_dims, randomness));
  };
}

}  // namespace func
}  // namespace sinter
