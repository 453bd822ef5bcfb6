// Vectors of 512 bits. Compiled with AVX-512 F and DQ; without them the table is absent.
#include "sinter/runtime/cpu/attention/core.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "sinter/runtime/cpu/attention/kernels.h"

namespace sinter::runtime::attention_detail {
namespace {
constexpr AttentionCore kCore = make_core<64>();
}
const AttentionCore* avx512_core() { return &kCore; }
}  // namespace sinter::runtime::attention_detail

#else

namespace sinter::runtime::attention_detail {
const AttentionCore* avx512_core() { return nullptr; }
}  // namespace sinter::runtime::attention_detail

#endif
