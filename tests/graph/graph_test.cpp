#include "sinter/graph/graph.h"

#include "tests/graph/test_ops.h"

namespace sinter {
namespace {

using namespace test_ops;

constexpr const char* kText =
    "%0 = input : f32[2, s0] \"x\"\n"
    "%1 = input : f32[s0]\n"
    "%2 = scalar {value=2.5} : weak f64[]\n"
    "%3 = t_add(%0, %1) : f32[2, s0]\n"
    "%4 = t_add(%3, %2) : f32[2, s0]\n"
    "%5 = t_sum(%4) {dims=[1], keepdim=true} : f32[2, 1]\n"
    "%6 = t_reshape(%4) {shape=[2*s0]} : f32[2*s0]\n"
    "%7 = t_extremes(%6) : (f32[], f32[])\n"
    "return %5, %7.1, %7.0, %0\n";

TEST(Graph, TextRoundTrips) {
  Graph g = parse(kText);
  EXPECT_EQ(g.text(), kText);
  g.verify();
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.nodes()[0].name, "x");
  EXPECT_EQ(g.outputs()[1], g.nodes()[7].result(1));
  EXPECT_EQ(parse("return\n").text(), "return\n");
}

TEST(Graph, PositionsAreCommentsThatRoundTrip) {
  Graph g;
  auto x = g.add_input(parse_type("f32[3]"), "a // \"quoted\" name");
  g.set_outputs({g.add(op_of<Add>, {x, x}, {}, "model.cpp:12").result()});
  EXPECT_EQ(g.text().find("model.cpp"), std::string::npos);
  std::string text = g.text(true);
  EXPECT_NE(text.find("// model.cpp:12"), std::string::npos);
  Graph back = parse(text);
  EXPECT_EQ(back.text(true), text);
  EXPECT_EQ(back.nodes()[1].where, "model.cpp:12");
  EXPECT_EQ(back.nodes()[0].name, "a // \"quoted\" name");
}

TEST(Graph, ReadsNumbersThatAreNoPositions) {
  Graph g = parse("// a comment\n\n%7 = input : f32[3]\n  %3 = t_add(%7, %7) : f32[3]\nreturn %3");
  EXPECT_EQ(g.text(), "%0 = input : f32[3]\n%1 = t_add(%0, %0) : f32[3]\nreturn %1\n");
}

TEST(Graph, HostileTextIsAnErrorThatNamesTheLine) {
  const char* bad[] = {
      "",
      "return %0",
      "%0 = input : f32[3]",
      "%0 = input : f32[3]\nreturn %1",
      "%0 = input : f32[3]\nreturn %0.1",
      "%0 = input : f32[3]\nreturn %0\nreturn %0",
      "%0 = input : f32[3]\n%0 = input : f32[3]\nreturn %0",
      "%0 = input : f32[3\nreturn %0",
      "%0 = input : f32[3] \"x\nreturn %0",
      "%0 = input : f32[3] x\nreturn %0",
      "%0 = input {a=1} : f32[3]\nreturn %0",
      "%0 = input : (f32[3], f32[3])\nreturn %0",
      "%0 = input(%0) : f32[3]\nreturn %0",
      "%0 = nonsense(%1) : f32[3]\nreturn %0",
      "%0 = input : f32[3]\n%1 = t_add(%0) : f32[3]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %0) : f32[4]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %0) : f64[3]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %0)\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %0 : f32[3]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %2) : f32[3]\n%2 = input : f32[3]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_add(%0, %0) : f32[3] trailing\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_sum(%0) {dims=[5]} : f32[]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_sum(%0) {dims=[0, 0]} : f32[]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_sum(%0) {dims} : f32[]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_sum(%0) {dimz=[0]} : f32[]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_sum(%0) {dims=[0} : f32[]\nreturn %1",
      "%0 = input : f32[3]\n%1 = t_extremes(%0) : f32[]\nreturn %1",
      "%0 = scalar {value=2.5} : f64[]\nreturn %0",
      "%0 = scalar {value=2.5} : weak i64[]\nreturn %0",
      "%99999999999 = input : f32[3]\nreturn %0",
      "%-1 = input : f32[3]\nreturn %-1",
      "0 = input : f32[3]\nreturn 0",
      "garbage",
      "%0 = ",
      " = input : f32[3]",
      "%0 = input : f32[3]\n\"\nreturn %0",
  };
  for (auto* text : bad) EXPECT_THROW(parse(text), Error) << text;
  // Any prefix, and any one changed byte, of a good text is read or refused, never a crash.
  std::string good = kText;
  int refused = 0;
  for (size_t n = 0; n < good.size(); ++n) {
    for (std::string text : {good.substr(0, n), good.substr(0, n) + '(' + good.substr(n + 1),
                             good.substr(0, n) + '"' + good.substr(n + 1), good.substr(0, n) + good.substr(n + 1)}) {
      try {
        parse(text).verify();
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, int(good.size()));
  EXPECT_EQ(message_of([] { parse("%0 = input : f32[3]\n%1 = frob(%0) : f32[3]\nreturn %1"); }),
            "graph text, line 2: no op is called 'frob'\n  %1 = frob(%0) : f32[3]");
}

TEST(Graph, EqualNodesAreOne) {
  Graph g;
  auto x = g.add_input(parse_type("f32[3]")), y = g.add_input(parse_type("f32[3]"));
  auto& sum = g.add(op_of<Add>, {x, y}, {}, "a.cpp:1");
  EXPECT_EQ(&g.add(op_of<Add>, {x, y}, {}, "b.cpp:2"), &sum);
  EXPECT_EQ(sum.where, "a.cpp:1");
  EXPECT_NE(&g.add(op_of<Add>, {y, x}), &sum);
  EXPECT_NE(&g.add(op_of<Multiply>, {x, y}), &sum);
  auto& reduced = g.add(op_of<Sum>, {x}, ReduceAttrs{.dims = {0}});
  EXPECT_EQ(&g.add(op_of<Sum>, {x}, ReduceAttrs{.dims = {0}}), &reduced);
  EXPECT_NE(&g.add(op_of<Sum>, {x}, ReduceAttrs{.dims = {0}, .keepdim = true}), &reduced);
  EXPECT_EQ(g.add_scalar(2.0), g.add_scalar(2.0));
  EXPECT_NE(g.add_scalar(2.0), g.add_scalar(2));
  EXPECT_NE(g.add_scalar(0.0), g.add_scalar(-0.0));
  EXPECT_EQ(g.add_scalar(NAN), g.add_scalar(NAN));
  auto seed = g.add_scalar(1);
  auto &first = g.add(op_of<Draw>, {seed}), &second = g.add(op_of<Draw>, {seed});
  EXPECT_NE(&first, &second);
  EXPECT_NE(first.hash, second.hash);
}

TEST(Graph, HashIsByContent) {
  auto hash = [](const char* text) { return parse(text).hash(); };
  const char* plain = "%0 = input : f32[3]\n%1 = t_add(%0, %0) : f32[3]\nreturn %1";
  EXPECT_EQ(hash(plain),
            hash("%0 = input : f32[3]\n%1 = t_multiply(%0, %0) : f32[3]\n%2 = t_add(%0, %0) : f32[3]\nreturn %2"));
  EXPECT_NE(hash(plain), hash("%0 = input : f32[4]\n%1 = t_add(%0, %0) : f32[4]\nreturn %1"));
  EXPECT_NE(hash(plain), hash("%0 = input : f32[3]\n%1 = t_multiply(%0, %0) : f32[3]\nreturn %1"));
}

// Breaks one thing of a sound graph and expects the verifier to say so.
void expect_broken(const char* reason, const std::function<void(std::vector<Node*>&, Graph&)>& breaks) {
  Graph g = parse("%0 = input : f32[3]\n%1 = t_add(%0, %0) : f32[3]\n%2 = t_sum(%1) : f32[]\nreturn %2");
  g.verify();
  std::vector<Node*> nodes;
  for (auto& node : g.nodes()) nodes.push_back(const_cast<Node*>(&node));
  breaks(nodes, g);
  try {
    g.verify();
    ADD_FAILURE() << "not noticed: " << reason;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(Verify, NoticesWhatIsBroken) {
  using Nodes = std::vector<Node*>;
  expect_broken("number is not its position", [](Nodes& n, Graph&) { n[1]->id = 2; });
  expect_broken("no earlier value", [](Nodes& n, Graph&) { n[1]->inputs[0] = n[2]->result(); });
  expect_broken("no earlier value", [](Nodes& n, Graph&) { n[1]->inputs[0] = n[1]->result(); });
  expect_broken("no earlier value", [](Nodes& n, Graph&) { n[1]->inputs[0] = {}; });
  expect_broken("no earlier value", [](Nodes& n, Graph&) { n[1]->inputs[0].index = 1; });
  expect_broken("takes 2 operands, not 1", [](Nodes& n, Graph&) { n[1]->inputs.pop_back(); });
  expect_broken("gives f32[3], not f32[4]", [](Nodes& n, Graph&) { n[1]->types[0].shape = {4}; });
  expect_broken("gives f32[], not f64[]", [](Nodes& n, Graph&) { n[2]->types[0].dtype = kFloat64; });
  expect_broken("gives 1 results, not 2", [](Nodes& n, Graph&) { n[2]->types.push_back(n[2]->types[0]); });
  expect_broken("dimension 3 is out of range", [](Nodes& n, Graph&) { n[2]->attrs = ReduceAttrs{.dims = {3}}; });
  expect_broken("an output", [](Nodes&, Graph& g) { g.set_outputs({Value{}}); });
  expect_broken("among the inputs", [](Nodes& n, Graph&) {
    n[1]->op = &kInputOp;
    n[1]->inputs.clear();
  });
  static const Node stranger;
  expect_broken("an output", [](Nodes&, Graph& g) { g.set_outputs({Value{&stranger, 0}}); });
}

}  // namespace
}  // namespace sinter
