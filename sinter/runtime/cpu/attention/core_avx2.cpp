// Vectors of 256 bits. Compiled with AVX2 and FMA; without them the table is absent.
#include "sinter/runtime/cpu/attention/core.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "sinter/runtime/cpu/attention/kernels.h"

namespace sinter::runtime::attention_detail {
namespace {
constexpr AttentionCore kCore = make_core<32>();
}
const AttentionCore* avx2_core() { return &kCore; }
}  // namespace sinter::runtime::attention_detail

#else

namespace sinter::runtime::attention_detail {
const AttentionCore* avx2_core() { return nullptr; }
}  // namespace sinter::runtime::attention_detail

#endif
