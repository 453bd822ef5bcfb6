// Every op of the registry, on its own samples: a batch of two gives what the ops give for each, stacked.
#include <cmath>

#include "sinter/ops/batching.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "tests/autograd/common.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

// The operands as a batch of two that differ: the second one's floating values are half the first's.
void expect_batched(const Op& op, testing::Sample& sample) {
  std::vector<TensorArg> first, second;
  TensorList batches;
  for (auto& operand : sample.operands) {
    if (operand.scalar) {
      first.emplace_back(operand.number);
      second.emplace_back(operand.number);
      continue;
    }
    Tensor x = to_tensor(operand.values), y = is_floating(x.dtype()) ? x * 0.5 : x;
    first.emplace_back(x);
    second.emplace_back(y);
    batches.push_back(stack({x, y}));
  }
  if (batches.empty()) return;
  Dispatcher& dispatcher = Dispatcher::instance();
  TensorList a = dispatcher.run(op, first, sample.attrs), b = dispatcher.run(op, second, sample.attrs);
  TensorList got = over_batch(batches, [&](const TensorList& inside) {
    auto inputs = first;
    for (size_t i = 0, next = 0; i < inputs.size(); ++i)
      if (!inputs[i].is_scalar()) inputs[i] = TensorArg(inside[next++]);
    return dispatcher.run(op, inputs, sample.attrs);
  });
  ASSERT_EQ(got.size(), a.size()) << op.name;
  for (size_t r = 0; r < a.size(); ++r) {
    Tensor want = stack({a[r], b[r]});
    EXPECT_EQ(got[r].dtype(), want.dtype()) << op.name;
    ASSERT_EQ(to_string(got[r].sizes()), to_string(want.sizes())) << op.name << " of " << sample.text;
    auto x = got[r].to_vector<double>(), y = want.to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      if (x[i] == y[i]) continue;
      ASSERT_NEAR(x[i], y[i], 1e-4 * (1 + std::abs(y[i]))) << op.name << " of " << sample.text;
    }
  }
}

TEST(VmapTable, EveryOpMatchesItsElements) {
  for (auto* op : all_ops()) {
    if (op->kind == OpKind::kInput || op->kind == OpKind::kScalar) continue;
    for (auto& sample : testing::samples_of(*op, kFloat32)) {
      // Attention with dropout is refused: what the elements of a batch draw is not settled.
      if (!sample.accepted() || sample.text.find("dropout_p") != std::string::npos) continue;
      std::string error;
      try {
        expect_batched(*op, sample);
      } catch (const Error& thrown) {
        error = thrown.message();
      }
      EXPECT_TRUE(error.empty() || error.find("different elements of the batch") != std::string::npos)
          << op->name << " of " << sample.text << ": " << error;
    }
  }
}

}  // namespace
}  // namespace sinter
