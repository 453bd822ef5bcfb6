#include "sinter/graph/rewrite.h"

#include "tests/graph/test_ops.h"

namespace sinter {
namespace {

using namespace test_ops;

// x + 0.0 → x.
std::optional<std::vector<Value>> drop_zero(RewriteContext& context, const Node& node) {
  if (node.op != &op_of<Add> || node.inputs[1].node->op != &kScalarOp) return std::nullopt;
  if (!(node.inputs[1].node->attrs.as<ScalarAttrs>().value == Scalar(0.0))) return std::nullopt;
  return {{context(node.inputs[0])}};
}

TEST(Rewrite, ReplacesAndDropsWhatDied) {
  Graph g = parse(
      "%0 = input : f32[3] \"x\"\n%1 = input : f32[3] \"unused\"\n%2 = scalar {value=0.0} : weak f64[]\n"
      "%3 = t_add(%0, %2) : f32[3]\n%4 = t_add(%3, %2) : f32[3]\n%5 = t_multiply(%4, %4) : f32[3]  // m.cpp:3\n"
      "return %5, %3");
  Graph out = rewrite(g, drop_zero);
  out.verify();
  EXPECT_EQ(out.text(true),
            "%0 = input : f32[3] \"x\"\n%1 = input : f32[3] \"unused\"\n%2 = t_multiply(%0, %0) : f32[3]  // m.cpp:3\n"
            "return %2, %0\n");
}

TEST(Rewrite, KeepsRandomNodesAndCopiesTheRest) {
  const char* text =
      "%0 = input : i64[3]\n%1 = t_draw(%0) : f32[3]\n%2 = t_draw(%0) : f32[3]\n%3 = t_positions(%2) : i64[u5]\n"
      "%4 = t_extremes(%2) : (f32[], f32[])\nreturn %3, %4.1\n";
  Graph g = parse(text);
  EXPECT_EQ(drop_dead_nodes(g).text(), text);
  EXPECT_EQ(drop_dead_nodes(g).hash(), g.hash());
}

TEST(Rewrite, RunsToAFixedPoint) {
  Graph g = parse("%0 = input : f32[8]\n%1 = t_pad(%0) {before=3} : f32[11]\nreturn %1");
  int rounds = 0;
  RewriteRule shrink = [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op != &op_of<Pad>) return std::nullopt;
    ++rounds;
    auto attrs = node.attrs.as<PadAttrs>();
    if (attrs.before == 0) return std::nullopt;
    --attrs.before;
    ++attrs.after;
    return {{context.add(op_of<Pad>, context.inputs(node), attrs).result()}};
  };
  EXPECT_EQ(rewrite(g, shrink).nodes()[1].attrs.text(), "before=2, after=1");
  rounds = 0;
  EXPECT_EQ(rewrite(g, shrink, {.to_fixed_point = true}).nodes()[1].attrs.text(), "after=3");
  EXPECT_EQ(rounds, 4);
  EXPECT_THROW(rewrite(g, shrink, {.to_fixed_point = true, .max_rounds = 2}), InternalError);
}

TEST(Rewrite, AGraphThatNothingChangesIsWalkedOnce) {
  Graph g = parse("%0 = input : f32[8]\n%1 = t_pad(%0) {before=3} : f32[11]\nreturn %1");
  int asked = 0;
  RewriteRule nothing = [&](RewriteContext&, const Node&) -> std::optional<std::vector<Value>> {
    ++asked;
    return std::nullopt;
  };
  EXPECT_EQ(rewrite(g, nothing, {.to_fixed_point = true}).text(), g.text());
  EXPECT_EQ(asked, 1);
}

TEST(Rewrite, TypesFollowChangedOperands) {
  Graph g = parse(
      "%0 = input : f32[2, 3]\n%1 = t_transpose(%0) : f32[3, 2]\n%2 = t_transpose(%1) : f32[2, 3]\n"
      "%3 = t_matmul(%0, %1) : f32[2, 2]\nreturn %2, %3");
  Graph out = rewrite(g, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op != &op_of<Transpose> || node.inputs[0].node->op != &op_of<Transpose>) return std::nullopt;
    return {{context(node.inputs[0].node->inputs[0])}};
  });
  EXPECT_EQ(out.text(),
            "%0 = input : f32[2, 3]\n%1 = t_transpose(%0) : f32[3, 2]\n%2 = t_matmul(%0, %1) : f32[2, 2]\n"
            "return %0, %2\n");
}

TEST(Rewrite, SizesThatOnlyTheDataKnowsKeepTheirNames) {
  // The capture knew that s0 is 4; dropping the addition shows it to the node that follows.
  Graph g = parse(
      "%0 = input : f32[4]\n%1 = scalar {value=0.0} : weak f64[]\n%2 = t_add(%0, %1) : f32[s0]\n"
      "%3 = t_positions(%2) : i64[u7]\nreturn %3");
  Graph out = rewrite(g, drop_zero);
  EXPECT_EQ(out.text(), "%0 = input : f32[4]\n%1 = t_positions(%0) : i64[u7]\nreturn %1\n");
}

TEST(Rewrite, RefusesAReplacementOfAnotherType) {
  Graph g = parse("%0 = input : f32[3]\n%1 = t_greater(%0, %0) : bool[3]\nreturn %1");
  EXPECT_THROW(rewrite(g, [](RewriteContext& c, const Node& n) { return std::optional(c.inputs(n)); }), InternalError);
  EXPECT_THROW(rewrite(g, [](RewriteContext& c, const Node& n) { return std::optional(std::vector{c(n.inputs[0])}); }),
               InternalError);
}

}  // namespace
}  // namespace sinter
