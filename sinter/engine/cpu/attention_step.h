#pragma once
// Attention on the CPU, by the blocks of runtime/cpu/attention.
#include "sinter/engine/eager/attention.h"
#include "sinter/engine/step/compiled_step.h"

namespace sinter {

// At these addresses, as AttentionLayout::at takes them.
void run_cpu_attention(const eager::AttentionLayout& layout, std::span<const int64_t> addresses);

std::unique_ptr<CompiledStep> make_cpu_attention(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                 std::span<const TensorImpl* const> outputs);

}  // namespace sinter
