// Runs of elements, points in bins: what is refused, and what compiled functions give.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"

namespace sinter {
namespace {

TEST(SegmentReduce, AsksForLengthsThatFit) {
  Tensor x = arange(6).to(kFloat32);
  auto error = [&](const Tensor& lengths) { return error_of([&] { segment_reduce(x, "sum", lengths); }); };
  EXPECT_NE(error(tensor({2, 3})).find("segment_reduce: the lengths are negative, or do not add up"),
            std::string::npos);
  EXPECT_NE(error(tensor({8, -2})).find("do not add up"), std::string::npos);
  EXPECT_NE(error_of([&] {
              segment_reduce(x, "sum", {}, {}, tensor({0, 4, 3}));
            }).find("not in ascending order"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              segment_reduce(x, "sum", {}, {}, tensor({0, 7}));
            }).find("outside of it"),
            std::string::npos);
  EXPECT_NE(error_of([&] { segment_reduce(x, "median", tensor({6})); }).find("reduce is"), std::string::npos);
  EXPECT_NE(error_of([&] { segment_reduce(x, "sum"); }).find("either lengths or offsets"), std::string::npos);
  EXPECT_NE(error_of([&] {
              segment_reduce(x, "sum", tensor({6}), {}, tensor({0, 6}));
            }).find("either lengths or offsets"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              segment_reduce(x.view({2, 3}), "sum", tensor({3}), {}, {}, 1);
            }).find("expected integer lengths"),
            std::string::npos);
  // What unsafe lengths leave over is left out.
  EXPECT_EQ(segment_reduce(x, "sum", tensor({2, 3}), {}, {}, 0, /*unsafe=*/true).to_vector<float>(),
            (std::vector<float>{1, 9}));
  // Offsets need not begin at the beginning.
  EXPECT_EQ(segment_reduce(x, "max", {}, {}, tensor({1, 3, 5})).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(SegmentReduce, CompiledFunctionsGiveTheSameAndTheSameErrors) {
  auto f = [](const Tensor& x, const Tensor& lengths) {
    return segment_reduce(x, "mean", lengths, {}, {}, 1).sum({0});
  };
  auto compiled = compile(f, {.fullgraph = true});
  manual_seed(1);
  Tensor x = randn({2, 7, 3}).requires_grad_(), y = x.detach().clone().requires_grad_();
  Tensor lengths = tensor({3, 4, 5, 2}).view({2, 2}), want = f(x, lengths), got = compiled(y, lengths);
  EXPECT_TRUE(allclose(got, want));
  want.sum().backward();
  got.sum().backward();
  EXPECT_TRUE(allclose(y.grad(), x.grad()));
  EXPECT_NE(error_of([&] {
              Tensor out = compiled(y, lengths + 1);
              out.to_vector<float>();
            }).find("do not add up"),
            std::string::npos);
}

TEST(SegmentReduce, ProductsOfZerosHaveGradients) {
  TensorList x{tensor({2.0, 0.0, 3.0, 0.0, 0.0, 4.0}).to(kFloat64)};
  EXPECT_TRUE(gradcheck(
      [](const TensorList& x) -> TensorList {
        return {segment_reduce(x[0], "prod", tensor({2, 1, 3}))};
      },
      x));
  // Of equal extremes each has its share.
  Tensor equal = ones({4}).requires_grad_();
  segment_reduce(equal, "max", tensor({1, 3})).sum().backward();
  EXPECT_TRUE(allclose(equal.grad(), tensor({1.0, 1.0 / 3, 1.0 / 3, 1.0 / 3})));
}

TEST(Histogramdd, CountsPoints) {
  Tensor points = tensor({0.5, 0.5, 0.5, 1.0, 1.5, 0.5, double(NAN), 0.5, 5.0, 0.5}).view({5, 2});
  auto [hist, edges] = histogramdd(points, IntList{2, 2}, std::vector<double>{0, 2, 0, 1});
  // The last edge counts; what is not a number, or outside, does not.
  EXPECT_EQ(hist.to_vector<float>(), (std::vector<float>{0, 2, 0, 1}));
  EXPECT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[0].to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(std::get<0>(histogramdd(zeros({0, 2}), 3)).sizes().numbers(), (IntList{3, 3}));
  EXPECT_NE(error_of([&] { histogramdd(points, IntList{2}); }).find("numbers of bins [2] for points"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              histogramdd(points, IntList{2, 2}, std::vector<double>{0, 1});
            }).find("4 bounds"),
            std::string::npos);
  EXPECT_NE(error_of([&] { histogramdd(points, 2); }).find("not finite"), std::string::npos);
}

}  // namespace
}  // namespace sinter
