#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/runtime/cuda/cublaslt.h"

namespace sinter::eager {

namespace {

// The library wants rows or columns side by side, and apart from each other.
bool is_dense(const TensorImpl& t) {
  size_t rank = t.sizes.size();
  int64_t rows = t.sizes[rank - 2], columns = t.sizes[rank - 1], down = t.strides[rank - 2], along = t.strides[rank - 1];
  return (along == 1 && down >= columns) || (down == 1 && along >= rows);
}

runtime::CudaMatrix matrix(const TensorImpl& t) {
  size_t rank = t.sizes.size();
  return {data_of(t), t.strides[rank - 2], t.strides[rank - 1], rank == 3 ? t.strides[0] : 0};
}

bool matrix_product(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                         TensorList& outputs) {
  if (!gemm_type(inputs[0].dtype())) return false;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype).device(result.device));
  Tensor a = inputs[0].tensor(), b = inputs[1].tensor();
  outputs = {out};
  size_t rank = a.impl().sizes.size();
  if (out.impl().numel == 0) return true;
  if (a.impl().sizes[rank - 1] == 0) return out.fill_(0), true;
  if (!is_dense(a.impl())) a = a.contiguous();
  if (!is_dense(b.impl())) b = b.contiguous();
  runtime::CudaMatmul problem{.batch = rank == 3 ? a.impl().sizes[0] : 1,
                              .m = a.impl().sizes[rank - 2],
                              .n = b.impl().sizes[rank - 1],
                              .k = a.impl().sizes[rank - 1],
                              .dtype = result.dtype,
                              .a = matrix(a.impl()),
                              .b = matrix(b.impl()),
                              .c = matrix(out.impl())};
  for (auto* m : {&problem.a, &problem.b, &problem.c}) refuse_place("cuBLASLt", m->data);
  runtime::cuda_matmul(result.device.index(), problem);
  return true;
}

const OpKernel kernels[] = {
    {.op = "mm", .run = matrix_product, .name = "gemm"},
    {.op = "bmm", .run = matrix_product, .name = "gemm"},
};

}  // namespace

std::span<const OpKernel> product_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
