#include "sinter/passes/pipeline.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sinter/base/log.h"

namespace sinter {
namespace {

// (x + (2 - 1)) * 1, and something that nobody needs.
constexpr auto kText =
    "%0 = input : f32[3] \"x\"\n%1 = scalar {value=2} : weak i64[]\n%2 = scalar {value=1} : weak i64[]\n"
    "%3 = sub(%1, %2) : i64[]\n%4 = add(%0, %3) : f32[3]\n%5 = mul(%4, %2) : f32[3]\n%6 = exp(%5) : f32[3]\nreturn "
    "%5\n";

class SkipVariable {
 public:
  explicit SkipVariable(const char* value) { setenv("SINTER_SKIP_PASSES", value, 1); }
  ~SkipVariable() { unsetenv("SINTER_SKIP_PASSES"); }
};

std::vector<std::string> names(const std::vector<PassReport>& reports) {
  std::vector<std::string> out;
  for (auto& report : reports) out.emplace_back(report.name);
  return out;
}

TEST(Pipeline, RunsAllAndReports) {
  std::vector<PassReport> reports;
  std::vector<std::pair<std::string, std::string>> stages;
  PipelineOptions options;
  options.on_stage = [&](std::string_view pass, const std::string& text) { stages.emplace_back(pass, text); };
  Graph out = run_passes(Graph::parse(kText), options, &reports);
  EXPECT_EQ(out.text(),
            "%0 = input : f32[3] \"x\"\n%1 = scalar {value=1} : weak i64[]\n"
            "%2 = full(%1) {dtype=i64} : i64[]\n%3 = add(%0, %2) : f32[3]\nreturn %3\n");
  ASSERT_EQ(names(reports), (std::vector<std::string>{"functionalise", "decompose", "fold", "simplify",
                                                      "common_subexpressions", "dead_code"}));
  EXPECT_EQ(reports.front().nodes_before, 7u);
  EXPECT_EQ(reports.back().nodes_after, 4u);
  EXPECT_TRUE(reports[2].changed);
  EXPECT_FALSE(reports[5].changed);
  for (auto& report : reports) EXPECT_GE(report.seconds, 0);
  ASSERT_EQ(stages.size(), reports.size());
  EXPECT_EQ(stages.back().second, out.text());
  EXPECT_NE(stages[2].second, stages[3].second);
}

TEST(Pipeline, SkipsByName) {
  std::vector<PassReport> reports;
  PipelineOptions options;
  options.skip = {"fold"};
  SkipVariable variable("simplify, decompose");
  Graph out = run_passes(Graph::parse(kText), options, &reports);
  EXPECT_EQ(names(reports), (std::vector<std::string>{"functionalise", "common_subexpressions", "dead_code"}));
  EXPECT_EQ(out.nodes().size(), 6u);
}

TEST(Pipeline, SkippingAllGivesTheGraphItself) {
  SkipVariable variable("functionalise,decompose,fold,simplify,common_subexpressions,dead_code");
  EXPECT_EQ(run_passes(Graph::parse(kText)).text(), kText);
}

TEST(Pipeline, UnknownNamesAreErrors) {
  SkipVariable variable("folds");
  try {
    run_passes(Graph::parse(kText));
    FAIL() << "not noticed";
  } catch (const Error& error) {
    std::string what = error.what();
    EXPECT_NE(what.find("no pass is called 'folds'"), std::string::npos) << what;
    EXPECT_NE(what.find("common_subexpressions, dead_code, decompose, fold"), std::string::npos) << what;
  }
}

TEST(Pipeline, VerifiesAfterEachPass) {
  // The type of the sum is wrong, which adding a node with given types does not see.
  Pass broken{"broken", [](const Graph&) {
                Graph graph;
                Value x = graph.add_input(parse_type("f32[3]"));
                graph.set_outputs({graph.add_typed(*find_op("exp"), {x}, {}, {parse_type("f32[4]")}).result()});
                return graph;
              }};
  EXPECT_THROW(run_passes(Graph::parse(kText), {&broken, 1}), InternalError);
}

TEST(Pipeline, LeavesOutWhatHasNoWork) {
  int asked = 0, runs = 0;
  Pass idle{"idle",
            [&](const Graph&) {
              ++runs;
              return Graph();
            },
            [&](const Graph&) { return ++asked > 2; }};
  std::vector<PassReport> reports;
  // Dead nodes go all the same.
  Graph without_dead = run_passes(Graph::parse(kText), {&idle, 1}, {}, &reports);
  EXPECT_EQ(without_dead.nodes().size(), 6u);
  EXPECT_TRUE(reports.back().changed);
  std::string text = without_dead.text();
  Graph same = run_passes(std::move(without_dead), {&idle, 1}, {}, &reports);
  EXPECT_EQ(same.text(), text);
  EXPECT_FALSE(reports.back().changed);
  EXPECT_EQ(runs, 0);
  run_passes(std::move(same), {&idle, 1});
  EXPECT_EQ(runs, 1);
}

TEST(Pipeline, LogsWhatChanged) {
  set_logs("passes");
  ::testing::internal::CaptureStderr();
  run_passes(Graph::parse(kText));
  std::string log = ::testing::internal::GetCapturedStderr();
  set_logs("");
  EXPECT_NE(log.find("fold: 6 → 5 nodes"), std::string::npos) << log;
  EXPECT_NE(log.find("full(%"), std::string::npos) << log;
  EXPECT_NE(log.find("dead_code: (unchanged)"), std::string::npos) << log;
}

TEST(Decompose, KeepsWhatItIsToldTo) {
  Graph graph = Graph::parse(
      "%0 = input : f32[2, 4, 8]\n%1 = scaled_dot_product_attention(%0, %0, %0) : f32[2, 4, 8]\nreturn %1\n");
  EXPECT_EQ(decompose(graph, {.keep = {"scaled_dot_product_attention"}}).text(), graph.text());
  auto takes = [](DType dtype) {
    return DecomposeOptions{.keep = {}, .target = {.attention = {.dtypes = {dtype}, .most_dimensions = 4}}};
  };
  EXPECT_EQ(decompose(graph, takes(kFloat32)).text(), graph.text());
  EXPECT_EQ(decompose(graph, takes(kFloat64)).text(), decompose(graph).text());
  EXPECT_GT(decompose(graph).nodes().size(), 5u);
}

}  // namespace
}  // namespace sinter
