// Every op through a plan of one step. A value has no layout in a graph: whatever the inputs look like, the result is
// the one of the referee.
#include <gtest/gtest.h>

#include "sinter/engine/executable.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using namespace sinter::testing;

class PlannedOp : public ::testing::TestWithParam<const Op*> {};

TEST_P(PlannedOp, AgreesWithTheReferee) {
  const Op& op = *GetParam();
  for (auto& sample : samples_of(op, kFloat32)) {
    if (!sample.accepted()) continue;
    for (auto layout : {MemoryLayout::kContiguous, MemoryLayout::kTransposed}) {
      SCOPED_TRACE(sample.text + " " + name_of(layout));
      Program program;
      std::vector<Value> operands;
      std::vector<TensorArg> inputs;
      for (auto& operand : sample.operands) {
        if (operand.scalar) {
          operands.push_back(program.graph.add_scalar(operand.number));
          continue;
        }
        inputs.emplace_back(lay_out(operand.values, layout));
        operands.push_back(program.graph.add_input({operand.values.dtype, Shape(operand.values.sizes), {}}));
      }
      const Node& node = program.graph.add(op, operands, sample.attrs);
      std::vector<Value> outputs;
      for (size_t r = 0; r < node.types.size(); ++r) outputs.push_back(node.result(int(r)));
      program.graph.set_outputs(outputs);
      auto executable = compile_program(std::move(program));
      TensorList got(outputs.size());
      auto want = referee(sample);
      for (int round = 0; round < 2; ++round) {
        executable->run(inputs, {}, got);
        for (size_t r = 0; r < got.size(); ++r)
          EXPECT_EQ(difference(got[r], want[r], op.tolerance), "") << "result " << r;
      }
    }
  }
}

std::vector<const Op*> runnable_ops() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    if (op->kind != OpKind::kPointwise) out.push_back(op);  // those share one road
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, PlannedOp, ::testing::ValuesIn(runnable_ops()),
                         [](auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
