#pragma once
// What both directions of attention share. Internal to attention/.
#include "sinter/runtime/cpu/attention/core.h"
#include "sinter/runtime/cpu/gemm/core.h"

namespace sinter::runtime::attention_detail {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

inline const gemm_detail::GemmCore<float>& gemm_core(CpuIsa isa) { return *gemm_detail::core_f32(isa); }
inline const AttentionCore& attention_core([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  return isa == CpuIsa::kAvx512 ? *avx512_core() : isa == CpuIsa::kAvx2 ? *avx2_core() : *scalar_core();
#else
  return *scalar_core();
#endif
}

inline gemm_detail::Storage storage_of(GemmType type) {
  using namespace gemm_detail;
  return type == GemmType::bf16 ? kBFloat16 : type == GemmType::f16 ? kHalf : kNative;
}

// The weights of a row from `key` on, a multiple of four.
inline DropArgs drop_args(const AttentionProblem& p, int64_t batch, int64_t head, int64_t query, int64_t key) {
  const int64_t row = (batch * p.heads + head) * p.queries + query;
  return {p.dropout, row * ceil_div(p.keys, 4) + key / 4};
}

inline int64_t mask_item_size(AttentionMaskType type) {
  return type == AttentionMaskType::kBool ? 1 : type == AttentionMaskType::kFloat32 ? 4 : 2;
}

}  // namespace sinter::runtime::attention_detail
