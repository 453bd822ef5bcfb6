// Ops that a program registers: with a kernel, with a decomposition, with gradients and attributes.
#include "sinter/ops/custom.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/run.h"
#include "sinter/graph/trace.h"
#include "sinter/sinter.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"

namespace sinter {
namespace {

struct SwishAttrs {
  double beta = 1;
  SINTER_FIELDS(beta)
};

std::vector<Type> same_type(const OpCall& call) {
  check(is_floating(call.inputs[0].dtype), "takes floating tensors, not {}", call.inputs[0].dtype);
  return {call.inputs[0]};
}

template <class T>
Tensor map_elements(const Tensor& given, T (*f)(T, double), double parameter) {
  Tensor x = given.contiguous(), y = empty(x.sizes(), x.dtype());
  for (int64_t i = 0; i < int64_t(x.numel()); ++i) y.data_ptr<T>()[i] = f(x.data_ptr<T>()[i], parameter);
  return y;
}
template <class T>
T swish(T x, double beta) { return x / (1 + std::exp(T(-beta) * x)); }

// The kernel counts its runs.
std::atomic<int> kernel_runs = 0;

TensorList swish_kernel(std::span<const Tensor> x, const Attrs& attrs) {
  ++kernel_runs;
  double beta = attrs.as<SwishAttrs>().beta;
  if (x[0].dtype() == kFloat64) return {map_elements<double>(x[0], swish<double>, beta)};
  return {map_elements<float>(x[0].to(kFloat32), swish<float>, beta).to(x[0].dtype())};
}

Tensor swish_by_ops(const Tensor& x, double beta) { return x * sigmoid(x * beta); }

const RegisteredOp<SwishAttrs>& kernel_swish() {
  static const auto op = register_op<SwishAttrs>({
      .name = "test::swish",
      .infer = same_type,
      .run = swish_kernel,
      .grad =
          [](const GradCall& c) {
            double beta = c.as<SwishAttrs>().beta;
            Tensor s = sigmoid(c[0].tensor() * beta);
            return TensorList{c.grad() * (s + c.out() * (1 - s) * beta)};
          },
  });
  return op;
}

const RegisteredOp<SwishAttrs>& composed_swish() {
  static const auto op = register_op<SwishAttrs>({
      .name = "test::composed_swish",
      .infer = same_type,
      .decompose = [](std::span<const TensorArg> x, const Attrs& a) -> TensorList {
        return {swish_by_ops(x[0].tensor(), a.as<SwishAttrs>().beta)};
      },
  });
  return op;
}

void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (auto* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

Graph traced(const std::function<Tensor(const Tensor&)>& f, Shape shape = {4}) {
  Type type{.dtype = kFloat32, .shape = std::move(shape), .device = {}};
  Graph graph = trace([&](const TensorList& in) { return TensorList{f(in[0])}; }, {&type, 1});
  graph.verify();
  return graph;
}

int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (auto& node : graph.nodes()) n += node.op->name == op;
  return n;
}

void expect_runs_as(const Graph& graph, const Tensor& x, const Tensor& want) {
  TensorArg inputs[] = {x};
  EXPECT_TRUE(allclose(run_graph(graph, inputs)[0], want));
  Array array = to_array(x);
  EXPECT_TRUE(allclose(to_tensor(interpret(graph, {&array, 1})[0]), want));
}

TEST(CustomOp, RunsEagerly) {
  Tensor x = tensor({{-1.0, 0.5}, {2.0, 3.0}});
  EXPECT_TRUE(allclose(kernel_swish()(x), swish_by_ops(x, 1)));
  EXPECT_TRUE(allclose(kernel_swish()(x.t()), swish_by_ops(x.t(), 1)));
  EXPECT_TRUE(allclose(kernel_swish()({x}, {.beta = 2}), swish_by_ops(x, 2)));
  EXPECT_TRUE(allclose(composed_swish()({x}, {.beta = 2}), swish_by_ops(x, 2)));
}

TEST(CustomOp, IsFoundByName) {
  EXPECT_EQ(find_op("test::swish"), &kernel_swish().op());
  EXPECT_EQ(find_op("test::nothing"), nullptr);
  for (auto* op : all_ops()) EXPECT_EQ(op->name.find("::"), std::string_view::npos) << op->name;
}

TEST(CustomOp, StandsOpaqueWithAKernelOnly) {
  Graph graph = traced([](const Tensor& x) { return kernel_swish()({x * 2}, {.beta = 0.5}) + 1; });
  EXPECT_EQ(count(graph, "test::swish"), 1);
  Graph again = Graph::parse(graph.text());
  EXPECT_EQ(again.text(), graph.text());
  expect_contains(graph.text(), {"= test::swish(%2) {beta=0.5} : f32[4]"});
  Tensor x = tensor({-1.0, 0.5, 2.0, 3.0});
  int before = kernel_runs;
  expect_runs_as(again, x, swish_by_ops(x * 2, 0.5) + 1);
  EXPECT_EQ(kernel_runs - before, 2);  // the interpreter has no other opinion
}

TEST(CustomOp, InlinesWithADecomposition) {
  Graph graph = traced([](const Tensor& x) { return composed_swish()(x); });
  EXPECT_EQ(count(graph, "test::composed_swish"), 0);
  EXPECT_EQ(count(graph, "sigmoid"), 1);
  Tensor x = tensor({-1.0, 0.5, 2.0, 3.0});
  expect_runs_as(graph, x, swish_by_ops(x, 1));
  // As text it may stand whole.
  Graph whole = Graph::parse("%0 = input : f32[4]\n%1 = test::composed_swish(%0) {beta=2} : f32[4]\nreturn %1");
  expect_runs_as(whole, x, swish_by_ops(x, 2));
}

TEST(CustomOp, GradientsAgreeWithFiniteDifferences) {
  TensorList x = {tensor({-1.0, 0.5, 2.0}).to(kFloat64)};
  for (auto* op : {&kernel_swish(), &composed_swish()})
    EXPECT_TRUE(gradcheck([&](const TensorList& in) { return TensorList{(*op)({in[0]}, {.beta = 1.5})}; }, x,
                          {.second_order = true}))
        << op->op().name;
}

TEST(CustomOp, EagerGradients) {
  for (auto* op : {&kernel_swish(), &composed_swish()}) {
    Tensor x = tensor({-1.0, 0.5, 2.0}).requires_grad_(), reference = x.detach().clone().requires_grad_();
    (*op)(x).sum().backward();
    swish_by_ops(reference, 1).sum().backward();
    EXPECT_TRUE(allclose(x.grad(), reference.grad())) << op->op().name;
  }
}

// A gradient of its own takes the place of the decomposition's, eagerly and under capture.
TEST(CustomOp, OwnGradientOfADecomposition) {
  static const auto op = register_op({
      .name = "test::straight_through",
      .infer = same_type,
      .decompose = [](std::span<const TensorArg> x, const Attrs&) -> TensorList { return {round(x[0])}; },
      .grad = [](const GradCall& c) { return TensorList{c.grad() * 3}; },
  });
  Tensor x = tensor({0.4, 1.6}).requires_grad_();
  Tensor y = op(x);
  EXPECT_TRUE(allclose(y, tensor({0.0, 2.0})));
  y.sum().backward();
  EXPECT_TRUE(allclose(x.grad(), full({2}, 3.0)));
  Graph graph = traced(
      [](const Tensor& given) {
        Tensor x = given.detach().requires_grad_();
        return autograd::grad({op(x).sum()}, {x})[0];
      },
      {2});
  expect_runs_as(graph, tensor({0.4, 1.6}), full({2}, 3.0));
  EXPECT_EQ(count(traced([](const Tensor& x) { return op(x); }), "round"), 1);
}

// The body gives its operand back, whose history must stay its own.
TEST(CustomOp, ReversesAGradient) {
  static const auto op = register_op({
      .name = "test::reverse_gradient",
      .infer = same_type,
      .decompose = [](std::span<const TensorArg> x, const Attrs&) -> TensorList { return {x[0].tensor()}; },
      .grad = [](const GradCall& c) { return TensorList{-c.grad()}; },
  });
  Tensor x = tensor({0.4, 1.6}).requires_grad_();
  Tensor twice = x * 2;
  (op(twice) + twice * 5).sum().backward();
  EXPECT_TRUE(allclose(x.grad(), full({2}, 8.0)));
}

// Eagerly the kernel runs; a capture takes the decomposition, and so does a gradient.
TEST(CustomOp, KernelBesideADecomposition) {
  static const auto op = register_op<SwishAttrs>({
      .name = "test::both",
      .infer = same_type,
      .run = swish_kernel,
      .decompose = [](std::span<const TensorArg> x, const Attrs& a) -> TensorList {
        return {swish_by_ops(x[0].tensor(), a.as<SwishAttrs>().beta)};
      },
  });
  Tensor x = tensor({-1.0, 0.5});
  int before = kernel_runs;
  EXPECT_TRUE(allclose(op(x), swish_by_ops(x, 1)));
  EXPECT_EQ(kernel_runs - before, 1);
  EXPECT_EQ(count(traced([](const Tensor& x) { return op(x); }), "sigmoid"), 1);
  Tensor leaf = x.clone().requires_grad_(), reference = x.clone().requires_grad_();
  op(leaf).sum().backward();
  swish_by_ops(reference, 1).sum().backward();
  EXPECT_TRUE(allclose(leaf.grad(), reference.grad()));
}

TEST(CustomOp, SeveralOperandsAndResults) {
  static const auto op = register_op({
      .name = "test::sum_and_difference",
      .inputs = 2,
      .infer =
          [](const OpCall& c) {
            check(c.shape(0).same_as(c.shape(1)), "shapes {} and {} differ", c.shape(0), c.shape(1));
            return std::vector{c.inputs[0], c.inputs[0]};
          },
      .run = [](std::span<const Tensor> x, const Attrs&) { return TensorList{x[0] + x[1], x[0] - x[1]}; },
      .grad = [](const GradCall& c) {
        return c.each([&] { return c.grad(0) + c.grad(1); }, [&] { return c.grad(0) - c.grad(1); });
      },
  });
  Tensor x = tensor({5.0, 6.0}).requires_grad_(), y = tensor({1.0, 2.0});
  TensorList both = op.many({x, y});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_TRUE(allclose(both[1], tensor({4.0, 4.0})));
  (both[0] + both[1]).sum().backward();
  EXPECT_TRUE(allclose(x.grad(), full({2}, 2.0)));
  EXPECT_TRUE(allclose(op(x, y), tensor({6.0, 8.0})));
  std::string refused = error_of([&] { op(x, ones({3})); });
  expect_contains(refused, {"test::sum_and_difference: shapes [2] and [3] differ", "custom_op_test.cpp:"});
  expect_contains(error_of([&] { op(x); }),
                  {"test::sum_and_difference: takes 2 operands, not 1", "custom_op_test.cpp:"});
  Graph graph = traced([](const Tensor& x) {
    TensorList both = op.many({x, x * 2});
    return both[0] * both[1];
  });
  Tensor z = tensor({1.0, 2.0, 3.0, 4.0});
  expect_runs_as(Graph::parse(graph.text()), z, z * -3 * z);
}

TEST(CustomOp, AResultIsNeverItsOperand) {
  static const auto op = register_op({
      .name = "test::same",
      .infer = same_type,
      .run = [](std::span<const Tensor> x, const Attrs&) { return TensorList{x[0]}; },
      .grad = [](const GradCall& c) { return TensorList{c.grad()}; },
  });
  Tensor x = ones({2}).requires_grad_();
  Tensor y = op(x);
  EXPECT_FALSE(y.is_alias_of(x));
  y.sum().backward();
  EXPECT_TRUE(allclose(x.grad(), ones({2})));
}

TEST(CustomOp, WithoutAGradientBackwardSaysSo) {
  static const auto op = register_op({.name = "test::no_gradient", .infer = same_type, .run = [](auto x, auto&) {
                                        return TensorList{x[0] * 2};
                                      }});
  Tensor y = op(ones({2}).requires_grad_()).sum();
  expect_contains(error_of([&] { y.backward(); }), {"test::no_gradient", "no gradient can be taken", "without one"});
}

// What a definition gets wrong names the op.
TEST(CustomOp, WrongResultsAreErrors) {
  auto with_kernel = [](const char* name, TensorList (*run)(const Tensor&)) {
    return register_op({.name = name, .infer = same_type, .run = [run](std::span<const Tensor> x, const Attrs&) {
                          return run(x[0]);
                        }});
  };
  Tensor x = ones({2, 3});
  auto shape = with_kernel("test::wrong_shape", [](const Tensor& x) { return TensorList{x.sum()}; });
  expect_contains(error_of([&] { shape(x); }),
                  {"test::wrong_shape: result 0 of the kernel is f32[], but its type function says f32[2, 3]",
                   "custom_op_test.cpp:"});
  auto dtype = with_kernel("test::wrong_dtype", [](const Tensor& x) { return TensorList{x.to(kFloat64)}; });
  expect_contains(error_of([&] { dtype(x); }), {"test::wrong_dtype: ", "f64[2, 3]", "f32[2, 3]"});
  auto number = with_kernel("test::wrong_count", [](const Tensor& x) { return TensorList{x, x}; });
  expect_contains(error_of([&] { number(x); }), {"test::wrong_count: ", "gives 2 results"});
  auto undefined = with_kernel("test::undefined", [](const Tensor&) { return TensorList{Tensor()}; });
  expect_contains(error_of([&] { undefined(x); }), {"test::undefined: ", "undefined"});
  auto throwing = with_kernel("test::throwing", [](const Tensor&) -> TensorList { throw std::runtime_error("broke"); });
  expect_contains(error_of([&] { throwing(x); }), {"test::throwing: its kernel failed: broke"});
  expect_contains(error_of([&] { kernel_swish()(ones({2}, kInt64)); }),
                  {"test::swish: takes floating tensors, not i64", "custom_op_test.cpp:"});
  auto body = register_op({.name = "test::wrong_body",
                           .infer = same_type,
                           .decompose = [](std::span<const TensorArg> x, const Attrs&) -> TensorList {
                             return {x[0].tensor().sum()};
                           }});
  expect_contains(error_of([&] { body(x); }), {"test::wrong_body: result 0 of the decomposition is f32[]"});
  auto gradient = register_op({.name = "test::wrong_gradient",
                               .infer = same_type,
                               .run = [](std::span<const Tensor> x, const Attrs&) { return TensorList{x[0] * 2}; },
                               .grad = [](const GradCall& c) { return TensorList{c.grad().sum()}; }});
  Tensor y = gradient(ones({2}).requires_grad_()).sum();
  expect_contains(error_of([&] { y.backward(); }), {"test::wrong_gradient: the gradient of operand 0 has shape []"});
}

TEST(CustomOp, WrongDefinitionsAreErrors) {
  auto kernel = [](std::span<const Tensor> x, const Attrs&) { return TensorList{x[0] * 2}; };
  kernel_swish();
  expect_contains(error_of([&] { register_op({.name = "test::swish", .infer = same_type, .run = kernel}); }),
                  {"an op is called test::swish already", "custom_op_test.cpp:"});
  for (auto* name : {"swish", "", "::x", "a::", "a::b c", "a::1", "a:b", "a:::b"})
    expect_contains(error_of([&] { register_op({.name = name, .infer = same_type, .run = kernel}); }),
                    {"is not a name of an op"});
  expect_contains(error_of([&] { register_op({.name = "test::untyped", .infer = {}, .run = kernel}); }),
                  {"test::untyped has no type function"});
  expect_contains(error_of([&] { register_op({.name = "test::empty", .infer = same_type}); }),
                  {"test::empty has neither a kernel"});
  EXPECT_EQ(find_op("test::empty"), nullptr);
  expect_contains(error_of([] {
                    Graph::parse("%0 = input : f32[4]\n%1 = test::swish(%0) {alpha=2} : f32[4]\nreturn %1");
                  }),
                  {"test::swish: no attribute is called 'alpha'"});
}

TEST(CustomOp, RegistersFromManyThreads) {
  std::atomic<int> registered = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        std::string name = format("threads::op{}", i);
        try {
          register_op({.name = name, .infer = same_type, .run = swish_kernel});
          ++registered;
        } catch (const Error&) {
          ++refused;
        }
        EXPECT_NE(find_op(name), nullptr);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(registered, 25);
  EXPECT_EQ(refused, 75);
}

}  // namespace
}  // namespace sinter
