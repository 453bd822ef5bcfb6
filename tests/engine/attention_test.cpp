// Attention as one kernel: eagerly and in programs, and where its body still runs instead.
#include "sinter/ops/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/profile.h"
#include "sinter/engine/report.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/engine/programs.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::Runner;
using testing::values;
using Function = std::function<Tensor(const TensorList&)>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor by_the_interpreter(const Function& f, const TensorList& inputs) {
  std::vector<Type> types;
  std::vector<Array> arrays;
  for (auto& t : inputs) {
    types.push_back({t.dtype(), t.sizes(), t.device()});
    arrays.push_back(to_array(t));
  }
  Graph graph = trace([&](const TensorList& x) { return TensorList{f(x)}; }, types);
  return to_tensor(interpret(graph, arrays)[0]);
}

// What ran while f did, and how often: "mm 2, softmax 1".
template <class F>
std::string ops_of(F&& f) {
  Profile profile;
  f();
  std::string out;
  for (auto& [name, row] : profile.rows()) out += format("{}{} {}", out.empty() ? "" : ", ", name, row.calls);
  return out;
}

Tensor attend(const TensorList& x, bool causal = false, bool gqa = false) {
  return scaled_dot_product_attention(x[0], x[1], x[2], x.size() > 3 ? x[3] : Tensor(), 0, causal, {}, gqa);
}

struct Case {
  const char* name;
  TensorList inputs;
  bool causal = false, gqa = false;
};

std::vector<Case> cases() {
  Tensor q = values({2, 4, 9, 8}), k = values({2, 4, 11, 8}, 1), v = values({2, 4, 11, 5}, 2);
  Tensor few = values({2, 2, 11, 8}, 3), few_values = values({2, 2, 11, 6}, 4);
  return {
      {"plain", {q, k, v}},
      {"causal", {q, k, v}, true},
      {"grouped", {q, few, few_values}, false, true},
      {"grouped_causal", {q, few, few_values}, true, true},
      {"matrices", {q[0][0], k[0][0], v[0][0]}},
      {"three_dimensions", {q[0], k[0], v[0]}},
      {"heads_broadcast", {q, k.slice(1, 0, 1), v.slice(1, 1, 2)}},
      {"batch_broadcast", {q[0], k, v}},
      {"mask_of_bool", {q, k, v, values({2, 1, 9, 11}) > 0.0}},
      {"mask_of_keys", {q, k, v, values({2, 1, 1, 11}) > -0.5}},
      {"mask_of_rows", {q, k, v, values({9, 1})}},
      {"mask_of_numbers", {q, k, v, values({9, 11}, 5)}},
      {"mask_transposed", {q, k, v, values({11, 9}, 5).t()}},
      {"decode", {values({1, 2, 1, 8}), values({1, 2, 1100, 8}, 1), values({1, 2, 1100, 8}, 2)}},
      {"bf16", {q.to(kBFloat16), k.to(kBFloat16), v.to(kBFloat16)}},
      {"f16_masked", {q.to(kFloat16), k.to(kFloat16), v.to(kFloat16), values({9, 11}).to(kFloat16)}},
      {"mask_of_bf16", {q, k, v, values({9, 11}).to(kBFloat16)}},
      {"mask_of_floats_on_bf16", {q.to(kBFloat16), k.to(kBFloat16), v.to(kBFloat16), values({2, 1, 9, 11})}},
      {"one_operand", {q, q, q}, true},
      {"prefix_of_a_cache", {q, values({2, 4, 30, 8}, 1).slice(2, 0, 11), values({2, 4, 30, 5}, 2).slice(2, 0, 11)}},
      {"part_of_a_cache", {q, values({2, 4, 30, 8}, 1).slice(2, 3, 14), values({2, 4, 30, 5}, 2).slice(2, 3, 14)}},
      {"rows_apart", {q.transpose(2, 3).contiguous().transpose(2, 3), values({2, 4, 11, 16}, 1).slice(3, 0, 16, 2), v}},
      {"rows_apart_of_bf16",
       {values({2, 4, 9, 16}).to(kBFloat16).slice(3, 0, 16, 2), k.to(kBFloat16), v.to(kBFloat16)}},
      {"rows_of_one", {q.slice(3, 0, 1), k.slice(3, 0, 1), v.slice(3, 2, 3)}},
  };
}

TEST(Attention, IsOneKernelThatAgreesWithTheInterpreter) {
  for (auto& c : cases()) {
    SCOPED_TRACE(c.name);
    Function f = [&](const TensorList& x) { return attend(x, c.causal, c.gqa); };
    Tensor got, want = by_the_interpreter(f, c.inputs);
    EXPECT_EQ(ops_of([&] { got = f(c.inputs); }), "scaled_dot_product_attention 1");
    EXPECT_TRUE(is_close(got, want, c.inputs[0].dtype() == kFloat32 ? 1e-5 : 2e-2));
  }
}

TEST(Attention, TakesStridedViews) {
  Tensor packed = values({2, 9, 3, 4, 8});  // [batch, row, query/key/value, head, size]
  TensorList views, dense;
  for (int64_t i = 0; i < 3; ++i) {
    views.push_back(packed.select(2, i).transpose(1, 2));
    dense.push_back(views.back().contiguous());
  }
  Tensor got;
  EXPECT_EQ(ops_of([&] { got = attend(views); }), "scaled_dot_product_attention 1");
  EXPECT_TRUE(is_close(got, attend(dense), 0));
  Tensor turned = dense[1].transpose(2, 3).contiguous().transpose(2, 3);
  EXPECT_TRUE(is_close(attend({dense[0], turned, dense[2]}), attend(dense), 0));
}

// As the body does: zeros where a mask hides everything, NaN where the scores themselves say so.
TEST(Attention, RowsThatSeeNothing) {
  Tensor x = values({1, 1, 4, 8});
  Tensor seen = arange(4).unsqueeze(1) != 2;
  Tensor hidden = where(seen, 0.0, -double(kInfinity)).to(kFloat32);
  for (const Tensor& mask : {seen, hidden}) {
    TensorList inputs = {x, x, x, mask};
    Tensor got = attend(inputs), want = by_the_interpreter([](auto& in) { return attend(in); }, inputs);
    EXPECT_TRUE(is_close(got, want, 1e-5));
    EXPECT_EQ(got[0][0][2].abs().sum().item<float>(), 0);
    EXPECT_NE(got[0][0][1].abs().sum().item<float>(), 0);
  }
  Tensor endless = full({1, 1, 4, 8}, -double(kInfinity)), ones_ = full({1, 1, 4, 8}, 1.0);
  for (float v : attend({ones_, endless, x}).to_vector<float>()) EXPECT_TRUE(std::isnan(v));
}

TEST(Attention, NaNSpreadsOverItsRowAlone) {
  Tensor q = values({1, 1, 20, 8}), k = values({1, 1, 300, 8}, 1);
  q[0][0][3][5] = std::nan("");
  Tensor mask = (values({20, 300}) > -2.0);
  for (auto& inputs : {TensorList{q, k, k}, TensorList{q, k, k, mask}}) {
    Tensor got = attend(inputs)[0][0];
    for (int64_t row = 0; row < 20; ++row) EXPECT_EQ(std::isnan(got[row].sum().item<float>()), row == 3) << row;
  }
}

TEST(Attention, BodyRunsWhereNoKernelFits) {
  auto runs_body = [](const TensorList& x) {
    std::string ran = ops_of([&] { attend(x); });
    return ran.find("scaled_dot_product_attention") == ran.npos && ran.find("attention_forward") == ran.npos;
  };
  Tensor x = values({1, 2, 3, 4});
  EXPECT_FALSE(runs_body({x, x, x}));
  EXPECT_TRUE(runs_body({x.to(kFloat64), x.to(kFloat64), x.to(kFloat64)}));
  EXPECT_TRUE(runs_body({x.unsqueeze(0), x, x}));
  Tensor leaf = x.clone().requires_grad_(true);
  EXPECT_FALSE(runs_body({leaf, x, x}));
  NoGradGuard no_history;
  EXPECT_FALSE(runs_body({leaf, x, x}));
}

// Kernels of gradients write as much as the operands have: nothing is added up over dimensions that one of them lacks.
TEST(Attention, FormsForTrainingRefuseOtherLeadingDimensions) {
  Tensor q = values({5, 4}), k = values({2, 6, 4}), rows = values({2, 5}), grad = values({2, 5, 4});
  auto call = [](const char* name, const std::vector<TensorArg>& operands) {
    return error_of([&] { call_op_many(*find_op(name), operands, AttentionAttrs{}, Where::current()); });
  };
  EXPECT_NE(call("attention_forward", {q, k, k}).find("leading dimensions"), std::string::npos);
  EXPECT_NE(call("attention_backward", {q, k, k, rows, rows, grad}).find("leading dimensions"), std::string::npos);
  // The function itself adds them up.
  Tensor leaf = q.clone().requires_grad_();
  scaled_dot_product_attention(leaf, k, k).sum().backward();
  EXPECT_EQ(leaf.grad().sizes(), q.sizes());
}

// Where a gradient is wanted there are two kernels, and no weights in memory: eagerly, with the loss compiled, and in one program.
TEST(Attention, GradientsByKernels) {
  for (bool causal : {false, true})
    for (DType dtype : {kFloat32, kBFloat16}) {
      TensorList leaves;
      for (int i = 0; i < 3; ++i) leaves.push_back((values({2, i == 0 ? 4 : 2, 40, 16}, i) * 0.3).to(dtype).requires_grad_());
      auto loss = [=](const TensorList& x) { return (attend(x, causal, true) * values({2, 4, 40, 16}).to(dtype)).sum(); };
      auto gradients = [](const TensorList& x, auto f) { return autograd::grad({f(x)}, x); };
      TensorList exact;
      for (auto& t : leaves) exact.push_back(t.to(kFloat64).detach().requires_grad_());
      TensorList want = gradients(exact, [&](const TensorList& x) {
        return (attend(x, causal, true) * values({2, 4, 40, 16}).to(dtype).to(kFloat64)).sum();
      });
      auto expect_close = [&](const TensorList& got) {
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(is_close(got[i].to(kFloat32), want[i].to(kFloat32), dtype == kFloat32 ? 1e-4 : 5e-2)) << i;
      };
      std::string ran = ops_of([&] { expect_close(gradients(leaves, loss)); });
      EXPECT_NE(ran.find("attention_backward"), ran.npos) << ran;
      EXPECT_EQ(ran.find("bmm"), ran.npos) << ran;
      expect_close(gradients(leaves, compile(loss)));
      auto whole = compile([&](const TensorList& x) { return gradients(x, loss); });
      std::string compiled = ops_of([&] { expect_close(whole(leaves)); });
      EXPECT_NE(compiled.find("attention_backward"), compiled.npos) << compiled;
      EXPECT_EQ(compiled.find("bmm"), compiled.npos) << compiled;
    }
}

constexpr auto kProgram = R"(
  %0 = input : f32[1, s0, 3, 2, 8] "packed"
  %1 = select(%0) {dim=2, index=0} : f32[1, s0, 2, 8]
  %2 = select(%0) {dim=2, index=1} : f32[1, s0, 2, 8]
  %3 = select(%0) {dim=2, index=2} : f32[1, s0, 2, 8]
  %4 = permute(%1) {dims=[0, 2, 1, 3]} : f32[1, 2, s0, 8]
  %5 = permute(%2) {dims=[0, 2, 1, 3]} : f32[1, 2, s0, 8]
  %6 = permute(%3) {dims=[0, 2, 1, 3]} : f32[1, 2, s0, 8]
  %7 = scaled_dot_product_attention(%4, %5, %6) {is_causal=true} : f32[1, 2, s0, 8]
  %8 = relu(%7) : f32[1, 2, s0, 8]
  return %8
)";

TEST(Attention, StaysWholeInAPlanOfAnySize) {
  Runner planned(kProgram, "sinter", {"s0"}), referee(kProgram, "interpreter", {"s0"});
  for (int64_t n : {5, 40}) {
    std::vector<TensorArg> inputs = {values({1, n, 3, 2, 8})};
    TensorList got;
    std::string ran = ops_of([&] { got = planned(inputs, {n}); });
    EXPECT_NE(ran.find("scaled_dot_product_attention 1"), std::string::npos) << ran;
    EXPECT_EQ(ran.find("mm"), std::string::npos) << ran;
    EXPECT_TRUE(is_close(got[0], referee(inputs, {n})[0], 1e-5));
  }
}

TEST(Attention, StaysWholeInACompiledFunction) {
  auto f = compile([](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, 0, true) * 2; });
  Tensor x = values({2, 3, 17, 16}), want = scaled_dot_product_attention(x, x, x, {}, 0, true) * 2, got = f(x);
  std::string ran = ops_of([&] { got = f(x); });
  EXPECT_NE(ran.find("scaled_dot_product_attention 1"), std::string::npos) << ran;
  EXPECT_EQ(ran.find("mm"), std::string::npos) << ran;
  EXPECT_TRUE(is_close(got, want, 1e-5));
}

// In a plan it is a step with neighbours or without, on whatever operands; bit by bit what the eager call gives.
TEST(Attention, IsAStepOfItsOwnKind) {
  for (auto& c : cases()) {
    SCOPED_TRACE(c.name);
    Function f = [&](const TensorList& x) { return attend(x, c.causal, c.gqa); };
    auto alone = compile(f);
    auto among = compile([&](const TensorList& x) { return f(x).relu() + 1; });
    Tensor want = f(c.inputs);
    EXPECT_TRUE(is_close(alone(c.inputs), want, 0));
    EXPECT_TRUE(is_close(among(c.inputs), want.relu() + 1, 1e-6));
    auto kernels = compiler::explain(f, c.inputs).programs.at(0).reports.at(0)->kernels;
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].name, "scaled_dot_product_attention");
    EXPECT_EQ(kernels[0].by, "attention");
    EXPECT_GT(kernels[0].cost.flops, 0);
  }
}

TEST(Attention, StepIsSharedByLayersAndWritesInPlace) {
  auto plan = [](const char* text, std::vector<int> writes = {}) {
    Program program{
        .graph = group_kernels(Graph::parse(text)), .symbols = {}, .writes = std::move(writes), .name = "test"};
    return make_plan(program, {}, {});
  };
  auto layers = plan(R"(%0 = input : f32[2, 5, 8]
                        %1 = scaled_dot_product_attention(%0, %0, %0) : f32[2, 5, 8]
                        %2 = scaled_dot_product_attention(%1, %1, %1) : f32[2, 5, 8]
                        return %2)");
  ASSERT_EQ(layers->steps.size(), 2u);
  for (auto& step : layers->steps) EXPECT_EQ(step.kind, Step::Kind::kFused);
  EXPECT_EQ(layers->steps[0].code, layers->steps[1].code);
  // What it reads stays: the result goes to the input's memory only where it is no operand.
  auto apart = plan(
      "%0 = input : f32[2, 5, 8]\n%1 = input : f32[2, 5, 8]\n"
      "%2 = scaled_dot_product_attention(%0, %0, %0) : f32[2, 5, 8]\nreturn %2",
      {1});
  EXPECT_TRUE(apart->steps[0].in_place);
  auto operand =
      plan("%0 = input : f32[2, 5, 8]\n%1 = scaled_dot_product_attention(%0, %0, %0) : f32[2, 5, 8]\nreturn %1", {0});
  EXPECT_FALSE(operand->steps[0].in_place);
}

// A kernel that was made of attention on lengths that were not known, and are none.
TEST(Attention, StepTakesItApartWhereNoKernelFits) {
  Runner planned(kProgram, "sinter", {"s0"}), referee(kProgram, "interpreter", {"s0"});
  std::vector<TensorArg> inputs = {values({1, 0, 3, 2, 8})};
  EXPECT_TRUE(is_close(planned(inputs, {0})[0], referee(inputs, {0})[0], 0));
  constexpr auto kNoKeys = R"(
    %0 = input : f32[2, 3, 8] "q"
    %1 = input : f32[2, s0, 8] "k"
    %2 = input : bool[3, s0] "seen"
    %3 = scaled_dot_product_attention(%0, %1, %1, %2) : f32[2, 3, 8]
    return %3
  )";
  Runner no_keys(kNoKeys, "sinter", {"s0"});
  Tensor got = no_keys({values({2, 3, 8}), values({2, 0, 8}), values({3, 0}) > 0.0}, {0})[0];
  EXPECT_EQ(got.abs().sum().item<float>(), 0);
}

TEST(Attention, CompiledGradientsAreThoseOfItsBody) {
  auto loss = [](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, 0, true).square().sum(); };
  Tensor eager = values({2, 3, 9, 8}).requires_grad_(true), compiled = values({2, 3, 9, 8}).requires_grad_(true);
  loss(eager).backward();
  auto f = compile(loss);
  f(compiled).backward();
  EXPECT_TRUE(is_close(compiled.grad(), eager.grad(), 1e-4));
}

}  // namespace
}  // namespace sinter
