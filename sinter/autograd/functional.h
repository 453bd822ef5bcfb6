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
std::pair<TensorList, TensorList> grad_and_value(const Map& f, const TensorList& inputs, const std::vector<int64_t>& positions);
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

// Arguments are tensors or lists of tensors; all of them one after another, and how many each is.
template <class T>
inline constexpr bool is_list = std::is_same_v<T, TensorList>;
template <class T>
using Argument = std::conditional_t<is_list<T>, TensorList, Tensor>;
template <class... Args>
TensorList flat(const Args&... args) {
  TensorList all;
  auto add = [&](const auto& arg) {
    for (auto& tensor : as_list(arg)) all.push_back(tensor);
  };
  (add(Argument<Args>(args)), ...);
  return all;
}
template <class... Args>
std::vector<size_t> counts(const Args&... args) {
  return {as_list(Argument<Args>(args)).size()...};
}
template <class F, class... Args>
Map list_form(F f, const Args&... args) {
  return [f = std::move(f), counts = counts(args...)](const TensorList& inputs) {
    auto from = inputs.begin();
    auto count = counts.begin();
    auto next = [&]<bool list>(std::bool_constant<list>) {
      auto begin = from;
      from += ptrdiff_t(*count++);
      if constexpr (list)
        return TensorList(begin, from);
      else
        return *begin;
    };
    // Braces fix the order of evaluation.
    std::tuple<Argument<Args>...> all{next(std::bool_constant<is_list<Args>>())...};
    return as_list(std::apply(f, std::as_const(all)));
  };
}
// The numbers of the tensors of an argument.
std::vector<int64_t> positions_of(int64_t argnum, const std::vector<size_t>& counts);
// The dimension of each tensor: arguments share those of theirs.
std::vector<std::optional<int64_t>> dims_of(const std::vector<std::optional<int64_t>>& in_dims, const std::vector<size_t>& counts);

// One gradient as it is, several as a list.
template <class... Args>
auto gradient_form(const TensorList& grads) {
  if constexpr ((is_list<Args> || ...))
    return grads;
  else
    return grads.at(0);
}

}  // namespace detail

// The results of f, and a function from gradients of the results to gradients of the inputs.
std::pair<TensorList, Map> vjp(const Map& f, const TensorList& inputs);
// The results of f, and their change for a change of the inputs: forward mode, here by differentiating vjp once more, so f's
// ops need gradients that have gradients.
std::pair<TensorList, TensorList> jvp(const Map& f, const TensorList& inputs, const TensorList& tangents);

// The gradient of f, whose result is one number, of its argument number `argnum`. Arguments may be lists of tensors (the parameters
// of a module, see nn/functional_call.h); with one among them the gradient is a list, too.
template <class F>
auto grad(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) {
    auto at = detail::positions_of(argnum, detail::counts(args...));
    auto grads = detail::grad_and_value(detail::list_form(f, args...), detail::flat(args...), at).first;
    return detail::gradient_form<std::decay_t<decltype(args)>...>(grads);
  };
}
// And its result.
template <class F>
auto grad_and_value(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) {
    auto at = detail::positions_of(argnum, detail::counts(args...));
    auto [grads, values] = detail::grad_and_value(detail::list_form(f, args...), detail::flat(args...), at);
    return std::pair(detail::gradient_form<std::decay_t<decltype(args)>...>(grads), values[0]);
  };
}

// The derivatives of every element of f's result by every element of an argument, [result's shape, argument's shape]:
// jacrev by one vjp for all elements of the result at once (vmap), jacfwd by one jvp for all of the argument.
template <class F>
auto jacrev(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> Tensor {
    return detail::jacrev(detail::list_form(f, Tensor(args)...), {args...}, size_t(argnum))[0];
  };
}
template <class F>
auto jacfwd(F f, int64_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... args) -> Tensor {
    return detail::jacfwd(detail::list_form(f, Tensor(args)...), {args...}, size_t(argnum))[0];
  };
}
// The jacobian of the gradient of f, whose result is one number.
template <class F>
auto hessian(F f, int64_t argnum = 0) {
  return jacrev(jacrev(std::move(f), argnum), argnum);
}

// f for every element of a batch at once: f sees each tensor without its dimension in_dims, {} for one that all of the batch
// share; results have the batch at out_dims. Every op runs once, for the whole batch, as if it had been written for it; ops
// that have no such form (nonzero, searchsorted, cond, an op of one's own that has a kernel) run element by element. The tensors of
// a list share the dimension of their argument.
// randomness: "error" where f draws random numbers, "different" in each element, or the "same". What f returns is a Tensor,
// a TensorList or a tuple of Tensors.
template <class F>
auto vmap(F f, std::vector<std::optional<int64_t>> in_dims = {0}, std::vector<int64_t> out_dims = {0},
          std::string randomness = "error") {
  return [=](const auto&... args) {
    using Result = std::decay_t<decltype(f(args...))>;
    return detail::from_list<Result>(detail::vmap(detail::list_form(f, args...), detail::flat(args...),
                                                  detail::dims_of(in_dims, detail::counts(args...)), out_dims, randomness));
  };
}

}  // namespace func
}  // namespace sinter
