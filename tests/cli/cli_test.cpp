// The `sinter` command, run as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sinter/graph/graph.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "tests/cli/command.h"

namespace sinter {
namespace {

using testing::run_command;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Cli, HelpNamesEveryCommandAndShowsExamples) {
  auto help = run_command("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (auto part : {"generate", "chat", "forward", "explain", "demo", "ops", "show", "info", "cache", "--version",
                    "Examples:", "Exit codes:"})
    EXPECT_TRUE(contains(help.out, part)) << part << " is missing in\n" << help.out;
  auto version = run_command("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("sinter ", 0), 0u) << version.out;
}

TEST(Cli, AWrongCommandLineEndsWithTwoAndSaysWhy) {
  struct Case {
    const char *arguments, *message;
  };
  for (auto& c : {Case{"", "subcommand"}, Case{"fly", "fly"}, Case{"demo --threads 0", "--threads"},
                  Case{"demo --repeat many", "--repeat"}, Case{"show", "OP"}, Case{"show tanh --dtype f99", "f99"},
                  Case{"show tanh --stage dust", "--stage"}, Case{"info --colour", "--colour"}}) {
    auto result = run_command(c.arguments);
    EXPECT_EQ(result.code, 2) << "sinter " << c.arguments;
    EXPECT_EQ(result.out, "") << "sinter " << c.arguments;
    EXPECT_TRUE(contains(result.err, c.message)) << "sinter " << c.arguments << ": " << result.err;
  }
}

TEST(Cli, AnErrorWhileRunningEndsWithOneAndAMessage) {
  struct Case {
    const char *arguments, *environment, *message;
  };
  for (auto& c :
       {Case{"ops gelo", "", "did you mean 'gelu'?"}, Case{"show nothing_like_it", "", "`sinter ops` lists them"},
        Case{"show sum --on 'x[2, 3] | dims=[5]'", "", "sum"},
        Case{"show sum --on 'x[2, 3] | colour=red'", "", "colour"}, Case{"show sum --on 'y[2]'", "", "y[2]"},
        Case{"show mm --on 'x[2, 3]'", "", "mm"}, Case{"info", "SINTER_CPU_ISA=mmx", "SINTER_CPU_ISA"}}) {
    auto result = run_command(c.arguments, c.environment);
    EXPECT_EQ(result.code, 1) << "sinter " << c.arguments;
    EXPECT_EQ(result.out, "") << "sinter " << c.arguments;
    EXPECT_EQ(result.err.rfind("sinter: ", 0), 0u) << result.err;
    EXPECT_TRUE(contains(result.err, c.message)) << "sinter " << c.arguments << ": " << result.err;
  }
}

TEST(Cli, AFullDiskIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto result = run_command("ops >/dev/full #");
  EXPECT_EQ(result.code, 1);
}

TEST(Cli, OpsListsTheWholeRegistry) {
  auto result = run_command("ops --json");
  ASSERT_EQ(result.code, 0) << result.err;
  auto listed = nlohmann::json::parse(result.out);
  std::map<std::string, nlohmann::json> by_name;
  for (auto& op : listed) by_name[op["name"]] = op;
  for (auto* op : all_ops()) {
    if (op == &kInputOp || op == &kScalarOp) continue;
    ASSERT_TRUE(by_name.count(std::string(op->name))) << op->name;
    auto& entry = by_name[std::string(op->name)];
    EXPECT_EQ(entry["operands"], op->inputs) << op->name;
    EXPECT_EQ(entry["differentiable"], op->grad || op->kind == OpKind::kComposite) << op->name;
    EXPECT_NE(entry["differentiable"], entry.contains("no_gradient_because")) << op->name;
    EXPECT_EQ(entry["samples"].size(), op->samples.size()) << op->name;
  }
  EXPECT_EQ(by_name.size() + 2, all_ops().size());
  EXPECT_TRUE(contains(run_command("ops").out, "tanh"));
}

TEST(Cli, OpsDescribesOneOp) {
  auto result = run_command("ops tanh");
  EXPECT_EQ(result.code, 0) << result.err;
  for (auto part : {"pointwise", "(x) -> tanh(x)", "4 ulp"}) EXPECT_TRUE(contains(result.out, part)) << result.out;
  EXPECT_EQ(nlohmann::json::parse(run_command("ops sum --json").out)["kind"], "reduce");
}

TEST(Cli, OpsPrintsTheDeclarationsOfFunctions) {
  auto op = run_command("ops tanh").out;
  for (auto part : {"#include <sinter/ops/pointwise.h>", "// Hyperbolic tangent.", "Tensor tanh(const TensorArg& x);  // method, also in place"})
    EXPECT_TRUE(contains(op, part)) << op;
  // No op of its own, and under the comment of another function.
  auto function = run_command("ops vstack").out;
  EXPECT_TRUE(contains(function, "Tensor vstack(const TensorList& tensors);")) << function;
  EXPECT_TRUE(contains(function, "// Side by side, one below the other")) << function;
  EXPECT_TRUE(contains(run_command("ops solve").out, "Tensor linalg::solve(const TensorArg& A"));
  EXPECT_TRUE(contains(run_command("ops hstak").err, "did you mean 'hstack'?"));
  auto described = nlohmann::json::parse(run_command("ops where --json").out);
  EXPECT_EQ(described["functions"].size(), 2u);
  EXPECT_EQ(described["functions"][1]["comment"], "The positions where it holds, one tensor per dimension.");
}

TEST(Cli, ShowPrintsAGraphThatParses) {
  auto result = run_command("show sum --on 'x[64, 1000] | dims=[1]' --stage graph --dtype bf16");
  ASSERT_EQ(result.code, 0) << result.err;
  Graph graph = Graph::parse(result.out);
  graph.verify();
  EXPECT_EQ(graph.text(), result.out);
  EXPECT_EQ(to_string(graph.outputs()[0].type()), "bf16[n0]");
}

TEST(Cli, ShowPrintsEachStage) {
  auto all = run_command("show tanh");
  ASSERT_EQ(all.code, 0) << all.err;
  size_t at = 0;
  for (auto stage : {"graph", "loops", "schedule", "code"}) {
    auto one = run_command(std::string("show tanh --stage ") + stage);
    EXPECT_EQ(one.code, 0);
    std::string section = std::string("--- ") + stage + "\n" + one.out;
    EXPECT_EQ(all.out.find(section), at) << stage;
    at += section.size();
  }
  EXPECT_EQ(at, all.out.size());
  auto fixed = run_command("show tanh --on 'x[777]' --stage loops --fixed-sizes");
  EXPECT_TRUE(contains(fixed.out, "777")) << fixed.out;
}

TEST(Cli, ShowPrintsTheSameLoopsForADeviceThatIsNotThere) {
  const std::string command = "show sum --on 'x[64, 1000] | dims=[1]' ";
  EXPECT_EQ(run_command(command + "--stage loops --device cuda").out, run_command(command + "--stage loops").out);
  EXPECT_EQ(run_command(command + "--stage schedule --device cuda").out,
            "rows, 4 at a time, along memory; sweep 0 unrolled 2 times\n");
  EXPECT_TRUE(contains(run_command(command + "--stage code --device cuda").out, "__global__"));
}

TEST(Cli, ShownSourceCompiles) {
  auto result = run_command("show gelu --stage source --dtype f16");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(runtime::compile_cpu(result.out, "shown")->find_symbol("k_gelu"), nullptr);
}

TEST(Cli, ShowKnowsEveryOp) {
  for (auto* op : all_ops()) {
    if (op == &kInputOp || op == &kScalarOp) continue;
    auto result = run_command("show " + std::string(op->name));
    // Some ops take only integers.
    if (result.code == 1) result = run_command("show " + std::string(op->name) + " --dtype i64");
    EXPECT_EQ(result.code, 0) << op->name << ": " << result.err;
    EXPECT_TRUE(contains(result.out, "--- graph\n")) << op->name;
  }
}

TEST(Cli, InfoFollowsTheEnvironment) {
  auto result = run_command("info --json", "SINTER_CPU_ISA=avx2 SINTER_NUM_THREADS=3");
  ASSERT_EQ(result.code, 0) << result.err;
  auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["threads"], 3);
  EXPECT_NE(report["instruction_set"], "avx512");
  EXPECT_TRUE(report["clang"] || report["gxx"]);
  auto without = run_command("info", "SINTER_CLANG_PLUGIN=/nowhere.so");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_TRUE(contains(without.out, "no: clang")) << without.out;
  auto text = run_command("info");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "kernel cache")) << text.out;
}

}  // namespace
}  // namespace sinter
