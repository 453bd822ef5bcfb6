// What a LibTorch user types compiles here and means the same.
#include <sstream>

#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

Tensor counted() { return arange(6, kFloat32).view({2, 3}); }

TEST(FamiliarApi, Indexing) {
  Tensor x = counted();
  EXPECT_TRUE(has_values(x.index({Slice(), 0}), {0, 3}));
  EXPECT_TRUE(has_values(x.index({"...", 0}), {0, 3}));
  EXPECT_TRUE(has_values(x.index({Ellipsis, Slice(1, None)}), {1, 2, 4, 5}));
  EXPECT_TRUE(has_values(x.index({Slice(None, 1)}), {0, 1, 2}));
  EXPECT_TRUE(has_values(x.index({Slice(None, None, 2)}), {0, 1, 2}));
  EXPECT_TRUE(has_values(x.index({0, Slice(None, None, -1)}), {2, 1, 0}));
  EXPECT_EQ(x.index({None, 1}).sizes(), Shape({1, 3}));
  EXPECT_TRUE(has_values(x.index({x > 3}), {4, 5}));
  EXPECT_TRUE(has_values(x.index({Slice(), tensor({2, 0})}), {2, 0, 5, 3}));
  EXPECT_TRUE(has_values(x[1][-1], {5}));
  x.index_put_({Slice(), 1}, 9);
  EXPECT_TRUE(has_values(x, {0, 9, 2, 3, 9, 5}));
  x[0] = tensor({7.0, 7.0, 7.0});
  x.index({x > 8}) = 1;  // a copy: writes nothing, as in LibTorch
  EXPECT_TRUE(has_values(x, {7, 7, 7, 3, 9, 5}));
  EXPECT_ERROR_TEXT(x.index({"..", 0}), "index", "..");
}

TEST(FamiliarApi, Reductions) {
  Tensor x = counted();
  EXPECT_TRUE(has_values(x.sum(0), {3, 5, 7}));
  EXPECT_TRUE(has_values(x.sum({0, 1}), {15}));
  EXPECT_EQ(x.sum(-1, true).sizes(), Shape({2, 1}));
  EXPECT_TRUE(has_values(x.mean(1), {1, 4}));
  EXPECT_TRUE(has_values(x.max(), {5}));
  auto [values, positions] = x.max(1);
  EXPECT_TRUE(has_values(values, {2, 5}));
  EXPECT_TRUE(has_values(positions, {2, 2}));
  EXPECT_TRUE(has_values(std::get<0>(x.min(0)), {0, 1, 2}));
  EXPECT_TRUE(has_values(x.var(1), {1, 1}));
  EXPECT_TRUE(has_values(x.any(0), {1, 1, 1}));
  EXPECT_TRUE(has_values(x.all(1), {0, 1}));
  EXPECT_TRUE(has_values(x.prod(1), {0, 60}));
  EXPECT_TRUE(has_values(x.flip(1), {2, 1, 0, 5, 4, 3}));
}

TEST(FamiliarApi, Making) {
  EXPECT_EQ(zeros(3).sizes(), Shape({3}));
  std::vector<int64_t> shape{2, 2};
  EXPECT_EQ(ones(shape).sizes(), Shape({2, 2}));
  Tensor x = counted();
  EXPECT_EQ(x.view(-1).sizes(), Shape({6}));
  EXPECT_EQ(zeros({x.size(0), 4}).sizes(), Shape({2, 4}));
  EXPECT_EQ(zeros(x.sizes()).sizes(), x.sizes());
  EXPECT_TRUE(has_values(tensor(std::vector<float>{1, 2}), {1, 2}));
  EXPECT_EQ(tensor(std::vector<int64_t>{1}).dtype(), kInt64);
  EXPECT_EQ(arange(5).dtype(), kInt64);
  EXPECT_EQ(arange(0.0, 1.0, 0.25).dtype(), kFloat32);
  EXPECT_TRUE(has_values(arange(1, 7, 2), {1, 3, 5}));
  EXPECT_TRUE(has_values(full({2}, 1.5), {1.5, 1.5}));
  EXPECT_EQ(full({2}, true).dtype(), kBool);
  EXPECT_EQ(x.to(kCPU, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(x.to(kCPU).dtype(), kFloat32);
  EXPECT_EQ(ones({1}, kInt64).type_as(x).dtype(), kFloat32);
  EXPECT_EQ(ones({3}).expand_as(x).sizes(), x.sizes());
}

TEST(FamiliarApi, Arithmetic) {
  Tensor x = tensor({1.0, 2.0}), y = tensor({3.0, 1.0});
  EXPECT_TRUE(has_values(1 - x, {0, -1}));
  EXPECT_TRUE(has_values(-x * 2.0f + y / 2, {-0.5, -3.5}));
  EXPECT_TRUE(has_values((x < y) & (y > 2), {1, 0}));
  EXPECT_TRUE(has_values(~(x < y), {0, 1}));
  x += 1;
  x *= y;
  x -= 0.5;
  x /= 2;
  EXPECT_TRUE(has_values(x, {2.75, 1.25}));
  EXPECT_TRUE(has_values(pow(2, y), {8, 2}));
  EXPECT_TRUE(x.equal(x));
  EXPECT_FALSE(x.equal(x.view({2, 1})));
  EXPECT_TRUE(allclose(x, x + 1e-7));
  EXPECT_FALSE(x.allclose(x + 1e-3));
  EXPECT_TRUE(has_values(x.clamp(2), {2.75, 2}));
}

TEST(FamiliarApi, Printing) {
  std::ostringstream out;
  Tensor x = counted();
  out << x.sizes() << ' ' << x.strides() << ' ' << x.dtype() << ' ' << x.device() << ' ' << x.size(1) << ' '
      << x.sum().item();
  EXPECT_EQ(out.str(), "[2, 3] [3, 1] f32 cpu 3 15.0");
}

}  // namespace
}  // namespace sinter
