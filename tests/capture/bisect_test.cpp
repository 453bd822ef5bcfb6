// compiler::bisect(): planted faults are found, named, and left as programs of a few lines.
#include "sinter/capture/bisect.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common.h"
#include "sinter/base/planted.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/bisect/guarded.h"
#include "sinter/engine/bisect/shrink.h"
#include "sinter/graph/rewrite.h"
#include "sinter/loops/fused.h"
#include "sinter/passes/pipeline.h"
#include "tests/support/own_directory.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

using Fault = Bisection::Fault;

int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// A program with several kernels: a norm, a product, and an activation of which one part may be wrong.
Tensor layer(const Tensor& x, const Tensor& w) {
  Tensor norm = (x - x.mean({-1}, true)) * rsqrt(x.square().mean({-1}, true) + 1e-5);
  Tensor h = norm.mm(w);
  return softmax(tanh(h) * 2.0 + erf(h), -1).cumsum(0);
}

Bisection bisect_layer() {
  manual_seed(1);
  return compiler::bisect(layer, randn({24, 32}), randn({32, 40}));
}

void expect_small(const Bisection& found) {
  EXPECT_LT(lines_of(found.source), 30) << found.source;
  EXPECT_LE(found.ops_left, 3) << found.graph;
  EXPECT_TRUE(has(found.source, "int main()"));
  // The graph alone can be read again.
  EXPECT_NO_THROW(Graph::parse(found.graph)) << found.graph;
}

class Bisect : public testing::WithoutThreadSanitizer {};

TEST_F(Bisect, SaysWhenNothingIsWrong) {
  Bisection found = bisect_layer();
  EXPECT_EQ(found.fault, Fault::kNone) << found.text();
  EXPECT_TRUE(has(found.text(), "nothing is wrong"));
}

TEST_F(Bisect, FindsAWrongRule) {
  PlantedFault<PassOutcome> fault([](PassOutcome& outcome) {
    if (outcome.pass != "simplify") return;
    outcome.graph = rewrite(outcome.graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
      bool doubles = node.op->name == "mul" && node.inputs[1].node->op == &kScalarOp;
      if (!doubles || node.inputs[1].node->attrs.as<ScalarAttrs>().value.to_double() != 2) return {};
      return std::vector<Value>{context(node.inputs[0])};
    });
  });
  Bisection found = bisect_layer();
  EXPECT_EQ(found.fault, Fault::kPass) << found.text();
  EXPECT_EQ(found.culprit, "simplify");
  EXPECT_TRUE(has(found.text(), "the pass 'simplify' makes another program of the graph"));
  EXPECT_TRUE(has(found.graph, "mul("));
  EXPECT_EQ(found.ops_left, 1) << found.graph;
  expect_small(found);
}

TEST_F(Bisect, FindsAWrongLowering) {
  PlantedFault<LoopNest> fault([](LoopNest& nest) {
    for (auto& sweep : nest.sweeps)
      for (auto& instr : sweep.body)
        if (instr.kind == InstrKind::kApply && instr.op->name == "sub") instr.op = find_op("add");
  });
  Bisection found = bisect_layer();
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.stage, "lowering") << found.text();
  EXPECT_TRUE(has(found.ops, "sub"));
  EXPECT_TRUE(has(found.where, "bisect_test.cpp:"));
  EXPECT_TRUE(has(found.graph, "sub("));
  expect_small(found);
}

TEST_F(Bisect, FindsAWrongSchedule) {
  // Every second vector is left out.
  PlantedFault<codegen::KernelText> fault([](codegen::KernelText& kernel) {
    if (kernel.text.find("erf(") != std::string::npos) kernel.text = replaced(kernel.text, "+= kLanes", "+= 2 * kLanes");
  });
  auto f = [](const Tensor& x) { return exp(erf(x) - x) + x.sum(); };
  Bisection found = compiler::bisect(f, wave({7, 200}));
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.stage, "schedule") << found.text();
  EXPECT_TRUE(has(found.graph, "erf("));
  expect_small(found);
}

// As LLVM did with a mask select beside bit operations: right text, wrong code.
TEST_F(Bisect, FindsAWrongCompiler) {
  PlantedFault<codegen::KernelText> fault([](codegen::KernelText& kernel) {
    if (kernel.text.find("expm1(") == std::string::npos) return;
    kernel.text = "#ifdef __clang__\n#define expm1(x) (-expm1(x))\n#endif\n" + kernel.text;
  });
  auto f = [](const Tensor& x) { return tanh(x) * (elu(x) + 1.0); };
  Bisection found = compiler::bisect(f, wave({6, 40}));
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.stage, "compiler") << found.text();
  EXPECT_TRUE(has(found.graph, "elu("));
  EXPECT_TRUE(has(found.text(), "g++ makes a right kernel of the same text"));
  expect_small(found);
}

TEST_F(Bisect, FindsACrash) {
  PlantedFault<codegen::KernelText> fault([](codegen::KernelText& kernel) {
    if (kernel.text.find("erf(") == std::string::npos) return;
    size_t body = kernel.text.find("{\n", kernel.text.find("extern \"C\"")) + 2;
    kernel.text.insert(body, "__builtin_trap();\n");
  });
  Bisection found = bisect_layer();
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.how, "crashes");
  EXPECT_TRUE(has(found.evidence, "signal"));
  EXPECT_TRUE(has(found.ops, "erf"));
  EXPECT_TRUE(has(found.graph, "erf("));
  expect_small(found);
}

TEST_F(Bisect, FindsASlowKernel) {
  // Far slower than any machine is busy.
  PlantedFault<codegen::KernelText> fault([](codegen::KernelText& kernel) {
    if (kernel.text.find("erf(") == std::string::npos) return;
    size_t body = kernel.text.find("{\n", kernel.text.find("extern \"C\"")) + 2;
    kernel.text.insert(body, "for (volatile int wait = 0; wait < 100000000;) wait = wait + 1;\n");
  });
  auto f = [](const Tensor& x) { return erf(x) * 2.0 - x; };
  Bisection found = compiler::bisect({.slower_than_eager = true}, f, wave({8, 8}));
  EXPECT_EQ(found.fault, Fault::kSlow) << found.text();
  EXPECT_TRUE(has(found.ops, "erf"));
  EXPECT_TRUE(has(found.source, "compiler::time_text"));
  EXPECT_LT(lines_of(found.source), 30) << found.source;
}

TEST_F(Bisect, TakesCompiledFunctionsAndSymbolicSizes) {
  PlantedFault<LoopNest> fault([](LoopNest& nest) {
    for (auto& sweep : nest.sweeps)
      for (auto& instr : sweep.body)
        if (instr.kind == InstrKind::kApply && instr.op->name == "sub") instr.op = find_op("add");
  });
  auto f = compile([](const Tensor& x, double a) { return exp(x - a).sum({1}); }, {.dynamic = Dynamic::kTrue, .name = "dynamic"});
  Bisection found = compiler::bisect(f, wave({5, 9}), 0.5);
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.program, "dynamic.0");
  expect_small(found);
}

TEST_F(Bisect, FindsAWrongKernelOfTheBackward) {
  // 1 - y * y, the gradient of tanh.
  PlantedFault<LoopNest> fault([](LoopNest& nest) {
    for (auto& sweep : nest.sweeps)
      for (auto& instr : sweep.body)
        if (instr.kind == InstrKind::kApply && instr.op->name == "sub") instr.op = find_op("add");
  });
  auto f = [](const Tensor& x, const Tensor& w) { return std::pair(tanh(x).mm(w), exp(x)); };
  Tensor x = wave({6, 8}).requires_grad_(), w = wave({8, 4}).requires_grad_();
  EXPECT_EQ(compiler::bisect(f, x, w).fault, Fault::kNone);
  Bisection found = compiler::bisect({.backward = true}, f, x, w);
  EXPECT_EQ(found.fault, Fault::kKernel) << found.text();
  EXPECT_EQ(found.program, "f.0.backward");
  expect_small(found);
}

TEST_F(Bisect, SourceIsAProgram) {
  PlantedFault<PassOutcome> fault([](PassOutcome& outcome) {
    if (outcome.pass != "simplify") return;
    outcome.graph = rewrite(outcome.graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
      if (node.op->name != "exp") return {};
      return std::vector<Value>{context(node.inputs[0])};
    });
  });
  Bisection found = compiler::bisect([](const Tensor& x) { return exp(x.t()) * 3.0; }, wave({4, 6}));
  OwnDirectory directory;
  std::ofstream(directory.file("wrong.cpp")) << found.source;
  std::string command = format("g++ -std=c++20 -fsyntax-only -I{} -I{} {} 2> {}", SINTER_TEST_DATA "/../..",
                               SINTER_METHODS_INCLUDE, directory.file("wrong.cpp"),
                               directory.file("errors"));
  EXPECT_EQ(std::system(command.c_str()), 0) << found.source;
}

TEST_F(Bisect, JsonHoldsTheSame) {
  Bisection found;
  found.fault = Fault::kPass;
  found.culprit = "fold";
  EXPECT_TRUE(has(found.json(), "\"fault\":\"pass\""));
  EXPECT_TRUE(has(found.json(), "\"culprit\":\"fold\""));
}

// --- children

TEST(Guarded, TellsResultsErrorsCrashesAndHangs) {
  using bisection::Note;
  using bisection::Outcome;
  auto done = bisection::run_guarded([](const Note& note) { return note("half"), std::string(100000, 'x'); }, 60);
  EXPECT_EQ(done.kind, Outcome::Kind::kDone);
  EXPECT_EQ(done.text.size(), 100000u);
  EXPECT_EQ(done.notes, std::vector<std::string>{"half"});
  auto error = bisection::run_guarded([](const Note&) -> std::string { throw_error("no"); }, 60);
  EXPECT_EQ(error.kind, Outcome::Kind::kError);
  EXPECT_EQ(error.text, "no");
  auto crash = bisection::run_guarded([](const Note& note) -> std::string { return note("before"), std::abort(), ""; }, 60);
  EXPECT_EQ(crash.kind, Outcome::Kind::kCrashed);
  EXPECT_TRUE(has(crash.text, "signal 6"));
  EXPECT_EQ(crash.notes.size(), 1u);
  auto hang = bisection::run_guarded([](const Note&) -> std::string { return ::pause(), ""; }, 0.05);
  EXPECT_EQ(hang.kind, Outcome::Kind::kTimedOut);
}

// --- shrinking

bisection::Trial trial_of(std::string_view text, const TensorList& inputs) {
  bisection::Trial trial{std::make_shared<const Graph>(Graph::parse(text)), {}};
  for (auto& input : inputs) trial.inputs.push_back({TensorArg(input)});
  return trial;
}

TEST(Shrink, KeepsWhatTheFaultNeeds) {
  auto trial = trial_of(R"(
    %0 = input : f32[12, 16]
    %1 = input : f32[16]
    %2 = exp(%0) : f32[12, 16]
    %3 = add(%2, %1) : f32[12, 16]
    %4 = tanh(%3) : f32[12, 16]
    %5 = sum(%4) {dims=[1]} : f32[12]
    %6 = erf(%5) : f32[12]
    return %6, %2
  )", {wave({12, 16}), wave({16})});
  auto has_op = [](const Graph& graph, std::string_view name) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](auto& n) { return n.op->name == name; });
  };
  auto small = bisection::shrink(trial, [&](const bisection::Trial& t) { return has_op(*t.graph, "tanh") && has_op(*t.graph, "sum"); });
  EXPECT_EQ(bisection::op_count(*small.graph), 2) << small.graph->text();
  ASSERT_EQ(small.inputs.size(), 1u);
  EXPECT_EQ(to_string(small.inputs[0].value.tensor().sizes()), "[1, 1]");
  EXPECT_EQ(small.inputs[0].maker, "ones({1, 1})");
}

TEST(Shrink, KeepsValuesThatMatter) {
  auto trial = trial_of("%0 = input : f32[9]\n%1 = exp(%0) : f32[9]\nreturn %1", {arange(9, kFloat32) - 4.0});
  auto small = bisection::shrink(trial, [](const bisection::Trial& t) {
    auto values = t.inputs[0].value.tensor().to_vector<double>();
    return std::count(values.begin(), values.end(), 3.0) == 1 && bisection::op_count(*t.graph) == 1;
  });
  EXPECT_TRUE(small.inputs[0].maker.empty());
  EXPECT_EQ(small.inputs[0].value.tensor().numel(), 8);
}

TEST(Shrink, StaysWithinItsTime) {
  auto trial = trial_of("%0 = input : f32[9]\n%1 = exp(%0) : f32[9]\nreturn %1", {wave({9})});
  int asked = 0;
  auto small = bisection::shrink(trial, [&](auto&) { return ++asked, true; }, {.seconds = 0});
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(small.graph->text(), trial.graph->text());
}

}  // namespace
}  // namespace sinter
