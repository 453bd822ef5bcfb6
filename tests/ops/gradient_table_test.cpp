// The gradient of every op against finite differences, from the op list itself; both by the double-precision referee.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/tensor/tracer.h"
#include "tests/support/gradcheck.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::Sample;

// What finite differences cost: an evaluation of all results for every element of every operand.
int64_t cost_of(const Sample& sample, const std::vector<Array>& results) {
  int64_t moved = 0, evaluated = 0;
  for (auto& operand : sample.operands)
    if (!operand.scalar && operand.values.floating()) moved += operand.values.numel();
  for (auto& result : results) evaluated += result.numel();
  return moved * evaluated;
}

// Integers (indices) and masks are held fixed.
bool has_floating_operand(const Sample& sample) {
  for (auto& operand : sample.operands)
    if (!operand.scalar && operand.values.floating() && operand.values.numel() > 0) return true;
  return false;
}

// Ops that read one triangle of a symmetric matrix: their gradient is that of a symmetric change, as in PyTorch.
bool takes_symmetric(const Op& op) {
  return op.name == "linalg_cholesky_ex" || op.name == "linalg_eigh" || op.name == "linalg_matrix_sqrth";
}

::testing::AssertionResult gradcheck_symmetric(const Op& op, const Array& matrix, const Attrs& attrs,
                                               const GradcheckOptions& options) {
  auto run = [&](const TensorList& x) {
    TensorArg symmetric[] = {TensorArg(0.5 * (x[0] + x[0].transpose(-2, -1)))};
    return Dispatcher::instance().run(op, symmetric, attrs);
  };
  return gradcheck(run, std::span(&matrix, 1), options);
}

// A draw's gradient is that of the quantile it is, not of the path its rejections take: tests/distributions compares it.
bool is_draw(const Op& op) { return op.name == "_standard_gamma"; }
// By the shape of a gamma distribution there is one derivative in closed form and no second, and of zeta by its exponent none.
bool has_shape_derivative(const Op& op) {
  return op.name == "gammainc" || op.name == "gammaincc" || op.name == "_standard_gamma_grad" || op.name == "special_zeta";
}

// Of two operands the first has no derivative in closed form.
bool refuses_first(const Op& op) { return op.name == "_standard_gamma_grad" || op.name == "special_zeta"; }

class GradientTable : public ::testing::TestWithParam<const Op*> {};

TEST_P(GradientTable, AgreesWithFiniteDifferences) {
  const Op& op = *GetParam();
  constexpr int64_t kAffordable = 60'000, kAffordableTwice = 40'000;
  if (op.sees_complex) return;  // tests/ops/complex_test.cpp
  bool differentiable = op.grad || op.kind == OpKind::kComposite;
  if (!differentiable) {
    EXPECT_GT(op.no_grad_reason.size(), 8u) << op.name << " has no gradient and does not say why";
    return;
  }
  if (is_draw(op)) return;
  int checked = 0, twice = 0;
  for (Sample& sample : testing::samples_of(op, kFloat64)) {
    if (!sample.accepted() || !has_floating_operand(sample)) continue;
    auto results = testing::referee(sample);
    int64_t cost = cost_of(sample, results);
    if (cost == 0 || cost > kAffordable) continue;
    std::vector<TensorArg> operands;
    for (auto& operand : sample.operands)
      operands.push_back(operand.scalar ? TensorArg(operand.number) : TensorArg(to_tensor(operand.values)));
    GradcheckOptions options;
    options.second_order = cost <= kAffordableTwice && !has_shape_derivative(op);
    if (refuses_first(op)) {
      EXPECT_THROW((void)gradcheck_op(op, operands, sample.attrs, options), Error);
      ++checked;
      continue;
    }
    // A conversion to integers has no slope; one to a narrower float is a staircase, measured over many of its steps.
    DType result = results[0].dtype;
    options.allow_constant = !is_floating(result);
    if (result != kFloat64) options.step = 0.5, options.relative = 0.03, options.absolute = 0.01;
    EXPECT_TRUE(takes_symmetric(op) ? gradcheck_symmetric(op, sample.operands[0].values, sample.attrs, options)
                                    : gradcheck_op(op, operands, sample.attrs, options))
        << op.name << " (" << sample.text << ")";
    ++checked;
    twice += options.second_order;
  }
  EXPECT_GT(checked, 0) << op.name << " has a gradient, but no sample small enough to check it";
  if (!has_shape_derivative(op)) EXPECT_GT(twice, 0) << op.name << " has no sample small enough to check its second derivative";
}

// Operands after the first `tensors` have no gradient, so a tensor there, which might want one, is refused.
TEST(Parameters, AreNumbers) {
  int ops = 0;
  for (auto* op : all_ops()) {
    if (op->kind != OpKind::kPointwise || op->pointwise->tensors == op->pointwise->arity) continue;
    ++ops;
    std::vector<Type> types(size_t(op->pointwise->arity), Type{.dtype = kFloat32, .shape = {3}, .device = {}});
    Attrs attrs = op->parse({});
    try {
      infer_types(*op, types, attrs);
      ADD_FAILURE() << op->name << " takes a tensor as parameter";
    } catch (const Error& e) {
      std::string expected = format("{}: operand {} must be a plain number", op->name, op->pointwise->tensors);
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
  EXPECT_GE(ops, 8);
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTable, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
