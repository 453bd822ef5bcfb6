// func::grad, jacobians and vmap.
#include "sinter/autograd/functional.h"

#include "sinter/capture/compile.h"
#include "sinter/graph/op.h"
#include "sinter/ops/batching.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/autograd/common.h"

namespace sinter {
namespace {

Tensor wave(const Shape& shape, double shift = 0) {
  return sin(arange_of_size(shape.numel(), kFloat32) * 0.7 + shift).view(shape);
}

void expect_close(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(to_string(got.sizes()), to_string(want.sizes()));
  EXPECT_TRUE(got.detach().allclose(want.detach(), 1e-4, 1e-5)) << got << want;
}

// The results of f for each element of the batch, stacked.
template <class F>
Tensor one_by_one(F&& f, const Tensor& xs) {
  TensorList each;
  for (auto& x : xs.unbind(0)) each.push_back(f(x));
  return stack(each);
}

TEST(Functional, GradLeavesNoTrace) {
  Tensor x = tensor({1.0, 2.0});
  auto f = [](const Tensor& x) { return (x * x * x).sum(); };
  Tensor g = func::grad(f)(x);
  EXPECT_EQ(g.to_vector<float>(), (Floats{3, 12}));
  EXPECT_FALSE(g.requires_grad());
  auto twice = func::grad([&](const Tensor& x) { return func::grad(f)(x).sum(); })(x);
  EXPECT_EQ(twice.to_vector<float>(), (Floats{6, 12}));
  auto [grad, value] = func::grad_and_value(f)(x);
  EXPECT_EQ(value.item<float>(), 9);
  EXPECT_EQ(grad.to_vector<float>(), (Floats{3, 12}));
}

TEST(Functional, GradientsFlowOnToWhatTheFunctionReaches) {
  Tensor w = leaf({3}), x = tensor({2.0});
  func::grad([&](const Tensor& x) { return (w * x * x).sum(); })(x).sum().backward();
  EXPECT_EQ(w.grad().item<float>(), 4);
}

TEST(Functional, VjpAndJvp) {
  Tensor x = wave({3});
  func::Map f = [](const TensorList& in) { return TensorList{exp(in[0]), in[0].sum()}; };
  auto [out, pull] = func::vjp(f, {x});
  expect_close(pull({ones({3}), tensor(2.0f)})[0], exp(x) + 2);
  auto [values, changes] = func::jvp(f, {x}, {tensor({1.0, 0.0, 2.0})});
  expect_close(values[0], exp(x));
  expect_close(changes[0], exp(x) * tensor({1.0, 0.0, 2.0}));
  EXPECT_EQ(changes[1].item<float>(), 3);
}

TEST(Functional, JacobiansAndHessian) {
  Tensor x = wave({3}), a = wave({2, 3}, 1);
  auto f = [&](const Tensor& x) { return tanh(mv(a, x)); };
  Tensor y = tanh(mv(a, x));
  Tensor want = (1 - y * y).unsqueeze(1) * a;
  expect_close(func::jacrev(f)(x), want);
  expect_close(func::jacfwd(f)(x), want);
  expect_close(func::hessian([](const Tensor& x) { return (x * x * x).sum(); })(x), eye(3) * (x * 6));
}

TEST(Grad, OfManyAtOnce) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * x;
  Tensor rows = autograd::grad({y}, {x}, {eye(3)}, {}, false, false, true)[0];
  expect_close(rows, eye(3) * tensor({2.0, 4.0, 6.0}));
}

TEST(Vmap, MatchesOneByOne) {
  Tensor xs = wave({4, 3, 5}), w = wave({5, 2}), v = wave({5});
  auto check = [&](auto f) { expect_close(func::vmap(f)(xs), one_by_one(f, xs)); };
  check([&](const Tensor& x) { return x * v + 1; });
  check([&](const Tensor& x) { return matmul(x, w); });
  check([&](const Tensor& x) { return matmul(x, x.t()); });
  check([&](const Tensor& x) { return softmax(x, 0); });
  check([&](const Tensor& x) { return x.sum(); });
  check([&](const Tensor& x) { return x[1].unsqueeze(0).expand({2, 5}); });
  check([&](const Tensor& x) { return x.slice(1, 1, 4).flatten(); });
  check([&](const Tensor& x) { return cumsum(x, 1); });
  check([&](const Tensor& x) { return std::get<0>(sort(x, 0)); });
  check([&](const Tensor& x) { return layer_norm(x, {5}); });
  check([&](const Tensor& x) { return index_select(x, 1, tensor({2, 0})); });
}

TEST(Vmap, DimensionsAndSharedArguments) {
  Tensor xs = wave({3, 4}), w = wave({3});
  auto f = [](const Tensor& w, const Tensor& x) { return w * x; };
  Tensor got = func::vmap(f, {{}, 1}, {1})(w, xs);
  expect_close(got, w.unsqueeze(1) * xs);
  expect_has(error_of([&] { func::vmap(f, {{}, {}})(w, xs); }), "batch dimension");
}

TEST(Vmap, Nested) {
  Tensor a = wave({2, 3}), b = wave({4, 3}, 1);
  auto inner = [&](const Tensor& x) { return func::vmap([&](const Tensor& y) { return dot(x, y); })(b); };
  expect_close(func::vmap(inner)(a), matmul(a, b.t()));
}

TEST(Vmap, GradientsOutsideAndInside) {
  Tensor w = wave({3}).requires_grad_(), xs = wave({4, 3}, 1);
  func::vmap([&](const Tensor& x) { return square(dot(w, x)); })(xs).sum().backward();
  Tensor want = (2 * mv(xs, w.detach())).unsqueeze(1) * xs;
  expect_close(w.grad(), want.sum({0}));
  auto loss = [](const Tensor& w, const Tensor& x) { return square(dot(w, x)); };
  expect_close(func::vmap(func::grad(loss), {{}, 0})(w.detach(), xs), want);
}

TEST(Vmap, Randomness) {
  Tensor xs = zeros({3, 50});
  auto f = [](const Tensor& x) { return x + rand(x.sizes()); };
  expect_has(error_of([&] { func::vmap(f)(xs); }), "random");
  Tensor same = func::vmap(f, {0}, {0}, "same")(xs), different = func::vmap(f, {0}, {0}, "different")(xs);
  EXPECT_TRUE(same[0].equal(same[1]));
  EXPECT_FALSE(different[0].equal(different[1]));
}

TEST(Vmap, RefusesWhatHasNoSingleValue) {
  Tensor xs = wave({3});
  expect_has(error_of([&] { func::vmap([](const Tensor& x) { return x.item<float>() > 0 ? x : -x; })(xs); }), "vmap");
}

TEST(Vmap, Compiled) {
  Tensor w = wave({5, 2});
  auto body = [&](const Tensor& xs) { return func::vmap([&](const Tensor& x) { return softmax(matmul(x, w), -1); })(xs); };
  auto f = compile(body);
  for (int64_t n : {4, 7}) {
    Tensor xs = wave({n, 3, 5}, double(n));
    expect_close(f(xs), softmax(matmul(xs, w), -1));
  }
}

// Opaque ops, factorisations of matrices among them, run element by element; everything else has a form for the whole batch.
TEST(Vmap, FewOpsNeedALoop) {
  int loops = 0;
  for (auto* op : all_ops())
    if (op->kind == OpKind::kOpaque && needs_batch_loop(*op)) ++loops;
  EXPECT_LE(loops, 19);
}

}  // namespace
}  // namespace sinter
