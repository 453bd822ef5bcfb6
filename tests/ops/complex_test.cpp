// Complex tensors where PyTorch's values say nothing: looks that share memory, compiled functions, errors, leaves, numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/functional.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/report.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/dlpack.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"

namespace sinter {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

Tensor wave(const Shape& shape, DType dtype = kComplexFloat) {
  Tensor angle = arange(shape.numel(), kFloat64).reshape(shape);
  return complex(cos(angle), sin(angle * 1.7) * 2).to(dtype);
}

std::vector<Z> values(const Tensor& x) { return x.to_vector<Z>(); }

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.sizes().numbers(), b.sizes().numbers());
  EXPECT_TRUE(a.allclose(b, 1e-5, 1e-6)) << a << "\n" << b;
}

TEST(Complex, IsMadeOfNumbers) {
  Tensor x = tensor({C(1, 2), C(3, -4)});
  EXPECT_EQ(x.dtype(), kComplexFloat);
  EXPECT_TRUE(x.is_complex());
  EXPECT_FALSE(x.is_floating_point());
  EXPECT_EQ(x.element_size(), 8);
  EXPECT_EQ(tensor({Z(1, 2)}).dtype(), kComplexFloat);
  EXPECT_EQ(tensor({Z(1, 2)}, kComplexDouble).dtype(), kComplexDouble);
  EXPECT_EQ(x.data_ptr<C>()[1], C(3, -4));
  EXPECT_EQ(x[1].item<Z>(), Z(3, -4));
  EXPECT_EQ(values(zeros({2}, kComplexDouble)), (std::vector<Z>{0, 0}));
  EXPECT_EQ(values(ones({2}, kComplexFloat)), (std::vector<Z>{1, 1}));
  EXPECT_EQ(values(full({2}, Z(1, -2))), (std::vector<Z>(2, Z(1, -2))));
  EXPECT_EQ(full({1}, Z(1, -2)).dtype(), kComplexFloat);
  EXPECT_EQ(values(eye(2, kComplexFloat)), (std::vector<Z>{1, 0, 0, 1}));
  EXPECT_EQ(values(empty_like(x).fill_(C(0, 1))), (std::vector<Z>{Z(0, 1), Z(0, 1)}));
  C numbers[] = {C(1, 1), C(2, 2), C(3, 3), C(4, 4)};
  EXPECT_EQ(values(from_blob(numbers, {2}, IntList{2}, kComplexFloat)), (std::vector<Z>{Z(1, 1), Z(3, 3)}));
}

TEST(Complex, DrawsHaveVarianceOne) {
  manual_seed(5);
  Tensor x = randn({20000}, kComplexFloat);
  EXPECT_NEAR(real(x).var(0).item<double>(), 0.5, 0.02);
  EXPECT_NEAR(imag(x).var(0).item<double>(), 0.5, 0.02);
  Tensor u = rand({1000}, kComplexDouble);
  EXPECT_GE(view_as_real(u).min().item<double>(), 0);
  EXPECT_NEAR(view_as_real(u).mean().item<double>(), 0.5, 0.05);
}

TEST(Complex, PrintsBothParts) {
  EXPECT_EQ(to_string(tensor({C(1, 2), C(3, -4)})), "tensor([1.+2.j, 3.-4.j])");
  EXPECT_EQ(to_string(tensor({C(0.5f, 1)})), "tensor([0.5000+1.j])");
  EXPECT_EQ(to_string(tensor(Z(1, -0.25), kComplexDouble)), "tensor(1.-0.2500j, dtype=c128)");
}

TEST(Complex, PromotesAsPyTorchDoes) {
  auto dtype_of_sum = [](const TensorArg& a, const TensorArg& b) { return add(a, b).dtype(); };
  Tensor c = ones({2}, kComplexFloat), z = ones({2}, kComplexDouble);
  EXPECT_EQ(dtype_of_sum(c, z), kComplexDouble);
  EXPECT_EQ(dtype_of_sum(c, ones({2}, kFloat64)), kComplexDouble);
  EXPECT_EQ(dtype_of_sum(c, ones({}, kFloat64)), kComplexFloat);
  EXPECT_EQ(dtype_of_sum(c, ones({}, kComplexDouble)), kComplexFloat);
  EXPECT_EQ(dtype_of_sum(ones({2}, kFloat64), ones({}, kComplexFloat)), kComplexDouble);
  EXPECT_EQ(dtype_of_sum(ones({2}), Z(0, 1)), kComplexFloat);
  EXPECT_EQ(dtype_of_sum(ones({2}, kFloat64), Z(0, 1)), kComplexDouble);
  EXPECT_EQ(dtype_of_sum(ones({2}, kInt64), Z(0, 1)), kComplexFloat);
  EXPECT_EQ(dtype_of_sum(z, 2.5), kComplexDouble);
  EXPECT_EQ(promote_types(kFloat16, kComplexFloat), kComplexFloat);
}

TEST(Complex, LooksShareMemory) {
  Tensor x = wave({2, 3});
  EXPECT_TRUE(real(x).is_alias_of(x));
  EXPECT_TRUE(view_as_real(x).is_alias_of(x));
  EXPECT_TRUE(x.t()[1].is_alias_of(x));
  real(x).fill_(7);
  imag(x.t()).select(0, 1).zero_();
  view_as_real(x)[1][2][1] = 5;
  EXPECT_EQ(x[0][1].item<Z>(), Z(7, 0));
  EXPECT_EQ(x[1][2].item<Z>(), Z(7, 5));
  x.slice(1, 1)[0] = C(1, 1);
  EXPECT_EQ(x[0][2].item<Z>(), Z(1, 1));
  Tensor pairs = arange(12, kFloat32).reshape({3, 2, 2});
  view_as_complex(pairs).mul_(C(0, 1));
  EXPECT_EQ(pairs[2][1].to_vector<float>(), (std::vector<float>{-11, 10}));
  EXPECT_NE(error_of([&] { view_as_complex(ones({3, 2}).t().contiguous().t()); }).find("view_as_complex"), std::string::npos);
  EXPECT_NE(error_of([&] { view_as_complex(ones({4, 3})); }).find("must have size 2"), std::string::npos);
  EXPECT_NE(error_of([&] { view_as_complex(ones({5}).slice(0, 1).view({2, 2})); }).find("clone() it first"), std::string::npos);
  EXPECT_NE(error_of([&] { x.t().view({6}); }).find("view"), std::string::npos);
}

TEST(Complex, ConvertsByCopying) {
  Tensor x = zeros({2}, kComplexDouble);
  x.copy_(tensor({1.5, 2.5}));
  EXPECT_EQ(values(x), (std::vector<Z>{1.5, 2.5}));
  Tensor r = zeros({2});
  r.copy_(tensor({Z(3, 1), Z(4, 2)}));
  EXPECT_EQ(r.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(tensor({Z(0, 1), Z(0, 0)}).to(kBool).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_NE(error_of([&] { r.add_(Z(0, 1)); }).find("c64"), std::string::npos);
  EXPECT_NE(error_of([&] { full({2}, Z(0, 1), kFloat32); }).find("not a real one"), std::string::npos);
}

TEST(Complex, WhatHasNoMeaningIsRefused) {
  Tensor x = wave({2, 3});
  for (auto& f : std::vector<std::function<void()>>{
           [&] { lt(x, 1); }, [&] { relu(x); }, [&] { floor(x); }, [&] { x.max(); }, [&] { sort(x); }, [&] { clamp(x, 0, 1); },
           [&] { fmod(x, 2); }, [&] { softmax(x, 0); }, [&] { x.median(); }, [&] { arange(0, 3, kComplexFloat); }}) {
    std::string text = error_of(f);
    EXPECT_TRUE(text.find("complex") != text.npos || text.find("c64") != text.npos) << text;
  }
  EXPECT_NE(error_of([&] { lt(x, 1); }).find("lt: not defined for complex numbers, and an operand is c64[2, 3]"), std::string::npos);
  EXPECT_NE(error_of([&] { x.clone().requires_grad_().sum().backward(); }).find("backward"), std::string::npos);
}

TEST(Complex, LeavesGatherComplexGradients) {
  Tensor x = wave({3}, kComplexDouble).requires_grad_();
  abs(x).square().sum().backward();
  expect_same(x.grad(), x.detach() * 2);
  abs(x).square().sum().backward();
  expect_same(x.grad(), x.detach() * 4);
  Tensor y = x.detach().clone().requires_grad_();
  (y * y).backward(ones({3}, kComplexDouble));
  expect_same(y.grad(), conj(y.detach()) * 2);
}

TEST(Complex, GradientsGoThroughWritesToParts) {
  Tensor a = arange(3, kFloat64).requires_grad_(), x = wave({3}, kComplexDouble).requires_grad_();
  Tensor y = x * 1;
  real(y).add_(a);
  y[1] = 0;
  abs(y).square().sum().backward();
  Tensor moved = real(x.detach()) + a.detach(), keep = tensor({1.0, 0.0, 1.0}, kFloat64);
  expect_same(a.grad(), moved * 2 * keep);
  expect_same(x.grad(), complex(moved * 2 * keep, imag(x.detach()) * 2 * keep));
}

TEST(Complex, AgreesWithFiniteDifferences) {
  auto formula = [](const TensorList& x) -> TensorList {
    Tensor z = view_as_complex(x[0]);
    return {view_as_real(exp(z * C(0, 1)) * tanh(z) / (z + 3) + sqrt(z * z + 4)), abs(z), angle(z)};
  };
  EXPECT_TRUE(gradcheck(formula, {view_as_real(wave({4}, kComplexDouble)).clone()}));
}

TEST(Complex, GraphsHoldTheTwoLooks) {
  Graph graph = Graph::parse(
      "%0 = input : c64[3] \"x\"\n%1 = view_as_real(%0) : f32[3, 2]\n%2 = neg(%1) : f32[3, 2]\n"
      "%3 = view_as_complex(%2) : c64[3]\nreturn %3\n");
  EXPECT_EQ(Graph::parse(graph.text()).text(), graph.text());
  Tensor x = wave({3});
  Array input = to_array(x);
  expect_same(to_tensor(interpret(graph, {&input, 1})[0]), -x);
}

// --- compiled

TEST(ComplexCompiled, AgreesWithEager) {
  auto f = [](const Tensor& x, const Tensor& y) { return exp(x * y + C(0, 1)) - conj(x) / y; };
  auto compiled = compile(f);
  for (int64_t n : {4, 5, 9}) expect_same(compiled(wave({n}), wave({n}) + 2), f(wave({n}), wave({n}) + 2));
  expect_same(compiled(wave({3, 4}).t(), wave({4, 3}) + 2), f(wave({3, 4}).t(), wave({4, 3}) + 2));
  expect_same(compiled(wave({4}, kComplexDouble), wave({4}) + 2), f(wave({4}, kComplexDouble), wave({4}) + 2));
}

TEST(ComplexCompiled, IsOneKernel) {
  auto chain = [](const Tensor& x, const Tensor& y) { return exp(x * y) + x * C(0.5f, 1) - y; };
  auto told = compiler::explain(compile(chain), wave({64, 8}), wave({64, 8}));
  ASSERT_EQ(told.programs.size(), 1u);
  ASSERT_TRUE(told.programs[0].reports.at(0));
  EXPECT_EQ(told.programs[0].reports[0]->kernels.size(), 1u) << told.fusion();
}

TEST(ComplexCompiled, WritesReachTheArguments) {
  auto f = [](const Tensor& x) {
    real(x).mul_(2);
    x[0] = C(1, 1);
    return x.sum();
  };
  Tensor a = wave({3}), b = a.clone();
  Tensor sum = compile(f)(a), want = f(b);
  expect_same(a, b);
  expect_same(sum, want);
}

TEST(ComplexCompiled, ReturnsLooks) {
  auto f = compile([](const Tensor& x) { return TensorList{real(x), x.t(), view_as_real(x), x * 2}; });
  Tensor x = wave({2, 3});
  TensorList out = f(x);
  EXPECT_TRUE(out[0].is_alias_of(x));
  EXPECT_TRUE(out[1].is_alias_of(x));
  EXPECT_TRUE(out[2].is_alias_of(x));
  expect_same(out[1], x.t());
  expect_same(out[3], x * 2);
}

TEST(ComplexCompiled, GradientsAreThoseOfEager) {
  auto f = [](const Tensor& x, const Tensor& w) { return matmul(x, w) * exp(x.select(1, 0)).unsqueeze(1); };
  auto loss = [](const Tensor& y) { return abs(y).square().sum() + real(y).sum(); };
  Tensor x = wave({3, 2}, kComplexDouble).requires_grad_(), w = wave({2, 2}, kComplexDouble).requires_grad_();
  loss(f(x, w)).backward();
  Tensor gx = x.grad().clone(), gw = w.grad().clone();
  x.mutable_grad().reset();
  w.mutable_grad().reset();
  loss(compile(f)(x, w)).backward();
  expect_same(x.grad(), gx);
  expect_same(w.grad(), gw);
}

TEST(ComplexCompiled, WholeTrainingStep) {
  auto step = [](const Tensor& w, const Tensor& x) {
    abs(w * x - 1).square().sum().backward();
    NoGradGuard no_grad;
    w.sub_(w.grad() * 0.01);
    w.mutable_grad().reset();
  };
  Tensor a = wave({4}).requires_grad_(), b = a.detach().clone().requires_grad_(), x = wave({4}) + 1;
  auto compiled = compile(step);
  for (int i = 0; i < 3; ++i) {
    step(a, x);
    compiled(b, x);
  }
  expect_same(a.detach(), b.detach());
}

TEST(ComplexCompiled, NumbersArePartOfTheProgram) {
  auto f = compile([](const Tensor& x, Z factor) { return x * factor; });
  Tensor x = wave({3});
  expect_same(f(x, Z(0, 1)), x * Z(0, 1));
  expect_same(f(x, Z(2, 1)), x * Z(2, 1));
  auto g = compile([](const Tensor& x, const Scalar& factor) { return x * factor; });
  expect_same(g(x, Z(0, 1)), x * Z(0, 1));
  expect_same(g(x, Z(0, 2)), x * Z(0, 2));
  expect_same(g(x, 2.0), x * 2);
}

TEST(ComplexCompiled, MakesTensorsOfItsOwn) {
  auto f = [](const Tensor& x) {
    Tensor out = zeros({3}, kComplexFloat);
    out[1] = x;
    return out + tensor({C(1, 1), C(2, 2), C(3, 3)}) + full({3}, Z(0, 1)).contiguous();
  };
  Tensor x = tensor(C(5, 5));
  expect_same(compile(f)(x), f(x));
}

TEST(ComplexVmap, SeesOneOfABatch) {
  Tensor x = wave({4, 3}), y = wave({3});
  auto f = [](const Tensor& row, const Tensor& other) { return (row * other).sum() + row[0]; };
  expect_same(func::vmap(f, {0, {}})(x, y), (x * y).sum(1) + x.select(1, 0));
}

TEST(ComplexDlpack, RoundTrips) {
  Tensor x = wave({2, 3}).t();
  expect_same(from_dlpack(to_dlpack(x)), x);
}

}  // namespace
}  // namespace sinter
