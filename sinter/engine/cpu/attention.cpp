// Attention by the blocks of runtime/cpu/attention.
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/eager/attention.h"

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

const OpKernel kernels[] = {
    {.op = "scaled_dot_product_attention", .run = attention, .name = "attention", .takes = takes_attention},
};

}  // namespace

std::span<const OpKernel> attention_kernels_of_cpu() { return kernels; }

}  // namespace sinter::eager
