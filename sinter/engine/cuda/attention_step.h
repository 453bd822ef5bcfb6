#pragma once
// Attention on a GPU, by the kernels of runtime/cuda/attention.
#include "sinter/engine/cuda/step.h"
#include "sinter/engine/eager/attention.h"

namespace sinter {

// Whether there is a kernel of these sizes.
bool takes_on_cuda(const eager::AttentionLayout& layout);
// Queues it at these addresses or places, as AttentionLayout::at takes them. `placed_numbers`: which of the numbers of a draw
// are places, as bits of CudaAttentionIndirect; a seed may look like one.
void queue_cuda_attention(Device device, const eager::AttentionLayout& layout, std::span<const int64_t> addresses,
                          uint32_t placed_numbers = 0);

// As make_cuda_step, for attention.
std::unique_ptr<CudaStep> make_attention_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                              std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
