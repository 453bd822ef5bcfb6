// Parts cut out of graphs, and put into others.
#include "sinter/graph/extract.h"

#include <gtest/gtest.h>

#include "sinter/graph/interpreter.h"
#include "tests/support/random_inputs.h"

namespace sinter {
namespace {

const Graph& whole() {
  static const Graph graph = Graph::parse(R"(%0 = input : f32[4] "x"
%1 = input : f32[4] "y"
%2 = exp(%0) : f32[4]
%3 = scalar {value=2} : weak i64[]
%4 = mul(%2, %3) : f32[4]
%5 = add(%4, %1) : f32[4]
%6 = tanh(%5) : f32[4]
return %6, %4
)");
  return graph;
}
const Node& node(int id) { return whole().nodes()[size_t(id)]; }

TEST(Extract, WhatLiesOutsideBecomesAnOperand) {
  Extraction part([](const Node& n) { return n.id >= 4; });
  Value outputs[] = {node(6).result()};
  Graph graph = part.finish(outputs);
  EXPECT_EQ(graph.text(), "%0 = input : f32[4]\n%1 = scalar {value=2} : weak i64[]\n%2 = mul(%0, %1) : f32[4]\n"
                          "%3 = input : f32[4]\n%4 = add(%2, %3) : f32[4]\n%5 = tanh(%4) : f32[4]\nreturn %5\n");
  ASSERT_EQ(part.operands().size(), 2u);
  EXPECT_EQ(part.operands()[0], node(2).result());
  EXPECT_EQ(part.operands()[1], whole().inputs()[1]);
}

TEST(Extract, ACopyTakesWhatWasSetInItsPlace) {
  Extraction copy = begin_copy(whole());
  const Node& instead = copy.graph().add(*find_op("sin"), {copy(whole().inputs()[0])});
  copy.set(node(4).result(), instead.result());
  Graph graph = copy.finish(whole().outputs());
  EXPECT_EQ(graph.text(), "%0 = input : f32[4] \"x\"\n%1 = input : f32[4] \"y\"\n%2 = sin(%0) : f32[4]\n"
                          "%3 = add(%2, %1) : f32[4]\n%4 = tanh(%3) : f32[4]\nreturn %4, %2\n");
}

TEST(Extract, OperandsComeFirstWhereTheyAreAskedFor) {
  Extraction part;
  part.add_operand(node(4).result(), "product");
  Value outputs[] = {node(6).result(), node(4).result()};
  EXPECT_EQ(part.finish(outputs).text(), "%0 = input : f32[4] \"product\"\n%1 = input : f32[4]\n%2 = add(%0, %1) : f32[4]\n"
                                         "%3 = tanh(%2) : f32[4]\nreturn %3, %0\n");
}

TEST(Extract, EachCopyMayBeFinished) {
  Extraction part;
  part.after_copy([](Graph& graph, const Node& n, Value made) {
    return n.op->name == "exp" ? graph.add(*find_op("neg"), {made}).result() : made;
  });
  Value outputs[] = {node(4).result()};
  EXPECT_EQ(part.finish(outputs).text(), "%0 = input : f32[4]\n%1 = exp(%0) : f32[4]\n%2 = neg(%1) : f32[4]\n"
                                         "%3 = scalar {value=2} : weak i64[]\n%4 = mul(%2, %3) : f32[4]\nreturn %4\n");
}

TEST(Extract, APartPutBackMeansTheSame) {
  Extraction part([](const Node& n) { return n.id >= 4; }), copy = begin_copy(whole());
  Graph cut = part.finish(whole().outputs());
  std::vector<Value> operands;
  for (auto& v : part.operands()) operands.push_back(copy(v));
  Graph& graph = copy.graph();
  graph.set_outputs(inline_graph(cut, operands, graph));
  auto inputs = testing::random_inputs(whole());
  auto want = interpret(whole(), inputs), got = interpret(graph, inputs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(to_tensor(got[i]).to_vector<float>(), to_tensor(want[i]).to_vector<float>());
}

}  // namespace
}  // namespace sinter
