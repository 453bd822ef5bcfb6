#include "sinter/autograd/autograd.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "tests/autograd/common.h"

namespace sinter {
namespace {

TEST(InPlace, LeafIsWrittenOnlyWithoutRecording) {
  Tensor x = leaf({1, 2});
  expect_has(error_of([&] { x.add_(1); }), "NoGradGuard");
  expect_has(error_of([&] { x[0].add_(1); }), "view of a leaf");
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
  {
    NoGradGuard off;
    x.add_(1);
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 3}));
  EXPECT_TRUE(x.is_leaf());
}

TEST(InPlace, HistoryFollowsTheWrite) {
  Tensor x = leaf({1, 2}), w = leaf({3, 4});
  Tensor y = x * 2;
  y.add_(w);
  y.mul_(10);
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{20, 20}));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{10, 10}));
}

TEST(InPlace, OverwrittenValueIsFoundWhereAGradientReadsIt) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 1;
  Tensor z = y * y;
  y.add_(1);
  std::string error = error_of([&] { z.sum().backward(); });
  expect_has(error, "mul (");
  expect_has(error, "in-place write");
  expect_has(error, "clone()");
}

TEST(InPlace, OverwrittenResultIsFoundToo) {
  Tensor x = leaf({1, 2});
  Tensor y = exp(x);
  y.add_(1);
  expect_has(error_of([&] { y.sum().backward(); }), "exp");
}

TEST(InPlace, OverwrittenValueThatNoGradientReadsIsNoError) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 1;
  Tensor z = (y + y).sum() + y.view({2, 1}).sum();
  y.add_(1);
  (z + y.sum()).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 4}));
}

TEST(InPlace, OperandThatIsWrittenStandsForItsOldValue) {
  Tensor x = leaf({3}), w = leaf({5});
  Tensor y = x * 1;
  y.mul_(w);
  expect_has(error_of([&] { autograd::grad({y}, {w}, {}, true); }), "in-place write");
  EXPECT_EQ(autograd::grad({y}, {x})[0].item<float>(), 5);
}

TEST(InPlace, CopyReplacesTheHistory) {
  Tensor x = leaf({1, 2}), w = leaf({3});
  Tensor y = x * 2;
  y.copy_(w * 4);
  y.sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(w.grad().item<float>(), 8);
  Tensor z = x * 2;
  z.zero_();
  EXPECT_FALSE(z.requires_grad());
}

TEST(InPlace, WriteToAViewChangesTheBase) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 1;
  y[0].mul_(2);
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 2, 3}));
  (y * tensor({10.0, 100.0, 1000.0})).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{20, 100, 1000}));
}

TEST(InPlace, WriteToAViewOfAConstant) {
  Tensor w = leaf({5});
  Tensor buffer = zeros({3});
  buffer.slice(0, 1, 2).copy_(w * 2);
  EXPECT_TRUE(buffer.requires_grad());
  (buffer * tensor({1.0, 7.0, 1.0})).sum().backward();
  EXPECT_EQ(w.grad().item<float>(), 14);
}

TEST(InPlace, ViewsOfOneBaseStayConsistent) {
  Tensor x = leaf({1, 2, 3, 4}), w = tensor({10.0});
  Tensor y = x * 1;
  Tensor left = y.slice(0, 0, 2), middle = y.slice(0, 1, 3), all = y.view({2, 2});
  left.mul_(w);
  (middle * tensor({1.0, 100.0})).sum().backward({}, true);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 10, 100, 0}));
  x.set_grad({});
  (all * all.detach()).sum().backward({}, true);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{100, 200, 3, 4}));
  x.set_grad({});
  y.mul_(2);
  left.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{20, 20, 0, 0}));
}

TEST(InPlace, WriteThroughATransposedView) {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).requires_grad_(), w = leaf({10, 20});
  Tensor y = x * 1;
  Tensor column = y.t()[1];
  column.mul_(0);
  column.add_(w);
  Tensor weights = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  (y * weights).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{1, 0, 3, 4, 0, 6}));
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2, 5}));
}

TEST(InPlace, BaseThatIsNotRowMajor) {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).requires_grad_();
  // A base of its own with gaps between its elements.
  Tensor wide = zeros({2, 3, 2}).select(2, 1).transpose(0, 1).detach();
  wide.copy_(x.t());
  wide[1].mul_(10);
  Tensor weights = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  (wide * weights).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{1, 30, 5, 2, 40, 6}));
}

TEST(InPlace, GradientOfAGradientThroughAWrittenView) {
  Tensor x = leaf({2, 3});
  Tensor y = x * x;
  y[0].add_(x[1] * x[1]);        // {x0² + x1², x1²}
  Tensor total = (y * x).sum();  // x0³ + x0 x1² + x1³
  Tensor first = autograd::grad({total}, {x}, {}, {}, true)[0];
  EXPECT_EQ(first.to_vector<float>(), (Floats{21, 39}));
  EXPECT_EQ(autograd::grad({first.sum()}, {x})[0].to_vector<float>(), (Floats{18, 28}));
}

TEST(InPlace, ElementsThatAreOneCannotBeWritten) {
  Tensor x = leaf({1});
  Tensor y = (x * 1).expand({3});
  expect_has(error_of([&] { y.add_(1); }), "several of its elements share one place");
}

TEST(InPlace, GraphsThatMeetTheirOwnTensorAreFreed) {
  static float memory[2] = {1, 2};
  int freed = 0;
  {
    Tensor x = leaf({3, 4});
    Tensor y = from_blob(memory, {2}, {}, [&] { ++freed; });
    Tensor z = x * y;
    y.add_(z);  // y's history holds z's, which keeps y's old value
    y.mul_(y.view({2}));
    y[0].mul_(y[1]);
  }
  EXPECT_EQ(freed, 1);
}

}  // namespace
}  // namespace sinter
