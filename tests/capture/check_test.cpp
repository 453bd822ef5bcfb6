// {"check", N}: calls beside the referee. Right programs are left alone, planted faults are named.
#include <cstdlib>

#include "common.h"
#include "sinter/base/planted.h"
#include "sinter/graph/rewrite.h"
#include "sinter/loops/fused.h"
#include "sinter/passes/pipeline.h"

namespace sinter {
namespace {

const CompileOptions kThrowing{.options = {{"check", int64_t(1)}, {"throw", true}}};

// Every generated kernel adds where it should subtract.
void add_for_sub(LoopNest& nest) {
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kApply && instr.op->name == "sub") instr.op = find_op("add");
}

// A rule of `simplify` that takes x * 2 for x.
void lose_doubling(PassOutcome& outcome) {
  if (outcome.pass != "simplify") return;
  outcome.graph = rewrite(outcome.graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op->name != "mul" || node.inputs[1].node->op != &kScalarOp) return {};
    if (node.inputs[1].node->attrs.as<ScalarAttrs>().value.to_double() != 2) return {};
    return std::vector<Value>{context(node.inputs[0])};
  });
}

std::string warning_of(const std::function<void()>& f) { return logged("", f); }

TEST(Check, NamesTheKernelItsOpsAndTheLine) {
  PlantedFault<LoopNest> fault(add_for_sub);
  std::string line;
  auto f = compile(
      [&](const Tensor& x, const Tensor& y) {
        Tensor a = exp(x).mm(y);
        line = line_before(-1);
        return tanh(x - y);
      },
      {.options = {{"check", int64_t(1)}}, .name = "checked"});
  Tensor x = wave({8, 8}), y = wave({8, 8}, 1);
  std::string text = warning_of([&] { EXPECT_TRUE(close(f(x, y), tanh(x + y))); });
  EXPECT_TRUE(has(text, "check: the kernel 'sub_tanh' of checked.0 is wrong"));
  EXPECT_TRUE(has(text, "it computes sub, tanh of f32[8, 8], f32[8, 8] (loops)"));
  EXPECT_TRUE(has(text, line));
  EXPECT_TRUE(has(text, "result 0, f32[8, 8]: element ["));
  EXPECT_TRUE(has(text, "of 64 elements are wrong"));
  // One warning a kernel.
  EXPECT_EQ(warning_of([&] { f(x, y); }), "");
}

TEST(Check, SaysBothValues) {
  PlantedFault<LoopNest> fault(add_for_sub);
  auto f = compile([](const Tensor& x) { return (x - 1.0).abs(); }, kThrowing);
  std::string text = error_of([&] { f(full({3}, 4.0)); });
  EXPECT_TRUE(has(text, "is 5 instead of 3"));
  EXPECT_TRUE(has(text, "3 of 3 elements are wrong"));
}

TEST(Check, ThrowsOnceTheCallIsOver) {
  PlantedFault<LoopNest> fault(add_for_sub);
  auto f = compile([](Tensor x, const Tensor& y) { x.copy_(exp(x - y)); }, kThrowing);
  Tensor x = wave({8}), y = wave({8}, 1), want = exp(x + y);
  EXPECT_TRUE(has(error_of([&] { f(x, y); }), "is wrong"));
  EXPECT_TRUE(close(x, want));
}

TEST(Check, ChecksEveryNthCall) {
  PlantedFault<LoopNest> fault(add_for_sub);
  auto f = compile([](const Tensor& x) { return exp(x - 1); }, {.options = {{"check", int64_t(3)}, {"throw", true}}});
  Tensor x = wave({4});
  int thrown = 0;
  for (int call = 0; call < 7; ++call) try {
      f(x);
    } catch (const Error&) {
      thrown += call % 3 == 0;
    }
  EXPECT_EQ(thrown, 3);
}

TEST(Check, EnvironmentStandsInForTheOption) {
  ::setenv("SINTER_CHECK", "5,throw", 1);
  auto f = compile([](const Tensor& x) { return x; });
  auto g = compile([](const Tensor& x) { return x; }, {.options = {{"check", int64_t(0)}}});
  ::setenv("SINTER_CHECK", "often", 1);
  std::string message = error_of([] { compile([](const Tensor& x) { return x; }); });
  ::unsetenv("SINTER_CHECK");
  EXPECT_EQ(int_option(f.function().options(), "check"), 5);
  EXPECT_EQ(int_option(f.function().options(), "throw"), 1);
  EXPECT_EQ(int_option(g.function().options(), "check"), 0);
  EXPECT_TRUE(has(message, "SINTER_CHECK=N"));
}

TEST(Check, FindsAWrongPass) {
  PlantedFault<PassOutcome> fault(lose_doubling);
  std::string line;
  auto f = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        return exp(x) * 2.0;
      },
      kThrowing);
  std::string text = error_of([&] { f(wave({4, 4})); });
  EXPECT_TRUE(has(text, "every kernel computes what it should"));
  EXPECT_TRUE(has(text, "not those of the graph as captured"));
  EXPECT_TRUE(has(text, "compiler::bisect()"));
  EXPECT_TRUE(has(text, line));
}

TEST(Check, FindsAWrongBackward) {
  auto f = compile([](const Tensor& x) { return tanh(x) * x; }, kThrowing);
  Tensor x = wave({16}).requires_grad_();
  f(x).sum().backward();  // right
  // The gradient of tanh is 1 - y * y.
  PlantedFault<LoopNest> fault(add_for_sub);
  compiler::reset();
  Tensor y = f(x).sum();
  std::string text = error_of([&] { y.backward(); });
  EXPECT_TRUE(has(text, ".backward is wrong"));
}

TEST(Check, FindsAWrongUserBackend) {
  register_once("off by one", [](const Graph&) -> GraphFunction {
    return [](std::span<const TensorArg> inputs) { return TensorList{inputs[0].tensor() + 1.0}; };
  });
  CompileOptions options = kThrowing;
  options.backend = "off by one";
  auto f = compile([](const Tensor& x) { return x + 2.0; }, options);
  EXPECT_TRUE(has(error_of([&] { f(ones({3})); }), "is 2 instead of 3"));
}

// --- right programs pass, whatever rounding does to them

TEST(Check, LeavesRightProgramsAlone) {
  manual_seed(3);
  auto f = compile(
      [](const Tensor& x, const Tensor& w, const Tensor& ids, Tensor cache) {
        Tensor h = layer_norm(x, {32}).mm(w);
        Tensor mask = (h > 0) & (h.floor() != h);       // near ties
        Tensor g = where(mask, gelu(h), h * 0.01) / (h.abs().amax({-1}, true) + 1e-3);
        Tensor p = softmax(g * 1000.0, -1);              // magnifies errors
        Tensor best = (g + x).argmax(-1);
        cache.index_copy_(0, ids, p);
        Tensor noise = dropout(p, 0.5) + randn({8, 32});
        return std::tuple(noise, best, cumsum(g, 0), (g * 7).to(kInt64), g.to(kBFloat16) * 3.0, var(x, {0}));
      },
      kThrowing);
  Tensor x = randn({8, 32}), w = randn({32, 32}), ids = arange(8), cache = zeros({10, 32});
  for (int call = 0; call < 2; ++call) f(x, w, ids, cache);
}

TEST(Check, LeavesGradientsAlone) {
  manual_seed(4);
  auto f = compile(
      [](const Tensor& x, const Tensor& w, const Tensor& target) {
        return cross_entropy(relu(x.mm(w)).mm(w.t()), target) + dropout(x, 0.1).mean();
      },
      kThrowing);
  Tensor x = randn({6, 8}).requires_grad_(), w = randn({8, 8}).requires_grad_();
  for (int call = 0; call < 2; ++call) f(x, w, tensor({0, 1, 2, 3, 4, 5})).backward();
}

TEST(Check, TakesDynamicSizesAndSizesThatDataDecides) {
  CompileOptions options = kThrowing;
  options.dynamic = Dynamic::kTrue;
  auto f = compile([](const Tensor& x) { return x.view({-1}).masked_select(x.view({-1}) > 0).exp() + x.sum(); }, options);
  for (int64_t rows : {2, 3, 5}) f(wave({rows, 4}));
}

TEST(Check, TakesLargeProducts) {
  manual_seed(5);
  auto f = compile([](const Tensor& x, const Tensor& w) { return silu(x.mm(w)).to(kFloat32).sum({0}) / 7.0; }, kThrowing);
  f(randn({65, 300}), randn({300, 130}));
  f(randn({65, 300}).to(kBFloat16), randn({300, 130}).to(kBFloat16));
  f(randn({65, 300}).to(kFloat64), randn({300, 130}).to(kFloat64));
}

TEST(Check, TakesOverflowAndNan) {
  auto f = compile([](const Tensor& x) { return std::tuple(log(exp(x)), exp(x) - exp(x), 1.0 / exp(x), x / (x - x)); }, kThrowing);
  f(tensor({-200.0, -1.0, 0.0, 100.0, 200.0}).to(kFloat32));
}

TEST(Check, WorksInTheBackground) {
  PlantedFault<LoopNest> fault(add_for_sub);
  CompileOptions options = kThrowing;
  options.options["background"] = true;
  auto f = compile([](const Tensor& x) { return exp(x - 1); }, options);
  Tensor x = wave({4});
  f(x);
  compiler::wait(f);
  EXPECT_TRUE(has(error_of([&] { f(x); }), "is wrong"));
}

TEST(Check, IsLogged) {
  auto f = compile([](const Tensor& x) { return exp(x - 1).sum(); }, kThrowing);
  EXPECT_TRUE(has(logged("check", [&] { f(wave({4})); }), "steps checked in"));
}

}  // namespace
}  // namespace sinter
