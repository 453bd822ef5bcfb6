// For any machine: vectors of 128 bits.
#include "sinter/runtime/cpu/attention/kernels.h"

namespace sinter::runtime::attention_detail {
namespace {
constexpr AttentionCore kCore = make_core<16>();
}
const AttentionCore* scalar_core() { return &kCore; }
}  // namespace sinter::runtime::attention_detail
