// Tensors made like another one lie in memory as it does.
#include <gtest/gtest.h>

#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using Make = std::function<Tensor(const Tensor&)>;

const std::vector<std::pair<std::string, Make>>& makers() {
  static const std::vector<std::pair<std::string, Make>> all = {
      {"zeros_like", [](const Tensor& x) { return zeros_like(x); }},
      {"ones_like", [](const Tensor& x) { return ones_like(x); }},
      {"full_like", [](const Tensor& x) { return full_like(x, 2.5); }},
      {"empty_like", [](const Tensor& x) { return empty_like(x).fill_(1); }},
      {"rand_like", [](const Tensor& x) { return rand_like(x); }},
      {"randn_like", [](const Tensor& x) { return randn_like(x); }},
      {"randint_like", [](const Tensor& x) { return randint_like(x, 9); }},
      {"fill", [](const Tensor& x) { return fill(x, 3); }},
  };
  return all;
}

std::vector<std::pair<std::string, Tensor>> operands() {
  return {{"rows", randn({2, 3, 4, 5})},
          {"channels last", randn({2, 3, 4, 5}).contiguous(kChannelsLast)},
          {"one channel", randn({2, 1, 4, 5}).contiguous(kChannelsLast)},
          {"transposed", randn({4, 6}).t()},
          {"permuted", randn({2, 3, 4}).permute({2, 0, 1})},
          {"with gaps", randn({4, 6}).t().slice(0, 0, 3)},
          {"expanded", randn({1, 4}).expand({3, 4})},
          {"empty", randn({0, 3, 4, 5}).contiguous(kChannelsLast)},
          {"of pairs", complex(randn({4, 6}), randn({4, 6})).t()}};
}

TEST(Like, TheOrderIsThatOfAClone) {
  for (auto& [what, x] : operands())
    for (auto& [name, make] : makers()) {
      if (x.is_complex() && name == "randint_like") continue;
      SCOPED_TRACE(name + " of " + what);
      manual_seed(7);
      Tensor y = make(x);
      EXPECT_EQ(y.strides(), x.clone().strides());
      EXPECT_EQ(y.dtype(), x.dtype());
      manual_seed(7);
      EXPECT_TRUE(y.equal(make(x.contiguous()))) << y;
    }
}

TEST(Like, ANamedOrderIsTaken) {
  Tensor x = randn({2, 3, 4, 5}), last = x.contiguous(kChannelsLast);
  EXPECT_TRUE(zeros_like(x, {}, kChannelsLast).is_contiguous(kChannelsLast));
  EXPECT_TRUE(ones_like(last, kInt32, kContiguousFormat).is_contiguous());
  EXPECT_EQ(ones_like(last, kInt32, kContiguousFormat).dtype(), kInt32);
  EXPECT_TRUE(rand_like(x, {}, kChannelsLast).is_contiguous(kChannelsLast));
  EXPECT_TRUE(randn_like(last, TensorOptions().requires_grad(true)).is_leaf());
  EXPECT_NE(error_of([&] {
              zeros_like(randn({2, 3}), {}, kChannelsLast);
            }).find("channels_last needs 4 dimensions"),
            std::string::npos);
}

TEST(Like, CompiledProgramsGiveTheSameOrder) {
  for (auto& [what, x] : operands())
    for (auto& [name, make] : makers()) {
      if (x.is_complex()) continue;
      SCOPED_TRACE(name + " of " + what);
      auto both = [&make = make](const Tensor& x) {
        Tensor first = make(x);
        return std::tuple(first, make(x * 2));
      };
      auto f = compile(both, {.fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        manual_seed(7);
        auto [a, b] = f(x);
        manual_seed(7);
        auto [ea, eb] = both(x);
        EXPECT_EQ(a.strides(), ea.strides());
        EXPECT_EQ(b.strides(), eb.strides());
        EXPECT_TRUE(a.equal(ea) && b.equal(eb));
      }
    }
}

TEST(Like, AlsoAtOtherSizes) {
  for (auto& [name, make] : makers()) {
    SCOPED_TRACE(name);
    auto f = compile([&make = make](const Tensor& x) { return make(x); }, {.dynamic = Dynamic::kTrue});
    for (Shape shape :
         {Shape{2, 3, 4, 5}, Shape{3, 2, 6, 7}, Shape{2, 1, 6, 7}, Shape{2, 4, 1, 1}, Shape{1, 3, 4, 5}}) {
      Tensor x = randn(shape).contiguous(kChannelsLast);
      EXPECT_EQ(f(x).strides(), make(x).strides()) << shape;
    }
  }
}

}  // namespace
}  // namespace sinter
