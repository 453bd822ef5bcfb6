#pragma once
// Tensors of which few elements are stored: a subset of torch.sparse. A SparseTensor is a handle of its own on strided tensors;
// make it inside a compiled function from its parts, which are then arguments like any others.
//
//   SparseTensor a = sparse_csr_tensor(crow_indices, col_indices, values, {3, 4});
//   Tensor y = matmul(a, x);                     // gradients to values and x
#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

class SparseTensor {
 public:
  const Shape& sizes() const { return sizes_; }
  Dim size(int64_t d) const;
  int64_t dim() const { return sizes_.rank(); }
  DType dtype() const { return values_.dtype(); }
  // How many elements are stored.
  Dim nnz() const { return values_.size(0); }
  const Tensor& values() const { return values_; }
  bool is_csr() const { return crow_indices_.defined(); }

  // The coordinates of the elements, one column each: [dim, nnz].
  Tensor indices() const;
  // Of a matrix in CSR: where its rows begin among the elements, and the last ends; the column of each element.
  const Tensor& crow_indices() const;
  const Tensor& col_indices() const;

  // Each element once, in the order of their places; elements of one place are added. Reads their number on the host.
  SparseTensor coalesce() const;
  bool is_coalesced() const { return is_coalesced_; }
  Tensor to_dense() const;
  // The same elements as coordinates, or of a matrix by rows.
  SparseTensor to_sparse() const;
  SparseTensor to_sparse_csr() const;
  SparseTensor transpose(int64_t a, int64_t b) const;
  SparseTensor t() const { return transpose(0, 1); }
  Tensor sum() const;
  // The same elements with other values.
  SparseTensor with_values(const Tensor& values) const;

 private:
  SparseTensor() = default;
  friend SparseTensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const Shape& size);
  friend SparseTensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                        const Shape& size);
  // Of each element the row, of a matrix.
  Tensor rows() const;
  Tensor columns() const;
  friend Tensor matmul(const SparseTensor& a, const Tensor& b);

  Tensor crow_indices_, indices_, values_;  // of CSR, indices_ are the columns
  Shape sizes_;
  bool is_coalesced_ = false;
};

// indices: [dim, nnz], integers; several elements may have one place, where they count together. values: [nnz].
SparseTensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const Shape& size);
// A matrix: crow_indices [rows + 1] from 0 to nnz, col_indices and values [nnz].
SparseTensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                               const Shape& size);
// The elements of a dense tensor that are not zero. Reads their number on the host.
SparseTensor to_sparse(const Tensor& dense);
SparseTensor to_sparse_csr(const Tensor& dense);

// A sparse matrix times a dense matrix or a vector.
Tensor matmul(const SparseTensor& a, const Tensor& b);
Tensor mm(const SparseTensor& a, const Tensor& b);
Tensor mv(const SparseTensor& a, const Tensor& vector);
// beta * input + alpha * a b.
Tensor addmm(const Tensor& input, const SparseTensor& a, const Tensor& b, const Scalar& beta = 1,
             const Scalar& alpha = 1);
SparseTensor add(const SparseTensor& a, const SparseTensor& b);
Tensor add(const Tensor& dense, const SparseTensor& b);
SparseTensor mul(const SparseTensor& a, const Scalar& number);
inline SparseTensor operator+(const SparseTensor& a, const SparseTensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& dense, const SparseTensor& b) { return add(dense, b); }
inline SparseTensor operator*(const SparseTensor& a, const Scalar& number) { return mul(a, number); }

}  // namespace SINTER_API
