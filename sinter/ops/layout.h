#pragma once
// Rearranging copies: joining, repeating, reversing, padding, writing a piece into a copy.
#include <string>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter {

// Tensors one after another along a dimension; dtypes promote. Empty 1-d tensors are skipped, as in PyTorch.
Tensor cat(const TensorList& tensors, int64_t dim = 0, Where where = Where::current());
inline Tensor concat(const TensorList& tensors, int64_t dim = 0, Where where = Where::current()) {
  return cat(tensors, dim, where);
}
// The same along a new dimension.
Tensor stack(const TensorList& tensors, int64_t dim = 0, Where where = Where::current());

// The whole tensor repeated along each dimension; more repeats than dimensions put new ones in front.
Tensor repeat(const TensorArg& x, const Shape& repeats);
// The same; fewer repeats than dimensions are filled with 1.
Tensor tile(const TensorArg& x, const Shape& repeats);
// Each element repeated in place, along a dimension or of the flattened tensor.
Tensor repeat_interleave(const TensorArg& x, Dim repeats, std::optional<int64_t> dim = {});
// Element j repeats[j] times; reads `repeats` on the host.
Tensor repeat_interleave(const TensorArg& x, const Tensor& repeats, std::optional<int64_t> dim = {});

Tensor flip(const TensorArg& x, const IntList& dims);
// Elements moved by shifts[j] along dims[j], those that fall off coming in at the other end; no dims: when flattened.
Tensor roll(const TensorArg& x, const Shape& shifts, const IntList& dims = {});
// k quarter turns from dimension a towards dimension b.
Tensor rot90(const TensorArg& x, int64_t k = 1, const IntList& dims = {0, 1});

// Pads {low, high} of the last dimension, then of the one before, …; negative pads crop.
Tensor constant_pad_nd(const TensorArg& x, const Shape& pad, const Scalar& value = 0);
// x[…, 3] mirrored at its ends without repeating them; pads of the last 1, 2 or 3 dimensions, smaller than the sizes.
Tensor reflection_pad1d(const TensorArg& x, const Shape& pad);
Tensor reflection_pad2d(const TensorArg& x, const Shape& pad);
Tensor reflection_pad3d(const TensorArg& x, const Shape& pad);
// The end elements repeated.
Tensor replication_pad1d(const TensorArg& x, const Shape& pad);
Tensor replication_pad2d(const TensorArg& x, const Shape& pad);
Tensor replication_pad3d(const TensorArg& x, const Shape& pad);
// mode: "constant", "reflect", "replicate" or "circular".
Tensor pad(const TensorArg& x, const Shape& pad, const std::string& mode = "constant", const Scalar& value = 0);

// x with a piece replaced: what writing to the view of the same name does, as a value.
Tensor select_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, Dim index);
Tensor slice_scatter(const TensorArg& x, const TensorArg& source, int64_t dim = 0, std::optional<Dim> start = {},
                     std::optional<Dim> stop = {}, int64_t step = 1);
Tensor diagonal_scatter(const TensorArg& x, const TensorArg& source, int64_t offset = 0, int64_t dim1 = 0,
                        int64_t dim2 = 1);
// x counts as row-major.
Tensor as_strided_scatter(const TensorArg& x, const TensorArg& source, const IntList& sizes, const IntList& strides,
                          int64_t offset = 0);

}  // namespace sinter
