#pragma once
// Attention to sequences whose keys and values lie in pages: what several sequences of different lengths share a cache
// by.
#include <optional>

#include "sinter/tensor/tensor.h"

namespace sinter {

// Query [rows, heads, tokens, e], pages of keys [pages, kv_heads, page, e] and of values [pages, kv_heads, page, v],
// table [rows, n]: key j of a row is row j % page of page table[row, j / page]. Query i of a row stands at starts[row]
// + i and sees keys 0 up to its own place, with a window the last `window` of these. What stands at lengths[row] or
// behind gives zeros. Heads are grouped as by enable_gqa. The result is [rows, heads, tokens, v].
//
// A row's result depends on its own sequence alone, to the last bit, whatever else is in the batch.
Tensor paged_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& table,
                       const Tensor& starts, const Tensor& lengths, std::optional<double> scale = {},
                       int64_t window = 0);

// The rows of each sequence side by side: [rows, kv_heads, n * page, e] of pages [pages, kv_heads, page, e].
Tensor rows_of_pages(const Tensor& pages, const Tensor& table);

}  // namespace sinter
