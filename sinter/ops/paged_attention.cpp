#include "sinter/ops/paged_attention.h"

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

Tensor rows_of_pages(const Tensor& pages, const Tensor& table) {
  Dim rows = table.size(0), count = table.size(1), heads = pages.size(1), page = pages.size(2), size = pages.size(3);
  Tensor found = index_select(pages, 0, table.reshape({rows * count})).view({rows, count, heads, page, size});
  return found.transpose(1, 2).reshape({rows, heads, count * page, size});
}

struct PagedAttention : Composite {
  static constexpr auto name = "paged_attention";
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = 6;
  using Attributes = PagedAttentionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs.size() == 6, "paged_attention: takes query, keys, values, table, starts and lengths");
    const Shape &q = call.shape(0), &k = call.shape(1), &v = call.shape(2), &table = call.shape(3);
    const DType dtype = call.inputs[0].dtype;
    check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4,
          "paged_attention: query {} is [rows, heads, tokens, size], keys {} and values {} are [pages, heads, page, "
          "size]",
          q, k, v);
    check(is_floating(dtype) && call.inputs[1].dtype == dtype && call.inputs[2].dtype == dtype,
          "paged_attention: query, keys and values must have one floating dtype, got {}, {} and {}", dtype,
          call.inputs[1].dtype, call.inputs[2].dtype);
    check(q[3] == k[3], "paged_attention: the last sizes of query {} and keys {} differ", q, k);
    check(k[0] == v[0] && k[1] == v[1] && k[2] == v[2], "paged_attention: keys {} and values {} lie in different pages",
          k, v);
    check(!k[1].same_as(0) && !k[2].same_as(0) && q[1] % k[1] == 0,
          "paged_attention: the heads of query {} must be a multiple of those of keys {}", q, k);
    check(table.rank() == 2 && table[0] == q[0], "paged_attention: the table {} has no row for each of query {}", table,
          q);
    for (size_t i = 3; i < 6; ++i) {
      const Type& type = call.inputs[i];
      check(!is_floating(type.dtype) && type.dtype != kBool,
            "paged_attention: table, starts and lengths are integers, not {}", type);
      check(i == 3 || (type.rank() == 1 && type.shape[0] == q[0]),
            "paged_attention: {} is not one number a row of query {}", type, q);
    }
    auto& a = call.as<PagedAttentionAttrs>();
    check(a.window >= 0, "paged_attention: a window of {}", a.window);
    return {Type{dtype, Shape{q[0], q[1], q[2], v[3]}, call.inputs[0].device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    auto& a = attrs.as<PagedAttentionAttrs>();
    const Tensor &q = inputs[0].tensor(), &table = inputs[3].tensor();
    Tensor keys = rows_of_pages(inputs[1].tensor(), table), values = rows_of_pages(inputs[2].tensor(), table);
    Tensor starts = inputs[4].tensor().to(kInt64), lengths = inputs[5].tensor().to(kInt64);
    Dim rows = q.size(0);
    TensorOptions places = TensorOptions(kInt64).device(q.device());
    Tensor at = starts.view({rows, 1, 1, 1}) + arange_of_size(q.size(2), places).view({1, 1, q.size(2), 1});
    Tensor key = arange_of_size(keys.size(2), places);
    Tensor seen = logical_and(key <= at, at < lengths.view({rows, 1, 1, 1}));
    if (a.window > 0) seen = logical_and(seen, key > at - a.window);
    return {scaled_dot_product_attention(q, keys, values, seen, 0, false, a.scale, /*enable_gqa=*/true)};
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 4e-5};
  SINTER_SAMPLES("x[2, 4, 1, 8], x[5, 2, 4, 8], x[5, 2, 4, 6], i64[2, 3]<5, i64[2]<9, i64[2]<12",
                 "x[3, 2, 5, 16], x[4, 2, 3, 16], x[4, 2, 3, 16], i64[3, 4]<4, i64[3]<6, i64[3]<12 | scale=0.3",
                 "x[2, 2, 3, 4], x[3, 1, 8, 4], x[3, 1, 8, 4], i64[2, 2]<3, i64[2]<9, i64[2]<16 | window=4",
                 "x[1, 4, 40, 8], x[3, 2, 16, 8], x[3, 2, 16, 8], i64[1, 3]<3, i64[1]<8, i64[1]<48",
                 "x[2, 2, 1, 8], x[3, 1, 4, 8], x[3, 1, 4, 8], i32[2, 3]<3, i32[2]<9, i32[2]<12")
};

const Op& paged_attention_op() { return op_of<PagedAttention>; }

Tensor paged_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& table,
                       const Tensor& starts, const Tensor& lengths, std::optional<double> scale, int64_t window) {
  return call<PagedAttention>({query, keys, values, table, starts, lengths}, Attrs(PagedAttentionAttrs{scale, window}));
}

}  // namespace sinter
