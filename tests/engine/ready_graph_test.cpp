#include "sinter/engine/executable/ready_graph.h"

#include <gtest/gtest.h>

#include "sinter/base/build_id.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/ops/custom.h"
#include "sinter/ops/pointwise.h"
#include "sinter/runtime/code_store.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

Graph captured(const std::string& line, bool on_one_line = false) {
  Graph graph;
  Value x = graph.add_input({.dtype = kFloat32, .shape = {4, 8}, .device = {}}, "x");
  Value y = graph.add(*find_op("exp"), {x}, {}, line + ":1").result();
  Value z = graph.add(*find_op("add"), {y, x}, find_op("add")->parse({}), line + (on_one_line ? ":1" : ":2")).result();
  graph.set_outputs({z});
  return graph;
}

Program program_of(Graph graph) { return {.graph = std::move(graph), .symbols = {}, .writes = {}, .name = "ready_graph_test"}; }

TEST(ReadyGraph, TextKeepsLinesAsNumbers) {
  Graph graph = captured("model.cpp");
  std::vector<std::string> lines;
  std::string text = stored_text(graph, lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"model.cpp:1", "model.cpp:2"}));
  EXPECT_EQ(text.find("model.cpp"), std::string::npos);
  EXPECT_EQ(stored_graph(text, lines).text(true), graph.text(true));
  EXPECT_EQ(stored_graph(text, {"a:7", "b:8"}).nodes()[1].where, "a:7");
  EXPECT_THROW(stored_graph(text, {"a:7"}), Error);
}

TEST(ReadyGraph, SecondCaptureFindsItAndHasItsOwnLines) {
  ASSERT_FALSE(build_id().empty());
  OwnDirectory directory;
  runtime::CodeStore store(directory.path().string());
  Program first = program_of(captured("before.cpp")), second = program_of(captured("after.cpp"));
  make_ready_graph(first, planning_pipeline(cpu_engine().target()), store);
  EXPECT_EQ(store.entries().size(), 1u);
  make_ready_graph(second, planning_pipeline(cpu_engine().target()), store);
  EXPECT_EQ(store.entries().size(), 1u);
  EXPECT_TRUE(first.grouped && second.grouped);
  EXPECT_EQ(first.graph.text(), second.graph.text());
  EXPECT_EQ(second.graph.nodes().back().where.substr(0, 9), "after.cpp");
  // What is left out is part of the key.
  for (auto& [skipped, entries] : {std::pair<std::string, size_t>{"fold", 2}, {"fuse", 3}, {"nest.siblings", 4}}) {
    Program other = program_of(captured("before.cpp"));
    PipelineOptions options = planning_pipeline(cpu_engine().target());
    options.skip = {skipped};
    make_ready_graph(other, options, store);
    EXPECT_EQ(store.entries().size(), entries) << skipped;
    EXPECT_EQ(other.graph.text() == first.graph.text(), skipped != "fuse");
  }
}

TEST(ReadyGraph, WhichOpsShareALineIsPartOfTheKey) {
  OwnDirectory directory;
  runtime::CodeStore store(directory.path().string());
  Program apart = program_of(captured("two.cpp")), together = program_of(captured("one.cpp", true));
  make_ready_graph(apart, planning_pipeline(cpu_engine().target()), store);
  make_ready_graph(together, planning_pipeline(cpu_engine().target()), store);
  EXPECT_EQ(store.entries().size(), 2u);
  EXPECT_EQ(together.graph.nodes().back().where, "one.cpp:1");
}

TEST(ReadyGraph, OpsOfUsersAreNotKept) {
  register_op<>(
      {.name = "ready_graph_test::twice",
       .infer = [](const OpCall& c) { return std::vector{c.inputs[0]}; },
       .run = [](std::span<const Tensor> x, const Attrs&) -> TensorList { return {x[0] + x[0]}; }});
  Graph graph;
  Value x = graph.add_input({.dtype = kFloat32, .shape = {4}, .device = {}}, "x");
  graph.set_outputs({graph.add(*find_op("ready_graph_test::twice"), {x}).result()});
  Program program = program_of(std::move(graph));
  OwnDirectory directory;
  runtime::CodeStore store(directory.path().string());
  make_ready_graph(program, planning_pipeline(cpu_engine().target()), store);
  EXPECT_TRUE(store.entries().empty());
}

}  // namespace
}  // namespace sinter
