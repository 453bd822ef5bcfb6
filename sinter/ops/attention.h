#pragma once
// Attention.
#include <optional>

#include "sinter/tensor/tensor.h"

namespace sinter {

// softmax(query key^T * scale + mask) value over the last two dimensions: query [..., l, e], key [..., s, e], value
// [..., s, v]. Scores and softmax are computed in f32. A bool mask says which positions may be seen, a floating one is
// added; either broadcasts to [..., l, s]. is_causal lets position i see 0 to i. scale is 1 / sqrt(e) by default. With
// enable_gqa, dimension -3 of query may be a multiple of that of key and value: head h uses theirs at h / multiple. A row
// that may see nothing gives zeros, as PyTorch does since 2.5.
Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                    std::optional<double> scale = {}, bool enable_gqa = false);

}  // namespace sinter
