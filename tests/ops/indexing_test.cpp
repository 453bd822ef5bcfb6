// What the samples of the ops cannot say: aliasing, placement rules, and what a refused write leaves behind.
#include "sinter/ops/view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(size_t(shape.numel().number()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  return from_data(values, shape);
}
Tensor indices(const std::vector<int64_t>& values) { return from_data(values, {int64_t(values.size())}); }
using Floats = std::vector<float>;

TEST(View, SharesMemoryOrSaysThatItCannot) {
  Tensor x = counting({2, 3});
  EXPECT_TRUE(x.t().is_alias_of(x));
  EXPECT_TRUE(x.view({3, 2}).is_alias_of(x));
  EXPECT_THROW(x.t().view({6}), Error);
  Tensor copied = x.t().reshape({6});
  EXPECT_FALSE(copied.is_alias_of(x));
  EXPECT_EQ(copied.to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(View, SlicesLikePython) {
  Tensor x = counting({6});
  EXPECT_EQ(x.slice(0, -4, -1).to_vector<float>(), (Floats{2, 3, 4}));
  EXPECT_EQ(x.slice(0, 4, 100).to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(x.slice(0, 4, 2).numel(), 0);
  EXPECT_EQ(x.slice(0, {}, {}, -2).to_vector<float>(), (Floats{5, 3, 1}));
  EXPECT_EQ(x.slice(0, 4, 0, -3).to_vector<float>(), (Floats{4, 1}));
}

TEST(Index, AdjacentIndicesStayInPlaceOthersComeFirst) {
  Tensor x = counting({4, 5, 6}), a = indices({0, 1, 2});
  EXPECT_TRUE(x.index({Slice(), a, a}).sizes().same_as({4, 3}));
  EXPECT_TRUE(x.index({a, Slice(), a}).sizes().same_as({3, 5}));
  EXPECT_TRUE(x.index({Ellipsis, None, a}).sizes().same_as({4, 5, 1, 3}));
}

TEST(Index, WritesThroughSlicesAndMasks) {
  Tensor x = counting({2, 3});
  x.index_put_({Slice(), 1}, 9);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 9, 2, 3, 9, 5}));
  x.index_put_({x.gt(4)}, -1);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, -1, 2, 3, -1, -1}));
  x.index_put_({Slice(1, {}), indices({0, 2})}, from_data(Floats{7, 8}, {2}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, -1, 2, 7, -1, 8}));
}

TEST(Index, ARefusedWriteLeavesTheTensorAsItWas) {
  Tensor x = counting({4});
  auto before = x.to_vector<float>();
  EXPECT_THROW(x.index_put_({indices({0, 4})}, 1), Error);
  EXPECT_THROW(x.index_add_(0, indices({1, -5}), counting({2})), Error);
  EXPECT_THROW(x.scatter_(0, indices({2, 7}), counting({2})), Error);
  EXPECT_EQ(x.to_vector<float>(), before);
}

TEST(Sort, NaNIsTheLargest) {
  Tensor x = from_data(Floats{2, NAN, 1, 2}, {4});
  EXPECT_EQ(argsort(x).to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 3, 1}));
  EXPECT_EQ(argsort(x, 0, true).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 3, 2}));
}

TEST(Cat, OfMoreTensorsThanAKernelTakes) {
  TensorList pieces;
  for (int i = 0; i < 1100; ++i) pieces.push_back(full({2, 1 + i % 3}, i));
  Tensor all = cat(pieces, 1);
  int64_t at = 0;
  for (auto& piece : pieces) {
    EXPECT_TRUE(equal(all.narrow(1, at, piece.size(1)), piece)) << at;
    at += piece.size(1).to_int();
  }
  EXPECT_EQ(all.size(1).to_int(), at);
}

}  // namespace
}  // namespace sinter
