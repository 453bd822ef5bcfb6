// Many threads at once, and results that do not depend on their number.
#include <atomic>
#include <cstring>
#include <thread>

#include "sinter/base/thread_pool.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

struct Threads {
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

TEST(Threads, CountsOutOfRange) {
  int before = num_threads();
  EXPECT_ERROR_TEXT((set_num_threads(0), 0), "set_num_threads", "0");
  EXPECT_ERROR_TEXT((set_num_threads(-3), 0), "set_num_threads", "-3");
  EXPECT_ERROR_TEXT((set_num_threads(100000), 0), "set_num_threads", "100000");
  EXPECT_EQ(num_threads(), before);
}

// What many ops give on fixed inputs.
TensorList results() {
  manual_seed(7);
  Tensor x = randn({300, 1000}), image = randn({4, 16, 20, 20}), filter = randn({8, 16, 3, 3});
  Tensor long_row = randn({1000000}), w = randn({1000, 64}), half = x.to(kBFloat16), at = randint(300, {5000});
  TensorList all = {x.sum(), x.sum(0), x.sum(1), long_row.sum(), x.mean(), half.sum(), half.mean(1), x.var(0)};
  all.insert(all.end(), {x.softmax(1), x.softmax(0), x.log_softmax(1), x.logsumexp(1), norm(x), x.cumsum(1)});
  all.insert(all.end(), {matmul(x, w), matmul(half, w.to(kBFloat16)), matmul(x.t(), x), einsum("ij,ik->jk", {x, x})});
  all.insert(all.end(), {conv2d(image, filter, {}, 1, 1), max_pool2d(image, 2), avg_pool2d(image, 3, 2, 1)});
  all.insert(all.end(), {layer_norm(x, {1000}), rms_norm(x, {1000}), group_norm(image, 4), gelu(x), x.argmax(1)});
  all.insert(all.end(), {std::get<0>(x.sort(1)), embedding(x, at), index_add(x, 0, at, ones({5000, 1000}) * 0.1)});
  Tensor leaf = w.detach().clone().requires_grad_();
  gelu(matmul(x, leaf)).mean().backward();
  all.push_back(leaf.grad());
  Tensor q = randn({2, 4, 50, 32});
  all.push_back(scaled_dot_product_attention(q, q, q, {}, 0, true));
  all.push_back(dropout(x));
  return all;
}

TEST(Threads, ResultsAreEqualBitByBit) {
  TensorList one, other;
  {
    Threads threads(1);
    one = results();
  }
  for (int n : {2, 5}) {
    Threads threads(n);
    other = results();
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].sizes(), other[i].sizes());
      Tensor a = one[i].contiguous(), b = other[i].contiguous();
      size_t bytes = size_t(a.numel().number() * a.element_size());
      EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), bytes), 0) << "result " << i << " with " << n << " threads";
    }
  }
}

// Ops whose kernels are first compiled here, while other threads ask for the same and for different ones.
double work(int seed) {
  double total = 0;
  for (int round = 0; round < 4; ++round) {
    int n = 5 + (seed + round) % 3;
    Tensor x = arange(n * 4, kFloat64).view({n, 4}) / 7, y = x.t(), i = arange(n) % 3;
    total += (x + 1).sum().item<double>() + (x * x - x).mean().item<double>() + tanh(y).sum().item<double>();
    total += x.softmax(1).sum().item<double>() + matmul(x, y).sum().item<double>() + x.cumsum(0).sum().item<double>();
    total += index_select(x, 0, i).sum().item<double>() + where(x > 1, x, -x).amax().item<double>();
    total += cat({x, x.flip(0)}).sum().item<double>() + x.to(kFloat16).sum().item<double>();
    total += layer_norm(x, {4}).abs().sum().item<double>() + pow(x, 3).sum(0).amax().item<double>();
    Tensor leaf = x.clone().requires_grad_();
    (leaf.sigmoid() * leaf).sum().backward();
    total += leaf.grad().sum().item<double>();
    EXPECT_THROW(x + ones({3, 3, 3}), Error);
    EXPECT_THROW(index_select(x, 0, tensor({100})), Error);
  }
  return total;
}

TEST(Threads, EightAtOnceWhileKernelsCompile) {
  constexpr int kCount = 8;
  std::vector<double> totals(kCount);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kCount; ++t)
    threads.emplace_back([&, t] {
      try {
        totals[size_t(t)] = work(t);
      } catch (const std::exception& e) {
        ++failures;
        ADD_FAILURE() << e.what();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (int t = 0; t < kCount; ++t) EXPECT_EQ(totals[size_t(t)], work(t)) << t;
}

// A line of one thread never shows up in an Error of another.
TEST(Threads, PositionsBelongToTheirThread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        if (t % 2)
          EXPECT_ERROR(ones({2}) + ones({3}), "add", "[2]", "[3]");
        else
          EXPECT_ERROR(matmul(ones({2, 2}), ones({3, 3})), "matmul", "[2, 2]", "[3, 3]");
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(Threads, ReadersOfOneTensor) {
  Tensor x = randn({100, 100});
  double expected = (x * 2).sum().item<double>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ((Tensor(x) * 2).sum().item<double>(), expected);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace sinter
