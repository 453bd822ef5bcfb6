// Sizes that overflow, memory that is not there, ranks beyond what kernels take, strides that reach far.
#include "sinter/runtime/cpu/memory.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

constexpr int64_t kHuge = int64_t(1) << 40;

TEST(Memory, SizesThatOverflow) {
  EXPECT_ERROR(zeros({kHuge, kHuge}), "1099511627776", "overflow");
  EXPECT_ERROR(empty({kHuge, kHuge}), "empty", "1099511627776", "overflow");
  EXPECT_ERROR(randn({kHuge, kHuge}), "1099511627776", "overflow");
  EXPECT_ERROR(full({INT64_MAX}, 1), "9223372036854775807", "overflow");
  EXPECT_ERROR(ones({1}).expand({kHuge}).unsqueeze(1).expand({kHuge, kHuge}), "expand", "overflow");
  EXPECT_ERROR(ones({2, 1}).repeat({kHuge, kHuge}), "repeat", "overflow");
  EXPECT_ERROR(ones({1}).expand({INT64_MAX / 2}), "expand", "4611686018427387903", "overflow");
  EXPECT_ERROR(empty_strided({2}, {INT64_MAX}), "empty_strided", "overflow");
  EXPECT_ERROR(eye(kHuge), "1099511627776", "overflow");
  // An empty tensor has no size to overflow.
  EXPECT_EQ(zeros({0, kHuge, kHuge}).numel(), 0);
}

TEST(Memory, MoreThanThereIs) {
  EXPECT_ERROR(zeros({kHuge, 64}), "memory", "[1099511627776, 64]");
  EXPECT_ERROR(empty({kHuge, 64}), "memory", "f32[1099511627776, 64]");
  EXPECT_THROW(empty({kHuge, 64}), OutOfMemoryError);
  Tensor wide = ones({1}).expand({kHuge});
  EXPECT_ERROR(wide + 1, "add", "memory");
  EXPECT_ERROR(wide.contiguous(), "memory", "[1099511627776]");
  EXPECT_TRUE(has_values(ones({2}) + 1, {2, 2}));
}

TEST(Memory, ALimitLeavesTheLibraryUsable) {
  struct Limit {
    explicit Limit(size_t bytes) { set_cpu_memory_limit(bytes); }
    ~Limit() { set_cpu_memory_limit(0); }
  };
  Tensor x = ones({1000, 1000}), keep = x.clone();
  {
    Limit limit(size_t(cpu_memory_stats().allocated) + (1 << 20));
    EXPECT_ERROR(x + 1, "add", "memory");
    EXPECT_ERROR(matmul(x, x), "memory", "[1000, 1000]");
    EXPECT_ERROR(x.softmax(1), "softmax", "memory");
    EXPECT_ERROR(x.t().contiguous(), "memory", "[1000, 1000]");
    EXPECT_ERROR(cat({x, x}), "memory", "[2000, 1000]");
    EXPECT_ERROR(x.cumsum(0), "memory", "[1000, 1000]");
    EXPECT_ERROR(x.sort(0), "memory", "[1000, 1000]");
    EXPECT_ERROR(x.copy_(x.t()), "memory");
    EXPECT_TRUE(has_values(ones({3}) * 2, {2, 2, 2}));
    EXPECT_EQ(x.sum().item<double>(), 1e6);
  }
  EXPECT_TRUE(equal(x, keep));
  EXPECT_EQ((x + 1).sum().item<double>(), 2e6);
}

Shape ones_then(int64_t rank) {
  Shape shape;
  for (int64_t d = 0; d < rank; ++d) shape.push_back(d % 4 == 0 ? 2 : 1);
  return shape;
}

// Dimensions of size 2 permuted so that none can be joined with its neighbour.
Tensor scrambled(int64_t rank) {
  Shape shape;
  IntList order;
  for (int64_t d = 0; d < rank; ++d) {
    shape.push_back(2);
    order.push_back(rank - 1 - d);
  }
  return arange(int64_t(1) << rank, kFloat32).view(shape).permute(order);
}

// As many loops in one another are slow to compile: each op is a case of its own.
class Ranks : public ::testing::TestWithParam<int64_t> {
 protected:
  const int64_t rank = GetParam();
  const Tensor x = scrambled(rank);
  const double total = double((int64_t(1) << rank) - 1) * double(int64_t(1) << rank) / 2;
};

TEST_P(Ranks, Pointwise) {
  Tensor y = x.clone(kContiguousFormat);
  EXPECT_EQ((x + y).sum().item<double>(), 2 * total);
  EXPECT_TRUE(equal(x + y, y + y));
  EXPECT_EQ((ones(ones_then(rank)) + 1).dim(), rank);
}
TEST_P(Ranks, Sum) { EXPECT_EQ(x.sum(rank - 1).sum().item<double>(), total); }
TEST_P(Ranks, Flip) { EXPECT_TRUE(equal(x.flip(0).flip(0), x.clone(kContiguousFormat))); }
TEST_P(Ranks, Softmax) { EXPECT_EQ(x.softmax(-1).sum().item<float>(), float(int64_t(1) << (rank - 1))); }

INSTANTIATE_TEST_SUITE_P(UpToTwelve, Ranks, ::testing::Values(9, 12));

TEST(Rank, ThirteenIsAClearError) {
  Tensor x = scrambled(13);
  EXPECT_EQ(x.dim(), 13);
  EXPECT_ERROR(x + x.contiguous(), "12 dimensions");
  EXPECT_ERROR(x.sum(0), "sum", "12 dimensions");
  EXPECT_EQ(x.sizes().size(), 13u);
}

TEST(Strides, Far) {
  constexpr int64_t kFar = int64_t(1) << 24;
  Tensor x = empty_strided({2, 2}, {kFar, kFar / 2});
  x.copy_(tensor({{1.0, 2.0}, {3.0, 4.0}}));
  EXPECT_TRUE(has_values(x, {1, 2, 3, 4}));
  EXPECT_TRUE(has_values(x + x.t(), {2, 5, 5, 8}));
  EXPECT_TRUE(has_values(x.sum(0), {4, 6}));
  EXPECT_TRUE(has_values(matmul(x, x), {7, 10, 15, 22}));
  EXPECT_TRUE(has_values(cat({x, x.t()}), {1, 2, 3, 4, 1, 3, 2, 4}));
}

}  // namespace
}  // namespace sinter
