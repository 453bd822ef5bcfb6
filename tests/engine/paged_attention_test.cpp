// Attention to pages by its kernel: against its definition, and row by row.
#include "sinter/ops/paged_attention.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compile.h"
#include "sinter/engine/profile.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/engine/programs.h"

namespace sinter {
namespace {

using testing::values;
using Ids = std::vector<int64_t>;

struct Batch {
  Tensor query, keys, values, table, starts, lengths;
  Tensor operator()(int64_t window = 0) const {
    return paged_attention(query, keys, values, table, starts, lengths, {}, window);
  }
};

// Rows whose pages are strewn over the cache; the last row is padding.
Batch batch(int64_t tokens, int64_t page, int64_t width, DType dtype = kFloat32, int64_t heads = 6,
            int64_t kv_heads = 2) {
  const int64_t rows = 4, pages = rows * width + 1;
  Ids table, starts, lengths;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < width; ++p) table.push_back(1 + (r + rows * p) * 7 % (pages - 1));
    starts.push_back((width * page - tokens) * r / rows);
    lengths.push_back(r + 1 == rows ? 0 : starts.back() + tokens - (tokens > 2 ? r : 0));
  }
  return {testing::values({rows, heads, tokens, 16}).to(dtype),
          testing::values({pages, kv_heads, page, 16}, 1).to(dtype),
          testing::values({pages, kv_heads, page, 12}, 2).to(dtype),
          tensor(table).view({rows, width}),
          tensor(starts),
          tensor(lengths)};
}

// As PyTorch would have it: the pages side by side, then a mask.
Tensor by_hand(const Batch& b, int64_t window) {
  Tensor keys = rows_of_pages(b.keys, b.table), values = rows_of_pages(b.values, b.table);
  Tensor at = b.starts.view({-1, 1, 1, 1}) + arange(b.query.size(2).to_int()).view({1, 1, -1, 1});
  Tensor key = arange(keys.size(2).to_int());
  Tensor seen = logical_and(key <= at, at < b.lengths.view({-1, 1, 1, 1}));
  if (window > 0) seen = logical_and(seen, key > at - window);
  return scaled_dot_product_attention(b.query, keys, values, seen, 0, false, {}, true);
}

double apart(const Tensor& a, const Tensor& b) {
  return (a.to(kFloat32) - b.to(kFloat32)).abs().max().item().to_double();
}

TEST(PagedAttention, AgreesWithAttentionOverWholeRows) {
  NoGradGuard no_grad;
  for (DType dtype : {kFloat32, kBFloat16, kFloat16})
    for (int64_t tokens : {1, 5, 70})
      for (int64_t page : {8, 32})
        for (int64_t window : {0, 20}) {
          // Longer than a block of keys, and than a task of them.
          Batch b = batch(tokens, page, 1200 / page, dtype);
          EXPECT_LT(apart(b(window), by_hand(b, window)), dtype == kFloat32   ? 2e-5
                                                          : dtype == kFloat16 ? 4e-3
                                                                              : 3e-2)
              << dtype_name(dtype) << " " << tokens << " " << page << " " << window;
        }
}

TEST(PagedAttention, ARowDoesNotKnowOfTheOthers) {
  NoGradGuard no_grad;
  for (int64_t tokens : {1, 7}) {
    Batch b = batch(tokens, 16, 80);
    Tensor all = b();
    for (int64_t r = 0; r < 3; ++r) {
      auto row = [&](const Tensor& t) { return t.slice(0, r, r + 1).contiguous(); };
      Batch alone{row(b.query), b.keys, b.values, row(b.table), row(b.starts), row(b.lengths)};
      EXPECT_EQ(alone().to_vector<float>(), all.slice(0, r, r + 1).contiguous().to_vector<float>()) << r;
    }
  }
}

TEST(PagedAttention, IsOneKernelInPrograms) {
  NoGradGuard no_grad;
  Batch b = batch(1, 16, 8);
  auto f = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& table, const Tensor& starts,
              const Tensor& lengths) { return paged_attention(q * 2.0, k, v, table, starts, lengths) + 1.0; };
  auto fast = compile(f, {.fullgraph = true});
  Tensor got = fast(b.query, b.keys, b.values, b.table, b.starts, b.lengths);
  EXPECT_LT(apart(got, f(b.query, b.keys, b.values, b.table, b.starts, b.lengths)), 1e-6);
  Profile profile;
  fast(b.query, b.keys, b.values, b.table, b.starts, b.lengths);
  std::string names;
  for (auto& [name, row] : profile.rows()) names += name + " ";
  EXPECT_NE(names.find("paged_attention"), std::string::npos) << names;
  EXPECT_EQ(names.find("index_select"), std::string::npos) << names;
}

TEST(PagedAttention, TablesOfOtherIntegersAndDoublesTakeTheBody) {
  NoGradGuard no_grad;
  Batch b = batch(3, 8, 6), narrow = b, wide = b;
  narrow.table = b.table.to(kInt32);
  EXPECT_LT(apart(narrow(), b()), 2e-5);
  wide.query = b.query.to(kFloat64), wide.keys = b.keys.to(kFloat64), wide.values = b.values.to(kFloat64);
  EXPECT_LT(apart(wide(), b()), 2e-5);
}

TEST(PagedAttention, OperandsMayLieAnyhow) {
  NoGradGuard no_grad;
  Batch b = batch(3, 8, 6), other = b;
  other.query = b.query.transpose(1, 2).contiguous().transpose(1, 2);
  other.keys = b.keys.transpose(2, 3).contiguous().transpose(2, 3);
  other.table = b.table.transpose(0, 1).contiguous().transpose(0, 1);
  EXPECT_EQ(other().to_vector<float>(), b().to_vector<float>());
}

TEST(PagedAttention, TellsWhatDoesNotFit) {
  Batch b = batch(1, 8, 4), wrong = b;
  wrong.table = b.table + 100;
  EXPECT_THROW(wrong(), Error);
  wrong = b, wrong.lengths = b.lengths + 100, wrong.starts = b.starts + 100;
  EXPECT_THROW(wrong(), Error);
  wrong = b, wrong.starts = b.starts - 1000;
  EXPECT_THROW(wrong(), Error);
  wrong = b, wrong.table = b.table.slice(0, 1);
  EXPECT_THROW(wrong(), Error);
  wrong = b, wrong.query = b.query.slice(1, 1);
  EXPECT_THROW(wrong(), Error);
}

}  // namespace
}  // namespace sinter
