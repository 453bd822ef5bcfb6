#include "tests/nn/common.h"

namespace sinter {
namespace {

TensorList with_gradients() {
  TensorList params{zeros({2}).requires_grad_(), zeros({1}).requires_grad_(), zeros({1}).requires_grad_()};
  params[0].set_grad(tensor({3.0, 0.0}));
  params[1].set_grad(tensor({-4.0}));
  return params;  // the last has none
}

TEST(ClipGrad, NormIsSharedByAllGradients) {
  auto params = with_gradients();
  expect_values(nn::utils::clip_grad_norm_(params, 1), {5});
  expect_values(params[0].grad(), {0.6, 0});
  expect_values(params[1].grad(), {-0.8});
  expect_values(nn::utils::clip_grad_norm_(params, 10), {1});
  expect_values(params[1].grad(), {-0.8});
  expect_values(nn::utils::clip_grad_norm_(with_gradients(), 1, 1), {7});
  expect_values(nn::utils::clip_grad_norm_({}, 1), {0});
}

TEST(ClipGrad, NonFiniteNormIsAnErrorWhereAskedFor) {
  auto params = with_gradients();
  params[1].grad().fill_(INFINITY);
  EXPECT_THROW(nn::utils::clip_grad_norm_(params, 1, 2, /*error_if_nonfinite=*/true), Error);
}

TEST(ClipGrad, ValueBoundsEveryElement) {
  auto params = with_gradients();
  nn::utils::clip_grad_value_(params, 3.5);
  expect_values(params[0].grad(), {3, 0});
  expect_values(params[1].grad(), {-3.5});
}

}  // namespace
}  // namespace sinter
