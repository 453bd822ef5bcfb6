// The passes that group ops into kernels, as the driver runs them: reported, verified, logged, and left out by name.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sinter/base/log.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/passes/fuse_traced.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// [norm and product with its epilogue] and, beside it, a softmax of something else: with prologues and siblings.
TensorList block(const TensorList& x) {
  Tensor norm = x[0] * (x[0].square().mean({-1}, true) + 1e-5).rsqrt();
  return {gelu(matmul(norm, x[1]) + x[2]), flip(x[3] * 2, {0}) + 1, x[3].softmax(-1), (x[4] + 1).tanh()};
}

TensorList inputs() { return {normal({2, 24}), normal({24, 50}), normal({50}), normal({5, 33}), normal({7, 11})}; }

// Everything that computes, by the names of the ops.
std::string kernels_without(std::vector<std::string> skip) {
  std::vector<Type> types;
  for (auto& t : inputs()) types.push_back({t.dtype(), t.sizes(), t.device()});
  PipelineOptions options = planning_pipeline(cpu_engine().target());
  options.skip = std::move(skip);
  Graph graph = run_passes(trace(block, types), options);
  std::string list;
  for (auto& node : graph.nodes()) {
    auto kind = node.op->kind;
    if (kind != OpKind::kInput && kind != OpKind::kScalar && kind != OpKind::kView)
      list += std::string(node.op->name) + " ";
  }
  return list;
}

class SkipVariable {
 public:
  explicit SkipVariable(const std::string& names) { setenv("SINTER_SKIP_PASSES", names.c_str(), 1); }
  ~SkipVariable() { unsetenv("SINTER_SKIP_PASSES"); }
};

TEST(Grouping, IsReportedAndShownLikeOtherPasses) {
  std::vector<PassReport> reports;
  std::map<std::string, std::string, std::less<>> stages;
  PipelineOptions options = planning_pipeline(cpu_engine().target());
  options.on_stage = [&](std::string_view pass, const std::string& text) { stages[std::string(pass)] = text; };
  Graph graph = run_passes(
      Graph::parse("%0 = input : f32[4, 8]\n%1 = exp(%0) : f32[4, 8]\n%2 = tanh(%1) : f32[4, 8]\nreturn %2\n"), options,
      &reports);
  ASSERT_EQ(reports.size(), all_passes(options).size());
  auto& fused = reports[reports.size() - 2];
  EXPECT_EQ(fused.name, "fuse");
  EXPECT_TRUE(fused.changed);
  EXPECT_EQ(reports.back().name, "nest");
  EXPECT_FALSE(reports.back().changed);
  EXPECT_EQ(stages["nest"], graph.text());
  EXPECT_NE(stages["fuse"].find("fused(%0)"), std::string::npos) << stages["fuse"];
  EXPECT_EQ(stages["dead_code"].find("fused"), std::string::npos);
}

TEST(Grouping, IsLogged) {
  set_logs("passes");
  ::testing::internal::CaptureStderr();
  compile([](const Tensor& x) { return x.exp().tanh(); })(normal({4, 8}));
  std::string log = ::testing::internal::GetCapturedStderr();
  set_logs("");
  EXPECT_NE(log.find("fuse: 3 → 2 nodes"), std::string::npos) << log;
  EXPECT_NE(log.find("nest: (unchanged)"), std::string::npos) << log;
}

TEST(Grouping, OnlyWhereATargetTakesKernels) {
  PipelineOptions options = planning_pipeline(cpu_engine().target(), {"s0"});
  auto grouped = [&](const char* size) {
    std::vector<PassReport> reports;
    Graph graph = Graph::parse(
        format("%0 = input : f32[{}]\n%1 = exp(%0) : f32[{}]\n%2 = tanh(%1) : f32[{}]\nreturn %2\n", size, size, size));
    return has_kernels(run_passes(std::move(graph), options, &reports)) && reports.back().name == "nest";
  };
  EXPECT_TRUE(grouped("4"));
  EXPECT_TRUE(grouped("s0"));
  EXPECT_FALSE(grouped("u0"));  // known only once the data is
  options.takes_kernels = {};
  EXPECT_FALSE(grouped("4"));
}

// A kernel is what its kind says.
TEST(Grouping, RefusesBodiesOfAnotherKind) {
  auto parse = [](const std::string& kind, const std::string& body) {
    Graph::parse("%0 = input : f32[3, 3]\n%1 = fused(%0) {" + kind + "body={%0 = input : f32[3, 3]; " + body +
                 "}, domain=[3, 3]} : f32[3, 3]\nreturn %1\n");
  };
  auto fault = [&](const std::string& kind, const std::string& body) { return error_of([&] { parse(kind, body); }); };
  auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string exp = "%1 = exp(%0) : f32[3, 3]; return %1", mm = "%1 = mm(%0, %0) : f32[3, 3]; return %1";
  EXPECT_NO_THROW(parse("", exp));
  EXPECT_NO_THROW(parse("kind=product, ", mm));
  EXPECT_PRED2(contains, fault("", mm), "a contraction is inside a kernel of another kind");
  EXPECT_PRED2(contains, fault("kind=product, ", exp), "an op stands beside a contraction");
  EXPECT_PRED2(contains, fault("kind=siblings, ", exp), "an op stands among siblings");
  const std::string attention = "%1 = scaled_dot_product_attention(%0, %0, %0) : f32[3, 3]; ";
  EXPECT_NO_THROW(parse("kind=attention, ", attention + "return %1"));
  EXPECT_PRED2(contains, fault("", attention + "return %1"), "attention is inside a kernel of another kind");
  EXPECT_PRED2(contains, fault("kind=attention, ", exp), "something stands beside attention");
  EXPECT_PRED2(contains, fault("kind=attention, ", attention + "%2 = permute(%1) {dims=[1, 0]} : f32[3, 3]; return %2"),
               "something stands beside attention");
  EXPECT_PRED2(
      contains,
      fault("kind=attention, ", attention + "%2 = scaled_dot_product_attention(%1, %0, %0) : f32[3, 3]; return %2"),
      "there is one attention, and nothing else");
  EXPECT_PRED2(contains,
               fault("kind=product, ",
                     "%1 = mm(%0, %0) : f32[3, 3]; %2 = fused(%1) {kind=attention, body={%0 = input : "
                     "f32[3, 3]; " +
                         attention + "return %1}} : f32[3, 3]; return %2"),
               "what is beside a contraction is not one nest");
  EXPECT_PRED2(contains, fault("kind=epilogue, ", exp), "tiles are what an epilogue works on");
  EXPECT_PRED2(contains, fault("kind=column, ", exp), "'column' is no kind of fused kernel: there are rows, combination");
}

TEST(Grouping, VerifiesBodies) {
  // The type of the exponential is wrong, which only a look into the body shows.
  Pass broken{"broken", [](const Graph&) {
                Graph body;
                Value inside = body.add_input(parse_type("f32[3]"));
                body.set_outputs({body.add_typed(*find_op("exp"), {inside}, {}, {parse_type("f32[4]")}).result()});
                Graph graph;
                Value x = graph.add_input(parse_type("f32[3]"));
                FusedAttrs attrs{.body = SubGraph(std::move(body)), .domain = {3}};
                graph.set_outputs({graph.add_typed(fused_op(), {x}, attrs, {parse_type("f32[4]")}).result()});
                return graph;
              }};
  EXPECT_THROW(run_passes(Graph::parse("%0 = input : f32[3]\nreturn %0\n"), {&broken, 1}), InternalError);
  // Operands have the sizes that the body was made for.
  Pass resized{"resized", [](const Graph&) {
                 return Graph::parse(
                     "%0 = input : f32[4]\n%1 = fused(%0) {body={%0 = input : f32[3]; %1 = exp(%0) : f32[3]; return "
                     "%1}, domain=[3]} "
                     ": f32[3]\nreturn %1\n");
               }};
  EXPECT_THROW(run_passes(Graph::parse("%0 = input : f32[3]\nreturn %0\n"), {&resized, 1}), InternalError);
}

TEST(Grouping, IsLeftOutByName) {
  EXPECT_EQ(kernels_without({}), "fused fused ");
  EXPECT_EQ(kernels_without({"nest"}), "fused fused fused fused ");
  EXPECT_EQ(kernels_without({"nest.prologues"}), "fused fused fused ");
  EXPECT_EQ(kernels_without({"nest.siblings"}), "fused fused fused ");
  EXPECT_EQ(kernels_without({"nest", "fuse.products"}), "fused mm fused fused fused ");
  std::string alone = kernels_without({"fuse"});
  EXPECT_EQ(alone.find("fused"), std::string::npos) << alone;
  for (auto* op : {"rsqrt", "mm", "gelu", "flip", "exp", "div", "tanh"})
    EXPECT_NE(alone.find(op), std::string::npos) << alone;
  // The flip is computed by its own kernel, and the product of what it reads before.
  std::string stored = kernels_without({"nest", "fuse.inline"});
  EXPECT_NE(stored, kernels_without({"nest"}));
  EXPECT_NE(kernels_without({"nest", "fuse.siblings"}), kernels_without({"nest"}));
  EXPECT_THROW(kernels_without({"fuse.everything"}), Error);
}

TEST(Grouping, ResultsAreRightWhateverIsLeftOut) {
  TensorList x = inputs(), want = block(x);
  auto call = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e) {
    return block({a, b, c, d, e});
  };
  for (auto* skip : {"fuse", "nest", "fuse.inline", "fuse.siblings", "fuse.products", "nest.prologues", "nest.siblings",
                     "fuse,nest"}) {
    SkipVariable variable(skip);
    auto f = compile(call);
    // Twice: as captured, and as kept in the store.
    for (int round = 0; round < 2; ++round) {
      TensorList got = f(x[0], x[1], x[2], x[3], x[4]);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LT((got[i] - want[i]).abs().amax().item<double>(), 1e-4) << skip << ", result " << i;
      f = compile(call);
    }
    auto told = compiler::explain(f, x[0], x[1], x[2], x[3], x[4]);
    bool fuses = told.programs.at(0).plans.at(0).find("fused") != std::string::npos;
    EXPECT_EQ(fuses, std::string(skip).rfind("fuse", 0) != 0 || std::string(skip).find('.') != std::string::npos)
        << skip;
  }
}

}  // namespace
}  // namespace sinter
