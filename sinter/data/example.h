#pragma once
// One example of a dataset, and how several become a batch.
#include <ranges>
#include <span>
#include <tuple>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {

// What goes into a model, and what should come out; a batch too. Compiled functions take it as an argument.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  Data data;
  Target target;
  SINTER_FIELDS(data, target)
};

namespace detail {

// Tensors of one shape and dtype along a new first dimension; `what` names them in errors.
Tensor stack_examples(std::span<const Tensor> tensors, const char* what);

}  // namespace detail

// Examples as a batch, their tensors stacked along a new first dimension. Targets that are undefined in all examples
// stay so.
template <class E = Example<>>
struct Stack;

template <>
struct Stack<Tensor> {
  Tensor operator()(const std::vector<Tensor>& examples) const { return detail::stack_examples(examples, "examples"); }
  Tensor apply_batch(const std::vector<Tensor>& examples) const { return (*this)(examples); }
};

template <>
struct Stack<Example<>> {
  Example<> operator()(const std::vector<Example<>>& examples) const {
    std::vector<Tensor> data, targets;
    for (auto& example : examples) {
      data.push_back(example.data);
      targets.push_back(example.target);
    }
    return {detail::stack_examples(data, "data"), detail::stack_examples(targets, "targets")};
  }
  Example<> apply_batch(const std::vector<Example<>>& examples) const { return (*this)(examples); }
};

// f(tensor) for each defined tensor of a batch: in structs with SINTER_FIELDS, containers, pairs and tuples, inside of
// each other as they like.
template <class T, class F>
void for_each_tensor(T& value, const F& f) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (value.defined()) f(value);
  } else if constexpr (requires { value.visit_fields([](const char*, auto&) {}); }) {
    value.visit_fields([&](const char*, auto& field) { for_each_tensor(field, f); });
  } else if constexpr (std::ranges::range<T>) {
    for (auto& element : value) for_each_tensor(element, f);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](auto&... parts) { (for_each_tensor(parts, f), ...); }, value);
  }
}

}  // namespace data
}  // namespace SINTER_API
