#include "sinter/sparse/sparse.h"

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// Asked at once on the CPU. Elsewhere an index outside is an Error of the kernel that reads by it.
void check_values(const char* op, const Tensor& holds, const char* rule) {
  if (Tracer::current() || !holds.device().is_cpu()) return;
  check(all(holds).item<bool>(), "{}: {}", op, rule);
}

void check_indices(const char* op, const char* what, const Tensor& indices, int64_t rank) {
  check(is_integral(indices.dtype()) && indices.dim() == rank,
        "{}: {} must be integers of {} dimensions, got {} of shape {}", op, what, rank, indices.dtype(),
        indices.sizes());
}

void check_matrix(const char* op, const SparseTensor& a) {
  check(a.dim() == 2, "{}: the sparse operand must be a matrix, got the shape {}", op, a.sizes());
}

// The place of each element in the flattened tensor.
Tensor flat_places(const Tensor& indices, const Shape& sizes) {
  Tensor out = zeros({indices.size(1)}, indices.options());
  for (size_t d = 0; d < sizes.size(); ++d) out = out * sizes[d] + indices.select(0, int64_t(d));
  return out;
}

Tensor places_to_indices(Tensor places, const Shape& sizes) {
  TensorList rows(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    rows[d] = places % sizes[d];
    places = floor_divide(places, sizes[d]);
  }
  return stack(rows);
}

}  // namespace

SparseTensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const Shape& size) {
  const char* op = "sparse_coo_tensor";
  check_indices(op, "indices", indices, 2);
  check(values.dim() == 1 && indices.size(1) == values.size(0) && indices.size(0) == size.rank(),
        "{}: indices of shape {} and values of shape {} do not describe a tensor of shape {}: expected [{}, n] and [n]",
        op, indices.sizes(), values.sizes(), size, size.rank());
  for (size_t d = 0; d < size.size(); ++d) {
    Tensor row = indices.select(0, int64_t(d));
    check_values(op, (row >= 0) & (row < size[d]), "an index is outside of the size");
  }
  SparseTensor out;
  out.indices_ = indices.to(kInt64);
  out.values_ = values;
  out.sizes_ = size;
  return out;
}

SparseTensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                               const Shape& size) {
  const char* op = "sparse_csr_tensor";
  check_indices(op, "crow_indices", crow_indices, 1);
  check_indices(op, "col_indices", col_indices, 1);
  check(size.rank() == 2 && values.dim() == 1 && col_indices.size(0) == values.size(0) &&
            crow_indices.size(0) == size[0] + 1,
        "{}: crow_indices of shape {}, col_indices of shape {} and values of shape {} do not describe a matrix of "
        "shape {}: "
        "expected [rows + 1], [n] and [n]",
        op, crow_indices.sizes(), col_indices.sizes(), values.sizes(), size);
  check_values(op, (col_indices >= 0) & (col_indices < size[1]), "a column is outside of the size");
  Tensor steps = crow_indices.slice(0, 1) - crow_indices.slice(0, 0, -1);
  check_values(op, steps >= 0, "crow_indices falls");
  check_values(op, (crow_indices.select(0, 0) == 0) & (crow_indices.select(0, -1) == values.size(0)),
               "crow_indices must lead from 0 to the number of elements");
  SparseTensor out;
  out.crow_indices_ = crow_indices.to(kInt64);
  out.indices_ = col_indices.to(kInt64);
  out.values_ = values;
  out.sizes_ = size;
  return out;
}

Dim SparseTensor::size(int64_t d) const { return sizes_[size_t(wrap_dim("size", d, dim()))]; }

const Tensor& SparseTensor::crow_indices() const {
  check(is_csr(), "crow_indices: the tensor is stored as coordinates; ask its to_sparse_csr()");
  return crow_indices_;
}
const Tensor& SparseTensor::col_indices() const {
  check(is_csr(), "col_indices: the tensor is stored as coordinates; ask its to_sparse_csr()");
  return indices_;
}
// How many rows have ended before each element.
Tensor SparseTensor::rows() const {
  if (!is_csr()) return indices_.select(0, 0);
  return searchsorted(crow_indices_.slice(0, 1).contiguous(), arange_of_size(nnz(), crow_indices_.options()), false,
                      true);
}
Tensor SparseTensor::columns() const { return is_csr() ? indices_ : indices_.select(0, 1); }
Tensor SparseTensor::indices() const { return is_csr() ? stack({rows(), columns()}) : indices_; }

SparseTensor SparseTensor::with_values(const Tensor& values) const {
  check(values.sizes().same_as(values_.sizes()) || values.size(0) == nnz(),
        "with_values: {} elements need as many values, got {}", nnz(), values.sizes());
  SparseTensor out = *this;
  out.values_ = values;
  return out;
}

SparseTensor SparseTensor::coalesce() const {
  if (is_coalesced_) return *this;
  auto [places, inverse, counts] = unique(flat_places(indices(), sizes_), true, true);
  Tensor sums = index_add(zeros({places.size(0)}, values_.options()), 0, inverse, values_);
  SparseTensor out = sparse_coo_tensor(places_to_indices(places, sizes_), sums, sizes_);
  out.is_coalesced_ = true;
  return out;
}

Tensor SparseTensor::to_dense() const {
  Tensor flat = index_add(zeros({sizes_.numel()}, values_.options()), 0, flat_places(indices(), sizes_), values_);
  return flat.reshape(sizes_);
}

SparseTensor SparseTensor::to_sparse() const {
  if (!is_csr()) return *this;
  return sparse_coo_tensor(indices(), values_, sizes_);
}
SparseTensor SparseTensor::to_sparse_csr() const {
  if (is_csr()) return *this;
  check_matrix("to_sparse_csr", *this);
  SparseTensor sorted = coalesce();
  Tensor rows = sorted.rows().contiguous(), ends = arange_of_size(sizes_[0] + 1, rows.options());
  return sparse_csr_tensor(searchsorted(rows, ends), sorted.columns(), sorted.values_, sizes_);
}

SparseTensor SparseTensor::transpose(int64_t a, int64_t b) const {
  auto first = size_t(wrap_dim("transpose", a, dim())), second = size_t(wrap_dim("transpose", b, dim()));
  Tensor all = indices();
  TensorList rows = all.unbind(0);
  Shape sizes = sizes_;
  std::swap(rows[first], rows[second]);
  std::swap(sizes[first], sizes[second]);
  return sparse_coo_tensor(stack(rows), values_, sizes);
}

Tensor SparseTensor::sum() const { return values_.sum(); }

SparseTensor to_sparse(const Tensor& dense) {
  Tensor indices = nonzero(dense).t();
  return sparse_coo_tensor(indices, dense.flatten().index_select(0, flat_places(indices, dense.sizes())),
                           dense.sizes());
}
SparseTensor to_sparse_csr(const Tensor& dense) { return to_sparse(dense).to_sparse_csr(); }

// Rows of b by the columns of the elements, times their values, added up by their rows.
Tensor matmul(const SparseTensor& a, const Tensor& b) {
  check_matrix("matmul", a);
  check((b.dim() == 1 || b.dim() == 2) && b.size(0) == a.size(1),
        "matmul: inner sizes of a sparse {} and a dense {} differ", a.sizes(), b.sizes());
  Tensor read = b.index_select(0, a.columns());
  Tensor products = b.dim() == 1 ? a.values() * read : a.values().unsqueeze(1) * read;
  Shape sizes = b.sizes();
  sizes[0] = a.size(0);
  return index_add(zeros(sizes, products.options()), 0, a.rows(), products);
}
Tensor mm(const SparseTensor& a, const Tensor& b) {
  check(b.dim() == 2, "mm: expected a matrix, got the shape {}; matmul takes a vector", b.sizes());
  return matmul(a, b);
}
Tensor mv(const SparseTensor& a, const Tensor& vector) {
  check(vector.dim() == 1, "mv: expected a vector, got the shape {}", vector.sizes());
  return matmul(a, vector);
}
Tensor addmm(const Tensor& input, const SparseTensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return input * beta + mm(a, b) * alpha;
}

SparseTensor add(const SparseTensor& a, const SparseTensor& b) {
  check(a.dim() == b.dim() && Shape(a.sizes()).numel() == Shape(b.sizes()).numel() &&
            to_string(a.sizes()) == to_string(b.sizes()),
        "add: sparse tensors of shapes {} and {}", a.sizes(), b.sizes());
  return sparse_coo_tensor(cat({a.indices(), b.indices()}, 1), cat({a.values(), b.values()}), a.sizes());
}
Tensor add(const Tensor& dense, const SparseTensor& b) { return dense + b.to_dense(); }
SparseTensor mul(const SparseTensor& a, const Scalar& number) { return a.with_values(a.values() * number); }

}  // namespace sinter
