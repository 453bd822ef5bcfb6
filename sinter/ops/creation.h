#pragma once
// Tensors made from nothing but numbers, and fillings of tensors that exist. Where no options are given the dtype
// follows the numbers: integers make i64, bools bool, the rest f32.
#include <concepts>
#include <optional>
#include <string_view>

#include "sinter/tensor/tensor.h"

namespace sinter {

// Every element `value`.
Tensor full(const Shape& size, const TensorArg& value, const std::optional<TensorOptions>& options = {});
Tensor zeros(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
Tensor ones(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
// The same with the shape, and unless told otherwise the dtype and device, of another tensor.
Tensor full_like(const TensorArg& x, const TensorArg& value, const std::optional<TensorOptions>& options = {});
Tensor zeros_like(const TensorArg& x, const std::optional<TensorOptions>& options = {});
Tensor ones_like(const TensorArg& x, const std::optional<TensorOptions>& options = {});
Tensor empty_like(const TensorArg& x, const std::optional<TensorOptions>& options = {});

// start, start + step, … up to but without `end`.
Tensor arange(const Scalar& end, const std::optional<TensorOptions>& options = {}, Where where = Where::current());
Tensor arange(const Scalar& start, const Scalar& end, const std::optional<TensorOptions>& options = {},
              Where where = Where::current());
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const std::optional<TensorOptions>& options = {}, Where where = Where::current());
// 0, 1, … of a size that may be symbolic: `count` elements.
Tensor arange_of_size(const Dim& count, const TensorOptions& options = kInt64, Where where = Where::current());
template <std::same_as<Dim> D>
Tensor arange(const D& end, const TensorOptions& options = kInt64, Where where = Where::current()) {
  return arange_of_size(end, options, where);
}
// `steps` evenly spaced values from start to end, both included.
Tensor linspace(const Scalar& start, const Scalar& end, Dim steps, const TensorOptions& options = {},
                Where where = Where::current());
// Ones on the diagonal.
Tensor eye(Dim rows, const TensorOptions& options = {}, Where where = Where::current());
Tensor eye(Dim rows, Dim columns, const TensorOptions& options = {}, Where where = Where::current());

// The lower triangle of the last two dimensions, up to and with a diagonal; zero elsewhere.
Tensor tril(const TensorArg& x, int64_t diagonal = 0);
// The upper triangle.
Tensor triu(const TensorArg& x, int64_t diagonal = 0);
// 1 at the class of each element, along a new last dimension; as many classes as needed when not told.
Tensor one_hot(const TensorArg& x, int64_t num_classes = -1);
// Coordinate grids of 1-d tensors; indexing is "ij" or "xy".
TensorList meshgrid(const TensorList& tensors, std::string_view indexing = "ij", Where where = Where::current());

// A tensor like x with every element `value`.
Tensor fill(const TensorArg& x, const TensorArg& value);
// `source` broadcast to the shape of x and converted to its dtype.
Tensor copy(const TensorArg& x, const TensorArg& source);

}  // namespace sinter
