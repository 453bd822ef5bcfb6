// Attention by the blocks of runtime/cpu/attention.
#include "sinter/engine/eager/attention.h"
#include "sinter/engine/eager/op_kernels.h"

namespace sinter::eager {

namespace {

bool attention(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
               TensorList& outputs) {
  AttentionCall call(op, inputs, attrs, given);
  if (!call.taken()) return false;
  runtime::attention(call.problem());
  outputs = {call.out()};
  return true;
}

const RegisterOpKernel kernels[] = {
    {kCPU, {.op = "scaled_dot_product_attention", .run = attention, .name = "attention", .takes = takes_attention}},
};

}  // namespace

}  // namespace sinter::eager
