// mm and bmm by the cores of runtime/cpu/gemm.
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter::eager {

namespace {

// The last two dimensions are the matrix; one before them, if any, is the batch.
runtime::GemmOperand operand(const TensorImpl& t, runtime::GemmType type) {
  size_t rank = t.sizes.size();
  return {data_of(t), t.strides[rank - 2], t.strides[rank - 1], type, rank == 3 ? t.strides[0] : 0};
}

// mm and bmm. Integers keep to the loops.
bool matrix_product(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                    TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  if (!type) return false;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype));
  auto &a = inputs[0].tensor().impl(), &b = inputs[1].tensor().impl(), &c = out.impl();
  size_t rank = a.sizes.size();
  runtime::GemmOptions options;
  options.batch = rank == 3 ? a.sizes[0] : 1;
  runtime::GemmOutput to{data_of(c), c.strides[rank - 2], c.strides[rank - 1], *type, rank == 3 ? c.strides[0] : 0};
  if (c.numel) runtime::gemm(a.sizes[rank - 2], b.sizes[rank - 1], a.sizes[rank - 1], operand(a, *type), operand(b, *type), to, options);
  outputs = {std::move(out)};
  return true;
}

const OpKernel kernels[] = {
    {.op = "mm", .run = matrix_product, .name = "gemm"},
    {.op = "bmm", .run = matrix_product, .name = "gemm"},
};

}  // namespace

std::span<const OpKernel> product_kernels_of_cpu() { return kernels; }

}  // namespace sinter::eager
