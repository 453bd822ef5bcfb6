#include "sinter/graph/trace.h"

#include "tests/graph/test_ops.h"

namespace sinter {
namespace {

using namespace test_ops;

Tensor add(TensorArg a, TensorArg b) { return call<Add>({a, b}); }

TEST(Trace, RecordsOpsNumbersAndPositions) {
  Type types[] = {parse_type("f32[2, s0]"), parse_type("f32[s0]")};
  int line = 0;
  Graph g = trace(
      [&](const TensorList& x) {
        line = __LINE__ + 1;
        Tensor y = add(x[0], x[1]);
        return TensorList{add(y, 2.5), add(y, 2.5), x[1]};
      },
      types);
  g.verify();
  EXPECT_EQ(g.text(),
            "%0 = input : f32[2, s0]\n%1 = input : f32[s0]\n%2 = t_add(%0, %1) : f32[2, s0]\n"
            "%3 = scalar {value=2.5} : weak f64[]\n%4 = t_add(%2, %3) : f32[2, s0]\nreturn %4, %4, %1\n");
  EXPECT_TRUE(g.nodes()[2].where.ends_with("trace_test.cpp:" + std::to_string(line))) << g.nodes()[2].where;
}

TEST(Trace, EagerTensorsBecomeInputsOnce) {
  Tensor weight = from_data(std::vector<float>{10, 20}, {2});
  GraphTracer tracer;
  TracerScope scope(&tracer);
  Tensor x = tracer.add_input(parse_type("f32[2]"), "x");
  EXPECT_TRUE(x.is_traced());
  Tensor y = add(add(x, weight), weight);
  tracer.graph().set_outputs({tracer.value_of(y)});
  ASSERT_EQ(tracer.captured().size(), 1u);
  EXPECT_TRUE(tracer.captured()[0].is_same(weight));
  auto out = interpret(tracer.graph(), std::vector{floats({2}, {1, 2}), to_array(weight)});
  EXPECT_EQ(out[0].f, (std::vector<double>{21, 42}));
}

TEST(Trace, ComparisonsAreAnsweredByHints) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  Dim a = Dim::symbol("t0"), b = Dim::symbol("t1");
  EXPECT_THROW((void)(a == b), Error);
  tracer.set_hint("t0", 4);
  EXPECT_NE(message_of([&] { (void)(a == b); }).find("nothing is known of t1"), std::string::npos);
  tracer.set_hint("t1", 6);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(a + 2 == b);
  EXPECT_TRUE(a < b && a <= b && b > a);
  EXPECT_EQ(int64_t(a * b), 24);
  EXPECT_EQ((a + 1).to_int(), 5);
  Tensor x = tracer.add_input(parse_type("f32[t0]")), y = tracer.add_input(parse_type("f32[t1]"));
  EXPECT_NE(message_of([&] { add(x, y); }).find("do not broadcast"), std::string::npos);
  tracer.set_hint("t1", 4);
  EXPECT_EQ(add(x, y).dim(), 1);
  // A graph whose equalities only the capture knew can still be checked and read back.
  tracer.graph().verify();
  EXPECT_EQ(parse(tracer.graph().text()).text(), tracer.graph().text());
}

TEST(Trace, AStrangersTensorIsAnError) {
  GraphTracer first, second;
  Tensor x = first.add_input(parse_type("f32[2]"));
  TracerScope scope(&second);
  EXPECT_NE(message_of([&] { add(x, 1); }).find("outside the capture"), std::string::npos);
  EXPECT_THROW(to_array(x), Error);
}

TEST(Call, PointwiseTypesAndDevices) {
  auto infer = [](const Op& op, std::vector<std::string> texts) {
    std::vector<Type> types;
    for (auto& text : texts) types.push_back(parse_type(text));
    return to_string(infer_types(op, types, {})[0]);
  };
  EXPECT_EQ(infer(op_of<Add>, {"bf16[2, 1]", "f32[3]"}), "f32[2, 3]");
  EXPECT_EQ(infer(op_of<Add>, {"bf16[2]@cuda:0", "f64[]"}), "bf16[2]@cuda:0");
  EXPECT_EQ(infer(op_of<Add>, {"weak i64[]", "bool[2]@cuda:1"}), "i64[2]@cuda:1");
  EXPECT_EQ(infer(op_of<Divide>, {"i64[2]", "i64[2]"}), "f32[2]");
  EXPECT_EQ(infer(op_of<Greater>, {"i64[2]", "weak f64[]"}), "bool[2]");
  EXPECT_EQ(infer(op_of<Choose>, {"bool[2]", "i32[]", "weak i64[]"}), "i32[2]");
  EXPECT_THROW(infer(op_of<Add>, {"f32[2]", "f32[3]"}), Error);
  EXPECT_THROW(infer(op_of<Add>, {"f32[2]"}), Error);
  EXPECT_THROW(infer(op_of<BitNot>, {"f32[2]"}), Error);
  EXPECT_THROW(infer(op_of<Choose>, {"f32[2]", "f32[2]", "f32[2]"}), Error);
  EXPECT_THROW(infer(op_of<Add>, {"f32[2]@cuda:0", "f32[2]"}), Error);
  EXPECT_THROW(infer(op_of<Add>, {"f32[]@cuda:0", "f32[2]"}), Error);
  EXPECT_THROW(infer(op_of<Add>, {"f32[2]@cuda:0", "f32[2]@cuda:1"}), Error);
}

// A tracer that happens to lie where an earlier one did is another.
TEST(Trace, ATensorOfAnEarlierCaptureIsRefused) {
  std::optional<GraphTracer> tracer(std::in_place);
  Tensor old = tracer->add_input(parse_type("f32[2]"));
  tracer.emplace();
  TracerScope scope(&*tracer);
  Tensor x = tracer->add_input(parse_type("f32[2]"));
  EXPECT_THROW(add(x, old), Error);
}

TEST(Trace, ANestedTracerCapturesTheOutside) {
  GraphTracer outer;
  TracerScope outside(&outer);
  Tensor x = outer.add_input(parse_type("f32[2]")), y = add(x, x);
  GraphTracer inner(&outer);
  {
    TracerScope inside(&inner);
    Tensor z = inner.add_input(parse_type("f32[2]"));
    z = add(add(add(z, y), x), y);
    inner.graph().set_outputs({inner.value_of(z)});
  }
  ASSERT_EQ(inner.captured().size(), 2u);
  EXPECT_TRUE(inner.captured()[0].is_same(y));
  EXPECT_TRUE(inner.captured()[1].is_same(x));
  EXPECT_EQ(inner.graph().inputs().size(), 3u);
  EXPECT_EQ(outer.graph().nodes().size(), 2u);  // nothing of the inside
}

}  // namespace
}  // namespace sinter
