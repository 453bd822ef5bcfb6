// Indices out of range: an Error that names the index and the size, and nothing is written.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(Indices, Reading) {
  Tensor x = arange(12, kFloat32).view({3, 4});
  EXPECT_ERROR(x.select(0, 3), "select", "3", "[3, 4]");
  EXPECT_ERROR(x.select(0, -4), "select", "-4", "[3, 4]");
  EXPECT_ERROR(x[3], "select", "3", "[3, 4]");
  EXPECT_ERROR(x[0][4], "select", "4", "[4]");
  EXPECT_ERROR(tensor(1.0)[0], "select", "0-d");
  EXPECT_ERROR(x.index({3}), "3", "[3, 4]");
  EXPECT_ERROR(x.index({Slice(), -5}), "-5", "4");
  EXPECT_ERROR(x.narrow(0, 2, 2), "narrow", "2", "3");
  EXPECT_ERROR(x.narrow(0, 0, -1), "narrow", "-1");
  EXPECT_ERROR(x.slice(0, 0, 3, 0), "slice", "step");
  EXPECT_ERROR(index_select(x, 0, tensor({0, 3})), "index_select", "3");
  EXPECT_ERROR(index_select(x, 1, tensor({-5})), "index_select", "-5", "4");
  EXPECT_ERROR(gather(x, 1, tensor({{4}})), "gather", "index 4", "4");
  EXPECT_ERROR(embedding(x, tensor({{0, 7}})), "embedding", "7", "3");
  EXPECT_ERROR(embedding(x, tensor({INT64_MIN})), "embedding", "3");
  EXPECT_ERROR(take(x, tensor({12})), "12");
  EXPECT_ERROR(x.index({tensor({0, 9})}), "index", "9", "3");
  EXPECT_ERROR(x.index({Slice(), tensor({0, 9})}), "index", "9", "4");
  EXPECT_ERROR(one_hot(tensor({0, 5}), 3), "one_hot", "5", "3");
  EXPECT_ERROR(cross_entropy(x, tensor({0, 4, 1})), "cross_entropy", "4");
  EXPECT_ERROR(nll_loss(x, tensor({0, -1, 1})), "nll_loss", "-1");
}

TEST(Indices, SlicesClamp) {
  Tensor x = arange(4);
  EXPECT_TRUE(has_values(x.slice(0, 2, 100), {2, 3}));
  EXPECT_TRUE(has_values(x.slice(0, -100, 2), {0, 1}));
  EXPECT_EQ(x.slice(0, 3, 1).sizes(), Shape({0}));
  EXPECT_EQ(x.index({Slice(100, None)}).sizes(), Shape({0}));
  EXPECT_TRUE(has_values(x.slice(0, INT64_MIN, INT64_MAX, INT64_MAX), {0}));
}

TEST(Indices, WritingIntoACopy) {
  Tensor x = arange(12, kFloat32).view({3, 4}), before = x.clone();
  EXPECT_ERROR(scatter(x, 0, tensor({{0, 3}}), 9), "scatter", "3");
  EXPECT_ERROR(scatter_add(x, 0, tensor({{0, 3}}), ones({1, 2})), "scatter_add", "3");
  EXPECT_ERROR(index_add(x, 0, tensor({5}), ones({1, 4})), "index_add", "5", "3");
  EXPECT_ERROR(index_copy(x, 0, tensor({-4}), ones({1, 4})), "index_copy", "-4", "3");
  EXPECT_ERROR(index_fill(x, 0, tensor({3}), 1), "3");
  EXPECT_ERROR(index_put(x, {tensor({3})}, 1), "index_put", "3");
  EXPECT_ERROR(scatter_reduce(x, 0, tensor({{3}}), ones({1, 1}), "sum"), "scatter_reduce", "3");
  EXPECT_TRUE(equal(x, before));
}

TEST(Indices, WritingInPlaceLeavesTheTensor) {
  Tensor x = arange(12, kFloat32).view({3, 4}), before = x.clone();
  EXPECT_ERROR(x.scatter_(0, tensor({{0, 3}}), 9), "scatter", "3");
  EXPECT_ERROR(x.scatter_add_(0, tensor({{0, 3}}), ones({1, 2})), "scatter_add", "3");
  EXPECT_ERROR(x.index_add_(0, tensor({0, 5}), ones({2, 4})), "index_add", "5", "3");
  EXPECT_ERROR(x.index_copy_(0, tensor({0, -4}), ones({2, 4})), "index_copy", "-4", "3");
  EXPECT_ERROR(x.index_put_({tensor({0, 3})}, 1), "index_put", "3");
  EXPECT_ERROR(x.index_put_({tensor({0, 3})}, 1, true), "index_put", "3");
  EXPECT_ERROR(x.index_put_({tensor({0, 1}), tensor({0, 4})}, 1), "index_put", "4");
  EXPECT_ERROR(x.index_put_({3}, 1), "3");
  EXPECT_ERROR(x.index_put_({Slice(None, None, -1)}, 1), "index_put_", "-1");
  EXPECT_TRUE(equal(x, before));
}

TEST(Indices, ManyRowsWithOneBad) {
  // Large enough for several threads.
  Tensor table = ones({1000, 64}), at = zeros({20000}, kInt64);
  at.index_put_({19999}, 1000);
  EXPECT_ERROR(embedding(table, at), "embedding", "1000");
  EXPECT_ERROR(table.index_add_(0, at, ones({20000, 64})), "index_add", "1000");
  EXPECT_EQ(table.sum().item<double>(), 64000);
}

}  // namespace
}  // namespace sinter
