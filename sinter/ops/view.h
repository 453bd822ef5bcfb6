#pragma once
// Other looks at the elements of a tensor, and copies of some of them in another order.
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// --- views: other looks at the same elements. Eagerly the result shares its operand's memory; in a graph it is free

// The same elements as a new tensor.
Tensor alias(const TensorArg& x);
// The elements in row-major order under other sizes; one may be -1. An Error when that needs a copy.
Tensor view(const TensorArg& x, const Shape& shape);
// The same bytes as elements of another dtype; where its size differs the last dimension grows or shrinks.
Tensor view(const TensorArg& x, GivenDType dtype);
// The first form, copying when it must.
Tensor reshape(const TensorArg& x, const Shape& shape);
Tensor view_as(const TensorArg& x, const TensorArg& other);
Tensor reshape_as(const TensorArg& x, const TensorArg& other);
// Dimensions start…end merged into one.
Tensor flatten(const TensorArg& x, int64_t start = 0, int64_t end = -1);
inline Tensor ravel(const TensorArg& x) { return flatten(x); }
// One dimension split into several; one of the sizes may be -1.
Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes);

// Dimension j of the result is dimension dims[j] of x.
Tensor permute(const TensorArg& x, const IntList& dims);
Tensor transpose(const TensorArg& x, int64_t a, int64_t b);
inline Tensor swapaxes(const TensorArg& x, int64_t a, int64_t b) { return transpose(x, a, b); }
inline Tensor swapdims(const TensorArg& x, int64_t a, int64_t b) { return transpose(x, a, b); }
// The transpose of a matrix; vectors and 0-d tensors stay as they are.
Tensor t(const TensorArg& x);
// The last two dimensions swapped; adjoint conjugates complex numbers as well.
Tensor mT(const TensorArg& x);
Tensor adjoint(const TensorArg& x);
inline Tensor mH(const TensorArg& x) { return adjoint(x); }
inline Tensor matrix_H(const TensorArg& x) { return adjoint(x); }
// All dimensions in reverse order.
Tensor numpy_T(const TensorArg& x);
Tensor movedim(const TensorArg& x, const IntList& source, const IntList& destination);
inline Tensor movedim(const TensorArg& x, int64_t source, int64_t destination) {
  return movedim(x, IntList{source}, IntList{destination});
}
inline Tensor moveaxis(const TensorArg& x, const IntList& source, const IntList& destination) {
  return movedim(x, source, destination);
}
inline Tensor moveaxis(const TensorArg& x, int64_t source, int64_t destination) {
  return movedim(x, source, destination);
}

// Dimensions of size 1 repeated to the given sizes (-1: unchanged); new ones may be put in front.
Tensor expand(const TensorArg& x, const Shape& shape);
Tensor expand_as(const TensorArg& x, const TensorArg& other);
Tensor broadcast_to(const TensorArg& x, const Shape& shape);
// The gradient of a broadcast: sums over the dimensions that `shape` lacks or has as 1.
Tensor sum_to_size(const TensorArg& x, const Shape& shape);

// A complex tensor as real numbers, the two parts along a new last dimension of size 2; and back, where the parts lie side by side.
Tensor view_as_real(const TensorArg& x);
Tensor view_as_complex(const TensorArg& x);
// The real part, of a real tensor itself; and the imaginary part. Looks at the same memory.
Tensor real(const TensorArg& x);
Tensor imag(const TensorArg& x);

// Without the dimensions of size 1: all of them, or those named.
Tensor squeeze(const TensorArg& x);
Tensor squeeze(const TensorArg& x, int64_t dim);
Tensor squeeze(const TensorArg& x, const IntList& dims);
Tensor unsqueeze(const TensorArg& x, int64_t dim);

// One position of a dimension, which disappears; negative counts from the end.
Tensor select(const TensorArg& x, int64_t dim, Dim index);
// start, start + step, … before stop; negative positions count from the end, all are clamped, as in Python. A negative
// step walks backwards, from the last position by default, and is a copy: strides are never negative.
Tensor slice(const TensorArg& x, int64_t dim, std::optional<Dim> start = {}, std::optional<Dim> stop = {},
             int64_t step = 1);
Tensor narrow(const TensorArg& x, int64_t dim, Dim start, Dim length);
// The same in fresh memory.
Tensor narrow_copy(const TensorArg& x, int64_t dim, Dim start, Dim length);
// The elements whose coordinate along dim2 is that along dim1 plus offset, as a new last dimension.
Tensor diagonal(const TensorArg& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
// Windows of `size` elements every `step` along a dimension; the window becomes a new last dimension.
Tensor unfold(const TensorArg& x, int64_t dim, int64_t size, int64_t step);
// Any strides over x's memory, in elements; the offset is x's own by default. In a graph x counts as row-major.
Tensor as_strided(const TensorArg& x, const IntList& sizes, const IntList& strides, std::optional<int64_t> offset = {});

// Pieces of `size` along a dimension; the last may be smaller.
TensorList split(const TensorArg& x, Dim size, int64_t dim = 0);
TensorList split_with_sizes(const TensorArg& x, const Shape& sizes, int64_t dim = 0);
inline TensorList split(const TensorArg& x, std::initializer_list<Dim> sizes, int64_t dim = 0) {
  return split_with_sizes(x, Shape(sizes), dim);
}
inline TensorList split(const TensorArg& x, const std::vector<int64_t>& sizes, int64_t dim = 0) {
  return split_with_sizes(x, Shape(sizes), dim);
}
// At most `chunks` equal pieces; the last may be smaller.
TensorList chunk(const TensorArg& x, int64_t chunks, int64_t dim = 0);
// Every position of a dimension.
TensorList unbind(const TensorArg& x, int64_t dim = 0);
inline TensorList unsafe_split(const TensorArg& x, Dim size, int64_t dim = 0) { return split(x, size, dim); }
inline TensorList unsafe_split_with_sizes(const TensorArg& x, const Shape& sizes, int64_t dim = 0) {
  return split_with_sizes(x, sizes, dim);
}
inline TensorList unsafe_chunk(const TensorArg& x, int64_t chunks, int64_t dim = 0) { return chunk(x, chunks, dim); }
// `sections` pieces, of which the first are one larger where the size does not divide; or the pieces between positions,
// which may be a tensor on the host.
TensorList tensor_split(const TensorArg& x, int64_t sections, int64_t dim = 0);
TensorList tensor_split(const TensorArg& x, const IntList& indices, int64_t dim = 0);
TensorList tensor_split(const TensorArg& x, const Tensor& indices_or_sections, int64_t dim = 0);
// The same along the columns (of a vector: its elements), the rows, and the third dimension; sections must be equal.
TensorList hsplit(const TensorArg& x, int64_t sections);
TensorList hsplit(const TensorArg& x, const IntList& indices);
TensorList vsplit(const TensorArg& x, int64_t sections);
TensorList vsplit(const TensorArg& x, const IntList& indices);
TensorList dsplit(const TensorArg& x, int64_t sections);
TensorList dsplit(const TensorArg& x, const IntList& indices);

// At least 1, 2 or 3 dimensions, new ones of size 1: vectors become rows, matrices get a last dimension.
Tensor atleast_1d(const TensorArg& x);
TensorList atleast_1d(const TensorList& tensors, Where where = Where::current());
Tensor atleast_2d(const TensorArg& x);
TensorList atleast_2d(const TensorList& tensors, Where where = Where::current());
Tensor atleast_3d(const TensorArg& x);
TensorList atleast_3d(const TensorList& tensors, Where where = Where::current());
// Tensors expanded to the shape they have in common; that shape.
TensorList broadcast_tensors(const TensorList& tensors, Where where = Where::current());
Shape broadcast_shapes(const std::vector<Shape>& shapes);

// --- rearranging copies: joining, repeating, reversing, padding, writing a piece into a copy

// Tensors one after another along a dimension; dtypes promote. Empty 1-d tensors are skipped, as in PyTorch.
Tensor cat(const TensorList& tensors, int64_t dim = 0, Where where = Where::current());
inline Tensor concat(const TensorList& tensors, int64_t dim = 0, Where where = Where::current()) {
  return cat(tensors, dim, where);
}
inline Tensor concatenate(const TensorList& tensors, int64_t dim = 0, Where where = Where::current()) {
  return cat(tensors, dim, where);
}
// Of each tensor as many chunks along dim as asked for, padded with zeros at the end, as rows of a new dimension in
// front of what is left of it, flattened; the rows of all tensors side by side.
Tensor _chunk_cat(const TensorList& tensors, int64_t dim, int64_t num_chunks, Where where = Where::current());
// The same along a new dimension.
Tensor stack(const TensorList& tensors, int64_t dim = 0, Where where = Where::current());
// Side by side, one below the other, and one behind the other, once they have 1, 2 or 3 dimensions.
Tensor hstack(const TensorList& tensors, Where where = Where::current());
Tensor vstack(const TensorList& tensors, Where where = Where::current());
Tensor dstack(const TensorList& tensors, Where where = Where::current());
inline Tensor row_stack(const TensorList& tensors, Where where = Where::current()) { return vstack(tensors, where); }
// Vectors and matrices as columns side by side.
Tensor column_stack(const TensorList& tensors, Where where = Where::current());
// Matrices along the diagonal, zero elsewhere; vectors count as rows.
Tensor block_diag(const TensorList& tensors, Where where = Where::current());
// Every choice of one element from each vector, one row each; of one vector, itself.
Tensor cartesian_prod(const TensorList& tensors, Where where = Where::current());
// Every choice of r elements of a vector in their order, one row each.
Tensor combinations(const TensorArg& x, int64_t r = 2, bool with_replacement = false);

// A vector on a diagonal of a matrix of zeros; a diagonal of a matrix, copied.
Tensor diag(const TensorArg& x, int64_t diagonal = 0);
// The last dimension on a diagonal of two new dimensions.
Tensor diag_embed(const TensorArg& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
// All elements on a diagonal of a matrix.
Tensor diagflat(const TensorArg& x, int64_t offset = 0);

// The whole tensor repeated along each dimension; more repeats than dimensions put new ones in front.
Tensor repeat(const TensorArg& x, const Shape& repeats);
// The same; fewer repeats than dimensions are filled with 1.
Tensor tile(const TensorArg& x, const Shape& repeats);
// Each element repeated in place, along a dimension or of the flattened tensor.
Tensor repeat_interleave(const TensorArg& x, Dim repeats, std::optional<int64_t> dim = {});
// Element j repeats[j] times; reads `repeats` on the host.
Tensor repeat_interleave(const TensorArg& x, const Tensor& repeats, std::optional<int64_t> dim = {});

Tensor flip(const TensorArg& x, const IntList& dims);
// The columns, or the rows, in reverse order.
Tensor fliplr(const TensorArg& x);
Tensor flipud(const TensorArg& x);
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

// --- reading and writing through tensors of indices. Indices are integers; negative ones count from the end, one outside the
// dimension is an Error. The in-place forms check every index before they write

// --- reading
// Whole slices: result coordinate j along dim reads x at index[j].
Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index);
// Result of index's shape: each element reads x at the same coordinates, but for dim, which index gives.
Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index);
// gather with x and index broadcast against each other; no dim: over the flattened tensors.
Tensor take_along_dim(const TensorArg& x, const TensorArg& index, std::optional<int64_t> dim = {});
// Elements of the flattened x, in index's shape.
Tensor take(const TensorArg& x, const TensorArg& index);
// Rows of a table. No gradient reaches row `padding_idx` (negative: none such).
Tensor embedding(const TensorArg& weight, const TensorArg& indices, int64_t padding_idx = -1);  // no method
// The gradient of embedding's table: rows of `grad` added up by index.
Tensor embedding_dense_backward(const TensorArg& grad, const TensorArg& indices, Dim num_weights,
                                int64_t padding_idx = -1);  // no method
enum class EmbeddingBagMode : uint8_t { kSum, kMean, kMax };
// Rows of a table summed (or averaged, or their largest elements taken) over bags. Indices [bags, size], or 1-d with the
// offsets at which bags begin; include_last_offset: and where the last ends. Rows `padding_idx` are left out, an empty bag
// is zeros. per_sample_weights, of the indices' shape, multiply the rows of a sum.
Tensor embedding_bag(const TensorArg& weight, const TensorArg& indices, const Tensor& offsets = {},
                     EmbeddingBagMode mode = EmbeddingBagMode::kMean, const Tensor& per_sample_weights = {},
                     bool include_last_offset = false, std::optional<int64_t> padding_idx = {});  // no method
// x[a, b:c, ..., None, tensor, mask] with PyTorch's rules; x.index({...}) is the same.
Tensor index(const TensorArg& x, const std::vector<TensorIndex>& indices);
// The elements where a mask, broadcast with x, is true; 1-d.
Tensor masked_select(const TensorArg& x, const TensorArg& mask);

// --- writing into a copy
// index(x, indices) replaced by (or, accumulating, increased by) values, which broadcast.
Tensor index_put(const TensorArg& x, const std::vector<TensorIndex>& indices, const TensorArg& values,
                 bool accumulate = false);
// Slices along dim at index[j] replaced by slice j of source; increased by alpha times it; filled with a value.
Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);  // in place too
Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 const Scalar& alpha = 1);  // in place too
Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& value);  // in place too
// reduce: "prod", "mean", "amax" or "amin" of the slices that meet, and of x's own slice if include_self.
Tensor index_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                    const std::string& reduce, bool include_self = true);  // in place too
// Elements of the flattened x replaced by (or, accumulating, increased by) those of source: the inverse of take.
Tensor put(const TensorArg& x, const TensorArg& index, const TensorArg& source, bool accumulate = false);  // in place too
// The inverse of gather: elements of source (a number, or a tensor at least of index's shape) put at index along dim.
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);  // in place too
// reduce: "add" or "multiply", what is there combined with what comes.
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
               std::string_view reduce);  // in place too
Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);  // in place too
// reduce: "sum", "prod", "mean", "amax" or "amin" of the sources that meet, and of x's own element if include_self.
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                      const std::string& reduce, bool include_self = true);  // in place too
// The true positions of mask replaced by the elements of source, in order.
Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source);  // in place too

}  // namespace sinter
