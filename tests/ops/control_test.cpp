// cond and while_loop: eagerly, as nodes of a captured graph, and as text.
#include "sinter/ops/control.h"

#include <gtest/gtest.h>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/run.h"
#include "sinter/graph/trace.h"
#include "sinter/sinter.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"

namespace sinter {
namespace {

Type f32(Shape shape) { return {.dtype = kFloat32, .shape = std::move(shape), .device = {}}; }

// A captured function with the eager tensors it met.
struct Captured {
  Graph graph;
  TensorList tensors;

  Captured(const ListFunction& f, const std::vector<Type>& types) {
    GraphTracer tracer;
    TracerScope scope(&tracer);
    TensorList arguments;
    for (auto& type : types) arguments.push_back(tracer.add_input(type));
    std::vector<Value> outputs;
    for (auto& tensor : f(arguments)) outputs.push_back(tracer.value_of(tensor));
    tracer.graph().set_outputs(std::move(outputs));
    tensors = tracer.captured();
    graph = std::move(tracer.graph());
    graph.verify();
  }
  TensorList run(const TensorList& inputs) const {
    std::vector<TensorArg> all(inputs.begin(), inputs.end());
    all.insert(all.end(), tensors.begin(), tensors.end());
    return run_graph(graph, all);
  }
  TensorList referee(const TensorList& inputs) const {
    std::vector<Array> all;
    for (auto* list : {&inputs, &tensors})
      for (auto& t : *list) all.push_back(to_array(t));
    TensorList out;
    for (auto& array : interpret(graph, all)) out.push_back(to_tensor(array));
    return out;
  }
  int count(std::string_view op) const {
    int n = 0;
    for (auto& node : graph.nodes()) n += node.op->name == op;
    return n;
  }
};

// The eager function, the graph run node by node and the referee give the same.
void expect_agreement(const ListFunction& f, const Captured& captured, const TensorList& inputs) {
  TensorList eager = f(inputs), run = captured.run(inputs), referee = captured.referee(inputs);
  ASSERT_EQ(run.size(), eager.size());
  ASSERT_EQ(referee.size(), eager.size());
  for (size_t i = 0; i < eager.size(); ++i) {
    EXPECT_TRUE(allclose(run[i], eager[i])) << run[i] << "\n" << eager[i];
    EXPECT_TRUE(allclose(referee[i], eager[i])) << referee[i] << "\n" << eager[i];
  }
}

void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (auto* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

Tensor branch(const Tensor& x, const Tensor& w) {
  return cond(
      x.sum() > 0, [&](const Tensor& x) { return tanh(x) * w; }, [](const Tensor& x) { return x * x; }, x);
}

TEST(Cond, EagerlyCallsOneBranch) {
  int then_calls = 0, else_calls = 0;
  auto run = [&](const Tensor& x) {
    return cond(
        x.sum() > 0, [&](const Tensor& x) { return ++then_calls, x + 1; },
        [&](const Tensor& x) { return ++else_calls, x - 1; }, x);
  };
  EXPECT_EQ(run(ones({2})).sum().item<float>(), 4);
  EXPECT_EQ(run(-ones({2})).sum().item<float>(), -4);
  EXPECT_EQ(then_calls, 1);
  EXPECT_EQ(else_calls, 1);
  EXPECT_EQ(cond(1, [] { return ones({}); }, [] { return zeros({}); }).item<float>(), 1);
  EXPECT_EQ(cond(false, [](auto x) { return x; }, [](auto x) { return -x; }, ones({})).item<float>(), -1);
  auto swap = [](const TensorList& in) { return TensorList{in[1], in[0]}; };
  EXPECT_EQ(cond(true, swap, swap, {ones({}), zeros({})})[1].item<float>(), 1);
}

TEST(Cond, EagerGradientIsThatOfTheBranch) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_(), w = tensor({3.0, 4.0}).requires_grad_();
  branch(-x, w).sum().backward();
  EXPECT_TRUE(allclose(x.grad(), 2 * x.detach()));
  EXPECT_FALSE(w.grad().defined());
}

TEST(Cond, StaysInACapturedGraph) {
  Tensor w = tensor({3.0, 4.0});
  auto f = [&](const TensorList& in) -> TensorList { return {branch(in[0] * 2, w) + 1}; };
  Captured captured(f, {f32({2})});
  EXPECT_EQ(captured.count("cond"), 1);
  EXPECT_EQ(captured.count("tanh"), 0);
  ASSERT_EQ(captured.tensors.size(), 1u);
  EXPECT_TRUE(captured.tensors[0].is_same(w));
  for (double sign : {1.0, -1.0}) expect_agreement(f, captured, {tensor({0.5, 0.25}) * sign});
}

// Values of the outer capture that branches reach by reference, some only one of them, become operands once.
TEST(Cond, CapturesTracedTensorsOfTheOutside) {
  auto f = [](const TensorList& in) -> TensorList {
    Tensor a = in[0] + 1, b = in[1] * 2;
    return {cond(
        a.sum() > b.sum(), [&] { return a * b + a; }, [&] { return b - in[0]; })};
  };
  Captured captured(f, {f32({3}), f32({3})});
  const Node& node = *captured.graph.outputs()[0].node;
  EXPECT_EQ(node.op->name, "cond");
  EXPECT_EQ(node.inputs.size(), 4u);  // the predicate, a, b and in[0]
  expect_agreement(f, captured, {tensor({1.0, 2.0, 3.0}), tensor({0.0, 1.0, 0.0})});
  expect_agreement(f, captured, {tensor({1.0, 2.0, 3.0}), tensor({4.0, 5.0, 6.0})});
}

TEST(Cond, Nests) {
  auto f = [](const TensorList& in) -> TensorList {
    Tensor twice = in[0] * 2;
    return {cond(
        in[0].sum() > 0,
        [&](const Tensor& x) {
          Tensor y = x + 1;
          return cond(
              x.sum() > 2, [&](const Tensor& x) { return x * y * twice; }, [&](const Tensor&) { return y - twice; }, x);
        },
        [&](const Tensor& x) { return x - 1; }, in[0])};
  };
  Captured captured(f, {f32({2})});
  EXPECT_EQ(captured.count("cond"), 1);
  for (double v : {3.0, 0.5, -1.0}) expect_agreement(f, captured, {full({2}, v)});
  Graph again = Graph::parse(captured.graph.text());
  EXPECT_EQ(again.text(), captured.graph.text());
}

TEST(Cond, GivesSeveralResults) {
  auto f = [](const TensorList& in) -> TensorList {
    auto [a, b] = cond(
        in[0].sum() > 0, [](const Tensor& x) { return std::tuple(x, x.sum()); },
        [](const Tensor& x) { return std::tuple(-x, x.amax()); }, in[0]);
    return {a, b};
  };
  Captured captured(f, {f32({2})});
  expect_agreement(f, captured, {tensor({1.0, 2.0})});
  expect_agreement(f, captured, {tensor({1.0, -2.0})});
  // The graph's result is a value of its own, though the branch gives its operand.
  Tensor x = tensor({1.0, 2.0});
  EXPECT_FALSE(captured.run({x})[0].is_alias_of(x));
}

TEST(Cond, BindsSymbolicSizes) {
  Dim n = Dim::symbol("s0");
  auto f = [](const TensorList& in) -> TensorList {
    return {cond(
        in[0].sum() > 0, [](const Tensor& x) { return x.reshape({x.size(0) * 2}); },
        [](const Tensor& x) { return zeros({x.size(0) * 2}) + x.sum(); }, in[0])};
  };
  Captured captured(f, {f32({n, 2})});
  for (int64_t size : {2, 3}) {
    expect_agreement(f, captured, {ones({size, 2})});
    expect_agreement(f, captured, {-ones({size, 2})});
  }
}

// Questions about sizes go to the tracer outside, which has the hints.
TEST(Cond, AsksTheOuterTracerAboutSizes) {
  GraphTracer tracer;
  tracer.set_hint("s0", 7);
  TracerScope scope(&tracer);
  Tensor x = tracer.add_input(f32({Dim::symbol("s0")}));
  bool larger = false;
  int64_t number = 0;
  auto ask = [&](const Tensor& x) {
    larger = x.size(0) > 5;
    number = x.size(0).to_int();
    return x;
  };
  cond(x.sum() > 0, ask, ask, x);
  EXPECT_TRUE(larger);
  EXPECT_EQ(number, 7);
}

TEST(Cond, RoundTripsAsText) {
  Tensor w = tensor({3.0, 4.0});
  Captured captured([&](const TensorList& in) -> TensorList { return {branch(in[0], w)}; }, {f32({2})});
  std::string text = captured.graph.text();
  Graph again = Graph::parse(text);
  EXPECT_EQ(again.text(), text);
  EXPECT_EQ(again.hash(), captured.graph.hash());
  EXPECT_EQ(again.outputs()[0].node->attrs, captured.graph.outputs()[0].node->attrs);
  expect_contains(text, {"then_branch={%0 = input : f32[2]; ", "; return %"});
  expect_contains(error_of([] {
                    Graph::parse("%0 = input : bool[]\n%1 = cond(%0) {then_branch={%0 = what() : f32[]; return %0}} "
                                 ": f32[]\nreturn %1");
                  }),
                  {"line 2", "no op is called 'what'"});
}

TEST(Cond, EqualNodesAreOne) {
  auto f = [](const TensorList& in) -> TensorList {
    auto once = [&](double by) {
      return cond(
          in[0].sum() > 0, [&](const Tensor& x) { return x * by; }, [](const Tensor& x) { return x; }, in[0]);
    };
    return {once(2), once(2), once(3)};
  };
  EXPECT_EQ(Captured(f, {f32({2})}).count("cond"), 2);
}

// First and second order, through captures and by the referee alone.
TEST(Cond, GradientAgreesWithFiniteDifferences) {
  for (double sign : {1.0, -1.0}) {
    auto f = [&](const TensorList& in) -> TensorList {
      Tensor a = exp(in[0]);
      return {cond(
          (in[0] * sign).sum() > 0, [&](const Tensor& x) { return sin(x) * a * in[1]; },
          [&](const Tensor& x) { return x * x * x + in[1]; }, in[0])};
    };
    TensorList inputs = {tensor({0.3, 0.4}).to(kFloat64), tensor({1.5, -0.5}).to(kFloat64)};
    EXPECT_TRUE(gradcheck(f, inputs, {.second_order = true}));
  }
}

// A captured graph run eagerly on tensors that want gradients, one of them twice, gives the eager gradient.
TEST(Cond, GradientOfARunGraph) {
  auto f = [](const TensorList& in) -> TensorList {
    return {cond(
        in[2].sum() > 0, [](const Tensor& x, const Tensor& y) { return x * x * y; },
        [](const Tensor& x, const Tensor&) { return x.exp(); }, in[0], in[1])};
  };
  Captured captured(f, {f32({2}), f32({2}), f32({})});
  for (double flag : {1.0, -1.0}) {
    auto gradients = [&](auto&& run) {
      Tensor x = tensor({0.5, 2.0}).requires_grad_();
      Tensor y = run(TensorList{x, x, scalar_tensor(flag).to(kFloat32)})[0];
      Tensor first = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
      return TensorList{first, autograd::grad({first.sum()}, {x})[0]};
    };
    TensorList got = gradients([&](const TensorList& in) { return captured.run(in); }), want = gradients(f);
    EXPECT_TRUE(allclose(got[0], want[0])) << got[0] << want[0];
    EXPECT_TRUE(allclose(got[1], want[1])) << got[1] << want[1];
  }
}

TEST(Cond, RefusesBranchesThatDiffer) {
  auto differ = [](auto then_f, auto else_f) {
    return error_of([&] {
      Captured([&](const TensorList& in) -> TensorList { return {cond(in[0].sum() > 0, then_f, else_f, in[0])}; },
               {f32({2})});
    });
  };
  auto same = [](const Tensor& x) { return x; };
  expect_contains(differ(same, [](const Tensor& x) { return x.sum(); }),
                  {"then_f gives (f32[2])", "else_f gives (f32[])", "control_test.cpp:"});
  expect_contains(differ([](const Tensor& x) { return x > 0; }, same), {"(bool[2])", "(f32[2])"});
  expect_contains(error_of([] {
                    Captured(
                        [](const TensorList& in) {
                          return cond(
                              in[0].sum() > 0, [](const TensorList& x) { return x; },
                              [](const TensorList& x) { return TensorList{x[0], x[0]}; }, in);
                        },
                        {f32({2})});
                  }),
                  {"(f32[2])", "(f32[2], f32[2])"});
}

TEST(Cond, RefusesAPredicateThatIsNotOneBool) {
  auto same = [](const Tensor& x) { return x; };
  Tensor x = ones({2});
  expect_contains(error_of([&] { cond(x > 0, same, same, x); }), {"predicate must be one bool", "control_test.cpp:"});
  expect_contains(error_of([&] { cond(x.sum(), same, same, x); }), {"predicate must be one bool", "f32"});
}

TEST(Cond, RefusesWhatACaptureCannotHold) {
  auto inside = [](auto f) {
    return error_of([&] {
      Captured([&](const TensorList& in) -> TensorList { return {cond(in[0].sum() > 0, f, f, in[0])}; }, {f32({2})});
    });
  };
  expect_contains(inside([](const Tensor& x) { return nonzero(x); }), {"depends on the data"});
  expect_contains(inside([](const Tensor& x) { return rand_like(x); }), {"random numbers"});
  // A branch's own value that leaks into the other branch.
  expect_contains(inside([](const Tensor&) { return Tensor(); }), {"undefined tensor", "control_test.cpp:"});
  Tensor leaked;
  expect_contains(inside([&](const Tensor& x) {
                    Tensor own = x * 2;
                    Tensor y = leaked.defined() ? own + leaked : own;
                    leaked = own;
                    return y;
                  }),
                  {"outside the capture that made it"});
}

// The line inside a branch is the one reported.
TEST(Cond, ReportsTheLineInsideABranch) {
  int line = 0;
  std::string message = error_of([&] {
    Captured(
        [&](const TensorList& in) -> TensorList {
          return {cond(
              in[0].sum() > 0,
              [&](const Tensor& x) {
                line = __LINE__ + 1;
                return x + ones({3});
              },
              [](const Tensor& x) { return x; }, in[0])};
        },
        {f32({2})});
  });
  expect_contains(message, {"control_test.cpp:"});
  EXPECT_NE(message.find(":" + std::to_string(line)), std::string::npos) << message;
}

TensorList halve(const TensorList& in) {
  auto [x, n] = while_loop([](const Tensor& x, const Tensor&) { return x.abs().amax() > 1; },
                           [](const Tensor& x, const Tensor& n) { return std::tuple(x / 2, n + 1); }, in[0],
                           zeros({}, kInt64));
  return {x, n};
}

TEST(WhileLoop, RunsEagerlyWithGradients) {
  Tensor x = tensor({3.0, -5.0}).requires_grad_();
  TensorList out = halve({x});
  EXPECT_EQ(out[1].item<int64_t>(), 3);
  out[0].sum().backward();
  EXPECT_TRUE(allclose(x.grad(), full({2}, 0.125)));
}

TEST(WhileLoop, StaysInACapturedGraph) {
  Captured captured(halve, {f32({2})});
  EXPECT_EQ(captured.count("while_loop"), 1);
  expect_agreement(halve, captured, {tensor({3.0, -5.0})});
  expect_agreement(halve, captured, {tensor({300.0, 1.0})});
  expect_agreement(halve, captured, {tensor({0.5, 0.5})});  // not once
  Tensor x = tensor({0.5, 0.5});
  EXPECT_FALSE(captured.run({x})[0].is_alias_of(x));
  EXPECT_EQ(Graph::parse(captured.graph.text()).text(), captured.graph.text());
}

TEST(WhileLoop, TakesOneTensorAndTheOutside) {
  Tensor step = tensor({0.5, 1.5});
  auto f = [&](const TensorList& in) -> TensorList {
    Tensor limit = in[1] * 2;
    return {while_loop([&](const Tensor& x) { return x.amax() < limit; }, [&](const Tensor& x) { return x + step; },
                       in[0])};
  };
  Captured captured(f, {f32({2}), f32({})});
  EXPECT_EQ(captured.graph.outputs()[0].node->inputs.size(), 3u);  // x, the limit, the step
  expect_agreement(f, captured, {zeros({2}), full({}, 3.0)});
}

TEST(WhileLoop, KeepsItsTypes) {
  auto with_body = [](const ListFunction& body) {
    return error_of([&] {
      Captured(
          [&](const TensorList& in) {
            return while_loop([](const TensorList& s) { return TensorList{s[0].sum() > 0}; }, body, in);
          },
          {f32({2})});
    });
  };
  expect_contains(with_body([](const TensorList& s) { return TensorList{s[0].sum()}; }),
                  {"keep the types of the state, (f32[2])", "gives (f32[])", "control_test.cpp:"});
  auto twice = [](const TensorList& s) { return TensorList{s[0], s[0]}; };
  expect_contains(with_body(twice), {"2 results for a state of 1"});
  std::string message = error_of([] {
    while_loop([](const Tensor& x) { return x; }, [](const Tensor& x) { return x; }, ones({}));
  });
  expect_contains(message, {"while_loop", "one bool", "control_test.cpp:"});
}

TEST(WhileLoop, HasNoGradientWhenCaptured) {
  Captured captured(halve, {f32({2})});
  Tensor x = tensor({3.0, -5.0}).requires_grad_();
  Tensor y = captured.run({x})[0].sum();
  expect_contains(error_of([&] { y.backward(); }), {"while_loop", "no gradient can be taken", "how often"});
}

}  // namespace
}  // namespace sinter
