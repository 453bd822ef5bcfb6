// Every op through all passes, on inputs and on constants that fold: what the interpreter gives stays the same.
#include <gtest/gtest.h>

#include "sinter/ops/attributes.h"
#include "sinter/passes/pipeline.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::Sample;

// The op on the sample's operands, which are inputs or, where `folding`, tensors filled with their first element.
Graph graph_of(const Sample& sample, bool folding, std::vector<Array>& inputs) {
  Graph graph;
  std::vector<Value> operands;
  auto types = sample.types();
  for (size_t i = 0; i < types.size(); ++i) {
    auto& operand = sample.operands[i];
    if (operand.scalar) {
      operands.push_back(graph.add_scalar(operand.number));
    } else if (folding && operand.values.numel() > 0) {
      Scalar first = operand.values.floating() ? Scalar(operand.values.f[0]) : Scalar(operand.values.i[0]);
      CreationAttrs attrs{types[i].shape, types[i].dtype, types[i].device};
      operands.push_back(graph.add(*find_op("full"), {graph.add_scalar(first)}, attrs).result());
    } else {
      operands.push_back(graph.add_input(types[i]));
      inputs.push_back(operand.values);
    }
  }
  const Node& node = graph.add(*sample.op, operands, sample.attrs);
  std::vector<Value> results;
  for (size_t i = 0; i < node.types.size(); ++i) results.push_back(node.result(int(i)));
  graph.set_outputs(results);
  return graph;
}

class EveryOp : public ::testing::TestWithParam<const Op*> {};

TEST_P(EveryOp, KeepsItsValues) {
  const Op& op = *GetParam();
  // Folding rounds once to the dtype of the result.
  Tolerance tolerance = op.tolerance;
  tolerance.ulp += 1;
  for (DType dtype : {kFloat32, kInt64, kUInt8, kBool}) {
    for (auto& sample : testing::samples_of(op, dtype)) {
      if (!sample.accepted()) continue;
      for (bool folding : {false, true}) {
        std::vector<Array> inputs;
        Graph graph = graph_of(sample, folding, inputs);
        std::string text = graph.text();
        auto want = interpret(graph, inputs);
        Graph passed = run_passes(std::move(graph));
        auto got = interpret(passed, inputs);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_EQ(testing::difference(to_tensor(got[i]), want[i], tolerance), "")
              << op.name << " (" << sample.text << ") with x = " << dtype << "\n"
              << text << passed.text();
      }
    }
  }
}

std::vector<const Op*> computing_ops() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar) out.push_back(op);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(computing_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
