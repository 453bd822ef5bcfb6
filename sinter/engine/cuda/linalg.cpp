// Factorisations, and triangular systems, by cuSOLVER and cuBLAS. They count by columns: what is row-major here is the transpose
// there.
#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/cusolver.h"

namespace sinter::eager {

namespace {

using factor::transposed;
using runtime::CudaMatrices;

// The libraries work on one matrix after the other, and start anew for each: many small ones are faster on the host.
constexpr int64_t kMostSmall = 8, kSmall = 128;

// What the kernels of this file have in common: the operand, checked and taken or not, and memory like it.
class Matrices {
 public:
  Matrices(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) : op_(op), given_(inputs[0].tensor()) {
    auto types = operand_types(inputs);
    types_ = op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
    const MatrixSizes sizes(given_.impl().sizes);
    count = sizes.count, rows = sizes.rows, columns = sizes.columns;
  }

  // Empty ones are the host's, too.
  bool is_taken() const {
    const bool many_small = count > kMostSmall && std::max(rows, columns) < kSmall;
    return runtime::cusolver_problem().empty() && count * rows * columns > 0 && !many_small;
  }
  CudaMatrices sizes(int64_t rows, int64_t columns) const {
    return {device().index(), given_.dtype(), count, rows, columns};
  }
  Device device() const { return given_.impl().device; }
  // A row-major copy.
  Tensor copied(const Tensor& x) const { return at_address_of_its_own(x.contiguous(), x); }
  Tensor operand() const { return copied(given_); }
  // A copy with columns side by side, told as the row-major transpose.
  Tensor by_columns() const { return copied(transposed(given_)); }
  // Of the result i.
  Tensor fresh(size_t i) const { return fresh(types_[i].shape, types_[i].dtype); }
  Tensor fresh(const Shape& shape, DType dtype) const { return empty(shape, TensorOptions(dtype).device(device())); }
  Tensor numbers() const { return zeros({Dim(count)}, TensorOptions(kInt32).device(device())); }
  Shape batch() const { return batch_with(given_.sizes(), {}); }
  // Of matrices, one for each of the operand's.
  Tensor fresh_matrices(int64_t rows, int64_t columns) const {
    return fresh(batch_with(given_.sizes(), {rows, columns}), given_.dtype());
  }
  const Shape& shape(size_t i) const { return types_[i].shape; }

  int64_t count = 0, rows = 0, columns = 0;

 private:
  Tensor at_address_of_its_own(Tensor packed, const Tensor& x) const {
    if (packed.impl().buffer == x.impl().buffer) packed = packed.clone();
    refuse_place(op_.name.data(), data_of(packed.impl()));
    return packed;
  }

  const Op& op_;
  Tensor given_;
  std::vector<Type> types_;
};

void* memory(const Tensor& t) { return t.defined() ? data_of(t.impl()) : nullptr; }
template <class T>
T* memory_of(const Tensor& t) {
  return reinterpret_cast<T*>(data_of(t.impl()));
}
std::vector<int64_t> on_host(const Tensor& info) {
  const Tensor numbers = info.to(Device()).to(kInt64).contiguous();
  const int64_t* first = numbers.data_ptr<int64_t>();
  return {first, first + numbers.impl().numel};
}

// -1 for the vectors, columns of x, whose first element of more than 0.6 of the largest magnitude is negative, else 1.
Tensor signs_of(const Tensor& x) {
  Tensor magnitude = abs(x);
  Tensor first = argmax((magnitude > 0.6 * amax(magnitude, {-2}, true)).to(kInt32), -2, true);
  return where(gather(x, -2, first) < 0, -1.0, 1.0).to(x.dtype());
}

bool lu(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*, TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  if (!m.is_taken()) return false;
  Tensor a = m.by_columns(), pivots = m.fresh(m.shape(1), kInt64), info = m.numbers();
  runtime::cuda_lu(m.sizes(m.rows, m.columns), memory(a), memory_of<int64_t>(pivots), memory_of<int32_t>(info));
  if (auto& fails = attrs.as<FactorAttrs>().fails; !fails.empty()) factor::check_lu(fails, on_host(info));
  outputs = {transposed(a).contiguous(), pivots.to(kInt32), info.view(m.batch())};
  return true;
}

bool cholesky(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*, TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  if (!m.is_taken()) return false;
  Tensor a = m.operand(), info = m.numbers();
  runtime::cuda_cholesky(m.sizes(m.rows, m.columns), memory(a), memory_of<int32_t>(info));
  if (auto& fails = attrs.as<FactorAttrs>().fails; !fails.empty()) factor::check_cholesky(fails, on_host(info));
  Tensor failed = (info != 0).view(m.batch()).unsqueeze(-1).unsqueeze(-1);
  outputs = {where(failed, NAN, tril(a)).contiguous(), info.view(m.batch())};
  return true;
}

bool solve_triangular(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
                      TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  const Tensor right = inputs[1].tensor();
  if (!m.is_taken() || right.impl().numel == 0) return false;
  auto& a = attrs.as<TriangularAttrs>();
  Tensor triangle = m.operand(), x = m.copied(right);
  // (A X)ᵀ = Xᵀ Aᵀ, and the other triangle of Aᵀ.
  runtime::cuda_solve_triangular(m.sizes(right.impl().sizes.back(), m.columns), memory(triangle), memory(x), !a.upper,
                                 a.unitriangular);
  outputs = {x};
  return true;
}

bool qr(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*, TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  if (!m.is_taken()) return false;
  auto& wanted = attrs.as<QrAttrs>();
  const int64_t reflectors = std::min(m.rows, m.columns), kept = wanted.complete ? m.rows : reflectors;
  Tensor a = m.by_columns(), scales = m.fresh({Dim(m.count), Dim(reflectors)}, a.dtype()), info = m.numbers();
  runtime::cuda_qr(m.sizes(m.rows, m.columns), memory(a), memory(scales), memory_of<int32_t>(info));
  Tensor upper = triu(transposed(a).narrow(-2, 0, reflectors));
  // Below R there are zeros in the complete form.
  if (kept > reflectors) upper = cat({upper, m.fresh_matrices(kept - reflectors, m.columns).zero_()}, -2);
  outputs = {upper.contiguous()};
  if (wanted.only_r) return true;
  Tensor q = m.fresh_matrices(kept, m.rows).zero_();
  q.narrow(-2, 0, reflectors).copy_(a.narrow(-2, 0, reflectors));
  runtime::cuda_q(m.sizes(m.rows, kept), reflectors, memory(q), memory(scales), memory_of<int32_t>(info));
  outputs.insert(outputs.begin(), transposed(q).contiguous());
  return true;
}

bool eigh(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*, TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  if (!m.is_taken()) return false;
  const bool vectors = attrs.as<VectorAttrs>().vectors;
  Tensor a = m.operand(), values = m.fresh(0), info = m.numbers();
  // What is not finite spreads to all; the library's search might never end.
  Tensor finite = all(isfinite(a), {-2, -1}, true);
  a = where(finite, a, 0.0).contiguous();
  runtime::cuda_eigh(m.sizes(m.rows, m.columns), memory(a), memory(values), vectors, memory_of<int32_t>(info));
  factor::check_eigh(on_host(info));
  outputs = {where(finite.squeeze(-1), values, NAN).contiguous()};
  if (!vectors) return true;
  Tensor columns = transposed(a);
  outputs.push_back(where(finite, columns * signs_of(columns), NAN).contiguous());
  return true;
}

bool svd(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*, TensorList& outputs) {
  const Matrices m(op, inputs, attrs);
  if (!m.is_taken()) return false;
  const bool vectors = attrs.as<VectorAttrs>().vectors, wide = m.columns > m.rows;
  const int64_t rows = std::max(m.rows, m.columns), columns = std::min(m.rows, m.columns);
  // The library wants as many rows as columns at least. Of a wide matrix it is given the transpose.
  Tensor a = wide ? m.operand() : m.by_columns(), values = m.fresh(vectors ? 1 : 0), info = m.numbers(), left, right;
  // What is not finite is an Error, and not searched.
  const Tensor finite = all(isfinite(a), {-2, -1}, true);
  a = where(finite, a, 0.0).contiguous();
  if (vectors) left = m.fresh_matrices(columns, rows), right = m.fresh_matrices(columns, columns);
  runtime::cuda_svd(m.sizes(rows, columns), memory(a), memory(values), memory(left), memory(right),
                    memory_of<int32_t>(info));
  factor::check_svd(on_host(where(finite.view({Dim(m.count)}), info, 1)));
  if (!vectors) return outputs = {values}, true;
  // Row-major these are U'ᵀ and V' of A = U' S V'ᵀ, or of its transpose.
  Tensor u = wide ? right : transposed(left), vt = wide ? left : transposed(right);
  Tensor sign = signs_of(u);
  outputs = {(u * sign).contiguous(), values, (vt * transposed(sign)).contiguous()};
  return true;
}

const OpKernel kernels[] = {
    {.op = "linalg_lu_factor_ex", .run = lu, .name = "solver"},
    {.op = "linalg_cholesky_ex", .run = cholesky, .name = "solver"},
    {.op = "linalg_solve_triangular", .run = solve_triangular, .name = "solver"},
    {.op = "linalg_qr", .run = qr, .name = "solver"},
    {.op = "linalg_eigh", .run = eigh, .name = "solver"},
    {.op = "_linalg_svd", .run = svd, .name = "solver"},
};

}  // namespace

std::span<const OpKernel> linalg_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
