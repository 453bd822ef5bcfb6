// Formulas that join tensors, take them apart and put them on diagonals.
#include <algorithm>

#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

template <class F>
TensorList each(const TensorList& tensors, F f) {
  TensorList out;
  for (auto& t : tensors) out.push_back(f(t));
  return out;
}

// The pieces between positions, which are clamped as those of a slice.
TensorList split_at(const TensorArg& x, const IntList& indices, int64_t dim) {
  TensorList out;
  std::optional<Dim> start = 0;
  for (int64_t stop : indices) {
    out.push_back(slice(x, dim, start, Dim(stop)));
    start = Dim(stop);
  }
  out.push_back(slice(x, dim, start));
  return out;
}

// Of hsplit and its like: the pieces are equal.
TensorList split_equally(const char* op, const TensorArg& x, int64_t sections, int64_t dim) {
  UserPosition here(x.where(), op);
  check(sections > 0, "{}: {} is not a number of sections", op, sections);
  check(x.size(dim) % sections == 0, "{}: dimension {} of {} does not divide into {} equal sections", op, dim,
        x.sizes(), sections);
  return tensor_split(x, sections, dim);
}

void check_rank(const char* op, const TensorArg& x, int64_t least) {
  UserPosition here(x.where(), op);
  check(x.dim() >= least, "{}: expected at least {} dimensions, got shape {}", op, least, x.sizes());
}

// hsplit takes a vector apart, and else the columns.
int64_t columns_of(const TensorArg& x) {
  check_rank("hsplit", x, 1);
  return x.dim() == 1 ? 0 : 1;
}

}  // namespace

// --- taking apart

TensorList tensor_split(const TensorArg& x, int64_t sections, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0, "tensor_split: a 0-d tensor cannot be split");
  check(sections > 0, "tensor_split: {} is not a number of sections", sections);
  dim = wrap_dim("tensor_split", dim, x.dim());
  Dim size = x.size(dim), least = size / sections, larger = size - least * sections, start = 0;
  TensorList out;
  for (int64_t s = 0; s < sections; ++s) {
    Dim length = Dim(s) < larger ? least + 1 : least;
    out.push_back(narrow(x, dim, start, length));
    start += length;
  }
  return out;
}
TensorList tensor_split(const TensorArg& x, const IntList& indices, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0, "tensor_split: a 0-d tensor cannot be split");
  return split_at(x, indices, wrap_dim("tensor_split", dim, x.dim()));
}
TensorList tensor_split(const TensorArg& x, const Tensor& indices_or_sections, int64_t dim) {
  UserPosition here(x.where());
  check(indices_or_sections.dtype() == kInt64 && indices_or_sections.dim() <= 1,
        "tensor_split: sections are an i64 number and indices an i64 vector, not {} {}", indices_or_sections.dtype(),
        indices_or_sections.sizes());
  if (indices_or_sections.dim() == 0) return tensor_split(x, indices_or_sections.item<int64_t>(), dim);
  return tensor_split(x, IntList(indices_or_sections.to_vector<int64_t>()), dim);
}
TensorList hsplit(const TensorArg& x, int64_t sections) { return split_equally("hsplit", x, sections, columns_of(x)); }
TensorList hsplit(const TensorArg& x, const IntList& indices) { return tensor_split(x, indices, columns_of(x)); }
TensorList vsplit(const TensorArg& x, int64_t sections) {
  check_rank("vsplit", x, 2);
  return split_equally("vsplit", x, sections, 0);
}
TensorList vsplit(const TensorArg& x, const IntList& indices) {
  check_rank("vsplit", x, 2);
  return tensor_split(x, indices, 0);
}
TensorList dsplit(const TensorArg& x, int64_t sections) {
  check_rank("dsplit", x, 3);
  return split_equally("dsplit", x, sections, 2);
}
TensorList dsplit(const TensorArg& x, const IntList& indices) {
  check_rank("dsplit", x, 3);
  return tensor_split(x, indices, 2);
}
Tensor narrow_copy(const TensorArg& x, int64_t dim, Dim start, Dim length) {
  UserPosition here(x.where());
  return clone(narrow(x, dim, start, length));
}

// --- numbers of dimensions

Tensor atleast_1d(const TensorArg& x) { return x.dim() == 0 ? reshape(x, {1}) : x.tensor(); }
Tensor atleast_2d(const TensorArg& x) {
  UserPosition here(x.where());
  return x.dim() == 0 ? reshape(x, {1, 1}) : x.dim() == 1 ? unsqueeze(x, 0) : x.tensor();
}
Tensor atleast_3d(const TensorArg& x) {
  UserPosition here(x.where());
  if (x.dim() == 0) return reshape(x, {1, 1, 1});
  return x.dim() == 1 ? unsqueeze(unsqueeze(x, 0), -1) : x.dim() == 2 ? unsqueeze(x, -1) : x.tensor();
}
TensorList atleast_1d(const TensorList& tensors, Where where) {
  return each(tensors, [&](const Tensor& t) { return atleast_1d(TensorArg(t, where)); });
}
TensorList atleast_2d(const TensorList& tensors, Where where) {
  return each(tensors, [&](const Tensor& t) { return atleast_2d(TensorArg(t, where)); });
}
TensorList atleast_3d(const TensorList& tensors, Where where) {
  return each(tensors, [&](const Tensor& t) { return atleast_3d(TensorArg(t, where)); });
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  Shape common;
  for (auto& shape : shapes) common = broadcast_shapes("broadcast_shapes", common, shape);
  return common;
}
TensorList broadcast_tensors(const TensorList& tensors, Where where) {
  UserPosition here(where);
  Shape common;
  for (auto& t : tensors) common = broadcast_shapes("broadcast_tensors", common, t.sizes());
  return each(tensors, [&](const Tensor& t) { return t.expand(common, where); });
}

// --- joining

Tensor _chunk_cat(const TensorList& tensors, int64_t dim, int64_t num_chunks, Where where) {
  UserPosition here(where);
  check(!tensors.empty() && num_chunks >= 1, "_chunk_cat: needs a tensor and a chunk, got {} and {}", tensors.size(),
        num_chunks);
  dim = wrap_dim("_chunk_cat", dim, tensors[0].dim());
  TensorList rows;
  for (auto& t : tensors) {
    check(t.dim() > dim && t.dtype() == tensors[0].dtype(),
          "_chunk_cat: {} {} and {} {} do not go together along dimension {}", tensors[0].dtype(), tensors[0].sizes(),
          t.dtype(), t.sizes(), dim);
    const Dim size = t.size(dim), piece = (size + num_chunks - 1) / num_chunks;
    const Shape sizes = t.sizes();
    Shape row(sizes.begin(), sizes.begin() + dim), missing = sizes;
    missing[size_t(dim)] = piece * num_chunks - size;
    row.push_back(num_chunks);
    row.push_back(-1);
    rows.push_back(cat({t, zeros(missing, t.options())}, dim).reshape(row));
  }
  return cat(rows, dim + 1);
}
Tensor hstack(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "hstack: needs at least one tensor");
  TensorList pieces = atleast_1d(tensors, where);
  return cat(pieces, pieces[0].dim() == 1 ? 0 : 1, where);
}
Tensor vstack(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "vstack: needs at least one tensor");
  return cat(atleast_2d(tensors, where), 0, where);
}
Tensor dstack(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "dstack: needs at least one tensor");
  return cat(atleast_3d(tensors, where), 2, where);
}
Tensor column_stack(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "column_stack: needs at least one tensor");
  auto columns = [](const Tensor& t) { return t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t; };
  return cat(each(tensors, columns), 1, where);
}

Tensor block_diag(const TensorList& tensors, Where where) {
  UserPosition here(where);
  if (tensors.empty()) return empty({1, 0});
  TensorList rows;
  Dim width = 0, before = 0;
  for (auto& t : tensors) {
    check(t.dim() <= 2, "block_diag: expected matrices, got shape {}", t.sizes());
    width += atleast_2d(t).size(1);
  }
  for (auto& t : tensors) {
    Tensor block = atleast_2d(t);
    Dim after = before + block.size(1);
    rows.push_back(constant_pad_nd(block, {before, width - after}));
    before = after;
  }
  return cat(rows, 0, where);
}

Tensor cartesian_prod(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "cartesian_prod: needs at least one vector");
  for (auto& t : tensors) check(t.dim() == 1, "cartesian_prod: expected vectors, got shape {}", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  return stack(each(meshgrid(tensors), [](const Tensor& grid) { return grid.flatten(); }), 1, where);
}

Tensor combinations(const TensorArg& x, int64_t r, bool with_replacement) {
  UserPosition here(x.where());
  check(x.dim() == 1, "combinations: expected a vector, got shape {}", x.sizes());
  check(r >= 0, "combinations: cannot choose {} elements", r);
  if (r == 0) return empty({0}, x.tensor().options());
  int64_t n = x.size(0).to_int(x.where());
  // The positions chosen, counted up like digits that never fall.
  std::vector<int64_t> rows, at;
  for (int64_t j = 0; j < r; ++j) at.push_back(with_replacement ? 0 : j);
  for (bool more = with_replacement ? n > 0 : n >= r; more;) {
    rows.insert(rows.end(), at.begin(), at.end());
    int64_t j = r - 1;
    while (j >= 0 && at[size_t(j)] == (with_replacement ? n - 1 : n - r + j)) --j;
    more = j >= 0;
    if (!more) break;
    int64_t next = at[size_t(j)] + 1;
    for (int64_t k = j; k < r; ++k) at[size_t(k)] = with_replacement ? next : next + k - j;
  }
  Dim count = int64_t(rows.size()) / r;
  return reshape(index_select(x, 0, from_data(rows, {count * r}).to(x.tensor().device())), {count, r});
}

// --- diagonals

Tensor diag_embed(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2) {
  UserPosition here(x.where());
  check(x.dim() > 0, "diag_embed: a 0-d tensor has no dimension to put on a diagonal");
  int64_t a = wrap_dim("diag_embed", dim1, x.dim() + 1), b = wrap_dim("diag_embed", dim2, x.dim() + 1);
  check(a != b, "diag_embed: dimensions {} and {} are the same", dim1, dim2);
  Dim size = x.size(-1) + std::abs(offset);
  Shape shape = removed(x.sizes(), x.dim() - 1);
  shape = inserted(inserted(shape, std::min(a, b), size), std::max(a, b), size);
  return diagonal_scatter(zeros(shape, x.tensor().options()), x, offset, a, b);
}
Tensor diag(const TensorArg& x, int64_t diagonal) {
  UserPosition here(x.where());
  check(x.dim() == 1 || x.dim() == 2, "diag: expected a vector or a matrix, got shape {}", x.sizes());
  return x.dim() == 1 ? diag_embed(x, diagonal) : clone(sinter::diagonal(x, diagonal));
}
Tensor diagflat(const TensorArg& x, int64_t offset) {
  UserPosition here(x.where());
  return diag_embed(flatten(x), offset);
}

// --- reversing

Tensor fliplr(const TensorArg& x) {
  check_rank("fliplr", x, 2);
  return flip(x, {1});
}
Tensor flipud(const TensorArg& x) {
  check_rank("flipud", x, 1);
  return flip(x, {0});
}

// --- writing

Tensor index_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                    const std::string& reduce, bool include_self) {
  UserPosition here(x.where());
  check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "index_reduce: '{}' is not known; there are prod, mean, amax and amin", reduce);
  check(index.dim() <= 1, "index_reduce: the indices must be a vector, not of shape {}", index.sizes());
  check(x.dim() == source.dim(), "index_reduce: {} and the source {} differ in their number of dimensions", x.sizes(),
        source.sizes());
  if (x.dim() == 0)
    return reshape(index_reduce(reshape(x, {1}), 0, index, reshape(source, {1}), reduce, include_self), {});
  int64_t d = wrap_dim("index_reduce", dim, x.dim());
  Shape places = x.sizes(), along(size_t(x.dim()), Dim(1));
  along[size_t(d)] = places[size_t(d)] = index.tensor().numel();
  bool fits = true;
  for (int64_t k = 0; k < x.dim(); ++k) fits = fits && source.size(k) == places[size_t(k)];
  check(fits, "index_reduce: the source has shape {}, the place for it {}", source.sizes(), places);
  return scatter_reduce(x, d, reshape(index, along).expand(places), source, reduce, include_self);
}

Tensor put(const TensorArg& x, const TensorArg& index, const TensorArg& source, bool accumulate) {
  UserPosition here(x.where());
  check(source.tensor().numel() == index.tensor().numel(), "put: {} indices for a source of shape {}",
        index.tensor().numel(), source.sizes());
  check(source.dtype() == x.dtype(), "put: dtypes {} and {} differ", x.dtype(), source.dtype());
  Tensor at = flatten(index), values = flatten(source), flat = flatten(x);
  return reshape(accumulate ? index_add(flat, 0, at, values) : index_copy(flat, 0, at, values), x.sizes());
}

}  // namespace sinter
