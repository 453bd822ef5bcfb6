#include "tests/support/gradcheck.h"

#include <gtest/gtest.h>

#include "sinter/ops/define.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"

namespace sinter {
namespace {

const Tensor kMatrix = tensor({{0.3, -0.7, 1.1}, {0.9, 0.2, -0.4}});

TEST(Gradcheck, AcceptsRightGradients) {
  EXPECT_TRUE(gradcheck([](const TensorList& x) { return TensorList{tanh(matmul(x[0], x[1].t())) * x[2]}; },
                        {kMatrix, kMatrix * 2, tensor(0.5)}, {.second_order = true}));
  EXPECT_TRUE(gradcheck([](const TensorList& x) { return TensorList{x[0].softmax(1), x[0].sum({0})}; }, {kMatrix}));
  EXPECT_TRUE(gradcheck_op(*find_op("mul"), {kMatrix, 2.5}));
  EXPECT_TRUE(gradcheck_op(*find_op("exp"), {kMatrix}, {}, {.second_order = true}));
  EXPECT_TRUE(gradcheck_op(*find_op("floor"), {kMatrix}, {}, {.second_order = true}));
}

struct WrongSquare : Pointwise<WrongSquare> {
  static constexpr auto name = "wrong_square";
  SINTER_BODY((x), x* x)
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * c[0] * 2.001; });
  }
};

TEST(Gradcheck, FindsAWrongGradient) { EXPECT_FALSE(gradcheck_op(op_of<WrongSquare>, {kMatrix})); }

struct WrongShape : Loop {
  static constexpr auto name = "wrong_shape";
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) { return {call.inputs[0]}; }
  static Elem element(ElementBuilder& b) { return b.load(0, b.i); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad().sum(); });
  }
  SINTER_SAMPLES("x[2] |")
};

TEST(Gradcheck, AGradientOfAnotherShapeIsAnInternalError) {
  EXPECT_THROW((void)gradcheck_op(op_of<WrongShape>, {kMatrix}), InternalError);
}

TEST(Gradcheck, NothingToDifferentiateIsAFailure) {
  EXPECT_FALSE(gradcheck([](const TensorList& x) { return TensorList{x[0].detach()}; }, {kMatrix}));
}

}  // namespace
}  // namespace sinter
