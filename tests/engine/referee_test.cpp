// Bounds of the referee: every op's own results lie within them, results that are a little off do not, and what rounding may
// decide either way is not held against anybody.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/engine/referee/bounds.h"
#include "sinter/engine/referee/check_steps.h"
#include "sinter/engine/referee/whole.h"
#include "sinter/ops/creation.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using namespace sinter::testing;

// One element of the result moved by far more than any rounding.
Tensor tampered(const Tensor& result) {
  Array array = to_array(result);
  size_t at = size_t(array.numel()) / 2;
  if (array.floating())
    array.f[at] = std::isfinite(array.f[at]) ? array.f[at] + 0.01 * (1 + std::abs(array.f[at])) : 0;
  else
    array.i[at] = array.dtype == kBool ? !array.i[at] : array.i[at] + 1;
  return to_tensor(array);
}

class CheckedOp : public ::testing::TestWithParam<const Op*> {};

TEST_P(CheckedOp, OwnResultsAreRightAndOthersAreNot) {
  const Op& op = *GetParam();
  for (DType dtype : {kFloat32, kBFloat16})
    for (auto& sample : samples_of(op, dtype)) {
      if (!sample.accepted()) continue;
      SCOPED_TRACE(sample.text + " " + to_string(dtype));
      std::vector<TensorArg> inputs;
      for (auto& o : sample.operands) inputs.push_back(o.scalar ? TensorArg(o.number) : TensorArg(to_tensor(o.values)));
      TensorList results = run_eagerly(sample, MemoryLayout::kContiguous);
      std::string where;
      referee::CheckSteps right("test");
      right.after({op, sample.attrs, where, inputs, results});
      ASSERT_EQ(right.left_out(), "");
      for (auto& wrong : right.wrong()) ADD_FAILURE() << wrong.text();
      if (op.name == "empty" || dtype != kFloat32) continue;
      for (size_t r = 0; r < results.size(); ++r) {
        if (results[r].numel() == 0) continue;
        TensorList others = results;
        others[r] = tampered(results[r]);
        referee::CheckSteps wrong("test");
        wrong.after({op, sample.attrs, where, inputs, others});
        EXPECT_EQ(wrong.wrong().size(), 1u) << "result " << r;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, CheckedOp, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](auto& info) { return std::string(info.param->name); });

std::vector<referee::Bounded> bounded(std::string_view text, const std::vector<Tensor>& inputs) {
  std::vector<referee::Known> known(inputs.begin(), inputs.end());
  return referee::evaluate_bounded(Graph::parse(text), std::move(known));
}

TEST(Bounds, GrowWithWhatMagnifiesErrors) {
  auto tight = bounded("%0 = input : f32[1]\n%1 = exp(%0) : f32[1]\nreturn %1", {full({1}, 1.0)});
  auto loose = bounded(R"(%0 = input : f32[1]
    %1 = exp(%0) : f32[1]
    %2 = scalar {value=1000.0} : weak f64[]
    %3 = mul(%1, %2) : f32[1]
    %4 = sin(%3) : f32[1]
    return %4)", {full({1}, 1.0)});
  EXPECT_LT(tight[0].error[0], 1e-5);
  EXPECT_GT(loose[0].error[0], 1e-4);
  EXPECT_LT(loose[0].error[0], 1e-1);
}

TEST(Bounds, LetComparisonsOfNearlyEqualValuesBeEither) {
  auto out = bounded(R"(%0 = input : f32[3]
    %1 = exp(%0) : f32[3]
    %2 = log(%1) : f32[3]
    %3 = eq(%2, %0) : bool[3]
    %4 = lt(%2, %0) : bool[3]
    %5 = scalar {value=0.0} : weak f64[]
    %6 = gt(%0, %5) : bool[3]
    return %3, %4, %6)", {tensor({0.5, 1.0, 2.0})});
  for (double e : out[0].error) EXPECT_GT(e, 0);
  for (double e : out[1].error) EXPECT_GT(e, 0);
  EXPECT_TRUE(out[2].error.empty());  // of operands that are known there is one answer
}

TEST(Bounds, KnowWhatTheDtypeCannotHold) {
  auto out = bounded("%0 = input : f32[2]\n%1 = exp(%0) : f32[2]\n%2 = log(%1) : f32[2]\nreturn %2", {tensor({100.0, 1.0})});
  EXPECT_TRUE(std::isinf(out[0].error[0]));
  EXPECT_LT(out[0].error[1], 1e-5);
}

TEST(Bounds, OfSumsFollowTheirTerms) {
  auto sum = [](double scale) {
    return bounded("%0 = input : f32[1000]\n%1 = sum(%0) {dims=[0]} : f32[]\nreturn %1", {full({1000}, scale)})[0].error[0];
  };
  EXPECT_LT(sum(1e-6), 1e-7);  // no absolute tolerance hides small sums
  EXPECT_NEAR(sum(1e3) / sum(1.0), 1e3, 1);
}

TEST(Bounds, OfIntegersAreExact) {
  auto out = bounded("%0 = input : i64[4]\n%1 = mul(%0, %0) : i64[4]\n%2 = sum(%1) {dims=[0]} : i64[]\nreturn %2", {arange(4)});
  EXPECT_TRUE(out[0].error.empty());
  EXPECT_EQ(out[0].value.array().i[0], 14);
}

TEST(Whole, AllowsWhatRoundingMoves) {
  Graph graph = Graph::parse(R"(%0 = input : f32[4]
    %1 = exp(%0) : f32[4]
    %2 = scalar {value=10000.0} : weak f64[]
    %3 = mul(%1, %2) : f32[4]
    %4 = sin(%3) : f32[4]
    return %1, %4)");
  std::vector<referee::Known> inputs{referee::Known(tensor({0.1, 0.2, 0.3, 0.4}))};
  auto whole = referee::evaluate_whole(graph, inputs, {});
  for (double allowed : whole.allowed[0]) EXPECT_LT(allowed, 1e-4);
  for (double allowed : whole.allowed[1]) EXPECT_GT(allowed, 1e-3);
}

}  // namespace
}  // namespace sinter
