// Attention as an eager call.
#include "sinter/engine/cuda/attention_step.h"
#include "sinter/engine/cuda/op_kernels.h"

namespace sinter::eager {

namespace {

bool attention(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
               TensorList& outputs) {
  AttentionCall call(op, inputs, attrs, given);
  if (!call.layout || !takes_on_cuda(*call.layout)) return false;
  queue_cuda_attention(call.results[0].device(), *call.layout, {call.addresses.data(), call.addresses.size()});
  outputs = std::move(call.results);
  return true;
}

const OpKernel kernels[] = {
    {.op = "scaled_dot_product_attention", .run = attention, .name = "attention"},
    {.op = "attention_forward", .run = attention, .name = "attention"},
    {.op = "attention_backward", .run = attention, .name = "attention"},
};

}  // namespace

std::span<const OpKernel> attention_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
