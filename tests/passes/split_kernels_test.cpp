// Kernels taken apart again and again: the graph means the same every time, and in the end has none.
#include "sinter/passes/split_kernels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/interpreter.h"
#include "sinter/loops/fused.h"
#include "tests/support/random_inputs.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::set<const Node*> kernels_of(const Graph& graph) {
  std::set<const Node*> out;
  for (auto& node : graph.nodes())
    if (node.op == &fused_op()) out.insert(&node);
  return out;
}

// What stands behind ---- in every golden file of the passes that make kernels.
std::vector<Graph> grouped_graphs() {
  std::vector<Graph> out;
  for (auto* pass : {"fuse", "nest"})
    for (auto& entry : fs::directory_iterator(fs::path(SINTER_SOURCE_DIR) / "tests" / "ir" / pass)) {
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      out.push_back(Graph::parse(text.str().substr(text.str().find("\n----\n") + 6)));
    }
  return out;
}

TEST(SplitKernels, MeansTheSameUntilNothingIsLeft) {
  size_t split = 0;
  for (auto& graph : grouped_graphs()) {
    auto inputs = testing::random_inputs(graph);
    auto want = interpret(graph, inputs);
    Graph now = split_kernels(graph, {});
    EXPECT_EQ(kernels_of(now).size(), kernels_of(graph).size());
    int rounds = 0;
    while (!kernels_of(now).empty()) {
      ASSERT_LT(++rounds, 10) << now.text();
      now = split_kernels(now, kernels_of(now));
      now.verify();
      verify_fused(now);
      auto got = interpret(now, inputs);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(testing::difference(to_tensor(got[i]), want[i], {.ulp = 0x1p15, .absolute = 0x1p-7}), "")
            << now.text();
      ++split;
    }
  }
  EXPECT_GT(split, 60u);
}

// Only what is named.
TEST(SplitKernels, LeavesOthersWhole) {
  Graph graph = Graph::parse(
      "%0 = input : f32[4]\n%1 = fused(%0) {body={%0 = input : f32[4]; %1 = exp(%0) : f32[4]; %2 = tanh(%1) : f32[4]; "
      "return %2}, "
      "domain=[4]} : f32[4]\n%2 = fused(%1) {body={%0 = input : f32[4]; %1 = neg(%0) : f32[4]; %2 = abs(%1) : f32[4]; "
      "return %2}, "
      "domain=[4]} : f32[4]\nreturn %2\n");
  Graph split = split_kernels(graph, {&graph.nodes()[1]});
  EXPECT_EQ(split.text(),
            "%0 = input : f32[4]\n%1 = exp(%0) : f32[4]\n%2 = tanh(%1) : f32[4]\n"
            "%3 = fused(%2) {body={%0 = input : f32[4]; %1 = neg(%0) : f32[4]; %2 = abs(%1) : f32[4]; return %2}, "
            "domain=[4]} : f32[4]\n"
            "return %3\n");
}

}  // namespace
}  // namespace sinter
