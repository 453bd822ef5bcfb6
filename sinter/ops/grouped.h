#pragma once
// Products of rows that have a matrix each, of a few: experts.
#include "sinter/tensor/tensor.h"

namespace sinter {

// Row i of x [n, k] times the matrix of its group, weight[group[i]] of [groups, k, m]. On a CPU the rows of one group that lie
// together, as they do after sorting, are one product; other devices do as grouped_mm_by_all.
Tensor grouped_mm(const TensorArg& x, const TensorArg& weight, const TensorArg& group);
// For each group the sum of the outer products of its rows of x [n, k] and of grad [n, m]: [groups, k, m].
Tensor grouped_mm_weight_grad(const TensorArg& x, const TensorArg& grad, const TensorArg& group, const Dim& groups);

// The same by products that devices have kernels for: every group multiplies all rows, in no more memory than one.
Tensor grouped_mm_by_all(const Tensor& x, const Tensor& weight, const Tensor& group);
Tensor grouped_mm_weight_grad_by_all(const Tensor& x, const Tensor& grad, const Tensor& group, const Dim& groups);

}  // namespace sinter
