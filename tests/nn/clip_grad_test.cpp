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

TEST(ClipGrad, TotalNormIsOfAllElements) {
  expect_values(nn::utils::get_total_norm({tensor({3.0, 0.0}), tensor({-4.0})}), {5});
  expect_values(nn::utils::get_total_norm({tensor({3.0, 0.0}), tensor({-4.0})}, INFINITY), {4});
  expect_values(nn::utils::get_total_norm({}), {0});
  EXPECT_THROW(nn::utils::get_total_norm({tensor({INFINITY})}, 2, /*error_if_nonfinite=*/true), Error);
}

TEST(Parameters, AsAVectorAndBack) {
  nn::Linear layer(2, 1);
  {
    NoGradGuard no_grad;
    layer->weight.copy_(tensor({{1.0, 2.0}}));
    layer->bias.fill_(3);
  }
  Tensor all = nn::utils::parameters_to_vector(layer->parameters());
  expect_values(all, {1, 2, 3});
  (all * tensor({1.0, 10.0, 100.0})).sum().backward();
  expect_values(layer->weight.grad(), {1, 10});
  nn::utils::vector_to_parameters(tensor({4.0, 5.0, 6.0}), layer->parameters());
  expect_values(layer->weight, {4, 5});
  expect_values(layer->bias, {6});
  EXPECT_TRUE(layer->bias.is_leaf() && layer->bias.requires_grad());
  EXPECT_THROW(nn::utils::vector_to_parameters(ones({4}), layer->parameters()), Error);
}

}  // namespace
}  // namespace sinter
