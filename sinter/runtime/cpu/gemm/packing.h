#pragma once
// Addresses of operands and the packing of B. Internal to gemm/.
#include <algorithm>
#include <cstdint>

#include "sinter/runtime/cpu/gemm/blocked.h"

namespace sinter::runtime::gemm_detail {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

template <class T>
int64_t element_size(Storage storage) {
  return storage == kNative ? int64_t(sizeof(T)) : 2;
}

template <class T>
const char* element(const View& v, int64_t row, int64_t col) {
  return static_cast<const char*>(v.data) + (row * v.row_stride + col * v.col_stride) * element_size<T>(v.storage);
}

inline constexpr int64_t kBlockBytes = 4096;  // of one column of a k block: deep, since every block updates C once more
inline constexpr int64_t kPanelGroup = 4;     // panels packed together

// Even blocks of at most `bytes` along k.
template <class T>
int64_t block_depth(int64_t k, int64_t bytes = kBlockBytes) {
  const int64_t most = bytes / int64_t(sizeof(T));
  return k <= most ? std::max<int64_t>(k, 1) : round_up(ceil_div(k, ceil_div(k, most)), 16);
}

// Rows that k of them take in a panel.
inline int64_t padded_depth(int64_t k, Storage storage) { return storage == kPairs ? round_up(k, 2) : k; }

// Panels [first, last) of B's columns from c0 on, rows [p0, p0 + k), each panel k rows deep, the first one to dst; as
// kNative or kPairs.
template <class T>
void pack_panels(const Problem<T>& p, int64_t p0, int64_t k, int64_t c0, int64_t c1, int64_t first, int64_t last,
                 Storage to, void* dst);

// Columns [c0, c1) over the whole of k, in the layout of pack_b.
template <class T>
void pack_chunk(const Problem<T>& p, int64_t depth, int64_t c0, int64_t c1, Storage to, void* dst, int threads);

}  // namespace sinter::runtime::gemm_detail
