// Products of rows that have a matrix each, of a few: eagerly and in programs, with their gradients, by one product for each group.
#include "sinter/ops/grouped.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/profile.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// Row by row, each with the matrix of its group.
Tensor by_rows(const Tensor& x, const Tensor& weight, const Tensor& group) {
  return bmm(x.unsqueeze(1), weight.index_select(0, group)).squeeze(1);
}

std::string ops_of(const std::function<void()>& f) {
  Profile profile;
  f();
  std::string out;
  for (auto& [name, row] : profile.rows()) out += name + " ";
  return out;
}

struct Case {
  const char* name;
  Tensor group;
};
std::vector<Case> cases() {
  return {{"sorted", tensor({0, 0, 0, 2, 2, 3, 3, 3, 3})},
          {"one group", tensor({2, 2, 2, 2, 2, 2, 2, 2, 2})},
          {"unsorted", tensor({3, 0, 3, 1, 0, 0, 2, 2, 3})},
          {"from the end", tensor({0, 0, 1, 1, -1, -1, -1, -1, -1})}};
}

TEST(GroupedProducts, AreThoseOfTheirRows) {
  manual_seed(0);
  const Tensor x = randn({9, 12}), weight = randn({4, 12, 7}), turned = randn({4, 7, 12}).transpose(1, 2);
  auto product = [](const Tensor& x, const Tensor& w, const Tensor& group) { return grouped_mm(x, w, group) * 2; };
  for (auto& c : cases())
    for (auto& w : {weight, turned}) {
      SCOPED_TRACE(c.name);
      const Tensor want = by_rows(x, w, c.group) * 2;
      EXPECT_TRUE(allclose(product(x, w, c.group), want, 1e-5, 1e-5));
      EXPECT_TRUE(allclose(compile(product)(x, w, c.group), want, 1e-5, 1e-5));
      const Tensor positive = where(c.group < 0, c.group + 4, c.group);
      EXPECT_TRUE(allclose(grouped_mm_by_all(x, w, positive) * 2, want, 1e-5, 1e-5));
      EXPECT_TRUE(allclose(grouped_mm_weight_grad_by_all(x, want, positive, 4),
                           grouped_mm_weight_grad(x, want, c.group, 4), 1e-4, 1e-4));
    }
}

TEST(GroupedProducts, HaveTheirGradients) {
  manual_seed(0);
  const Tensor scale = randn({9, 7});
  for (auto& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = randn({9, 12}).requires_grad_(), w = randn({4, 12, 7}).requires_grad_();
    auto loss = [&](auto f) {
      return [f, scale, group = c.group](const Tensor& x, const Tensor& w) { return (f(x, w, group) * scale).sum(); };
    };
    const TensorList want = autograd::grad({loss(by_rows)(x, w)}, {x, w});
    auto grouped = loss([](const Tensor& x, const Tensor& w, const Tensor& g) { return grouped_mm(x, w, g); });
    const TensorList eager = autograd::grad({grouped(x, w)}, {x, w}),
                     fast = autograd::grad({compile(grouped)(x, w)}, {x, w});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(allclose(eager[i], want[i], 1e-5, 1e-5)) << i;
      EXPECT_TRUE(allclose(fast[i], want[i], 1e-5, 1e-5)) << i;
    }
  }
}

TEST(GroupedProducts, RunAsOneKernel) {
  const Tensor x = randn({9, 12}), w = randn({4, 12, 7}), group = tensor({0, 0, 0, 2, 2, 3, 3, 3, 3});
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& group) { return relu(grouped_mm(x + 1, w, group)); };
  auto fast = compile(f);
  fast(x, w, group);
  const std::string ran = ops_of([&] { fast(x, w, group); });
  EXPECT_NE(ran.find("grouped_mm"), ran.npos) << ran;
}

TEST(GroupedProducts, SayWhatIsWrong) {
  const Tensor x = randn({2, 3}), w = randn({4, 3, 5});
  EXPECT_NE(error_of([&] {
              grouped_mm(x, w, tensor({0, 4}));
            }).find("grouped_mm: index 4 is out of range"),
            std::string::npos);
  EXPECT_NE(error_of([&] { grouped_mm(x, w, tensor({0})); }).find("2 rows, and the groups of 1"), std::string::npos);
  EXPECT_NE(error_of([&] {
              grouped_mm(x, w.transpose(1, 2), tensor({0, 1}));
            }).find("inner sizes 3 and 5"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
