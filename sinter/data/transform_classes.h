#pragma once
// Transforms as LibTorch's programs write them: classes that override a virtual function, and functions by name. For Dataset::map
// any function will do; these are beside it. They are called from the loader's threads, one object from all of them.
#include <functional>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/data/example.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {
namespace transforms {

// Of what goes into the model; the target stays.
template <class Target = Tensor>
class TensorTransform {
 public:
  virtual ~TensorTransform() = default;
  virtual Tensor operator()(Tensor input) = 0;
};
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  std::function<Tensor(Tensor)> function_;
};

// Of an example.
template <class Input, class Output>
class Transform {
 public:
  virtual ~Transform() = default;
  virtual Output apply(Input input) = 0;
};
template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  explicit Lambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  std::function<Output(Input)> function_;
};

// Of a vector of examples: what makes the batches.
template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch batch) = 0;
};
template <class T, class BatchType = std::vector<T>>
using Collation = BatchTransform<BatchType, T>;
template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  explicit BatchLambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply_batch(Input batch) override { return function_(std::move(batch)); }

 private:
  std::function<Output(Input)> function_;
};
template <class T, class BatchType = std::vector<T>>
using Collate = BatchLambda<BatchType, T>;

}  // namespace transforms

namespace detail {

// An object of these classes as the function that map() takes.
template <class F, class Result, class Input, auto member>
struct Called {
  mutable F object;
  Result operator()(Input input) const { return (object.*member)(std::move(input)); }
};

template <class F, class Target>
auto called(F f, const transforms::TensorTransform<Target>*) {
  return Called<F, Tensor, Tensor, &transforms::TensorTransform<Target>::operator()>{std::move(f)};
}
template <class F, class Input, class Output>
auto called(F f, const transforms::Transform<Input, Output>*) {
  return Called<F, Output, Input, &transforms::Transform<Input, Output>::apply>{std::move(f)};
}
template <class F, class Input, class Output>
auto called(F f, const transforms::BatchTransform<Input, Output>*) {
  return Called<F, Output, Input, &transforms::BatchTransform<Input, Output>::apply_batch>{std::move(f)};
}
template <class F>
F called(F f, const void*) {
  return f;
}

}  // namespace detail
}  // namespace data
}  // namespace SINTER_API
