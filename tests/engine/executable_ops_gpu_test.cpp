// Every op through a plan on a GPU, run step by step, recorded as a graph, and replayed on memory that has moved.
#include <gtest/gtest.h>

#include "sinter/engine/executable.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using namespace sinter::testing;

class GpuPlannedOp : public ::testing::TestWithParam<const Op*> {};

TEST_P(GpuPlannedOp, AgreesWithTheReferee) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  const Op& op = *GetParam();
  for (auto& sample : samples_of(op, kFloat32)) {
    if (!sample.accepted()) continue;
    for (auto layout : {MemoryLayout::kContiguous, MemoryLayout::kTransposed}) {
      SCOPED_TRACE(sample.text + " " + name_of(layout));
      Program program;
      program.records = true;
      std::vector<Value> operands;
      std::vector<TensorArg> inputs;
      for (auto& operand : sample.operands) {
        if (operand.scalar) {
          operands.push_back(program.graph.add_scalar(operand.number));
          continue;
        }
        inputs.emplace_back(moved(lay_out(operand.values, layout), cuda()));
        operands.push_back(program.graph.add_input({operand.values.dtype, Shape(operand.values.sizes), cuda()}));
      }
      const Node& node = program.graph.add(op, operands, sample.attrs);
      std::vector<Value> outputs;
      for (size_t r = 0; r < node.types.size(); ++r) outputs.push_back(node.result(int(r)));
      program.graph.set_outputs(outputs);
      auto executable = compile_program(std::move(program));
      auto want = referee(sample);
      std::vector<TensorList> kept;
      for (int round = 0; round < 4; ++round) {
        for (auto& input : inputs) input = TensorArg(moved(input.tensor(), cuda()));
        kept.emplace_back(outputs.size());
        executable->run(inputs, {}, kept.back());
      }
      for (auto& got : kept) {
        for (size_t r = 0; r < got.size(); ++r)
          EXPECT_EQ(difference(got[r], want[r], op.tolerance), "") << "result " << r;
      }
    }
  }
}

std::vector<const Op*> runnable_ops() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    // The branches of samples of control flow are graphs on the CPU, and so is where a creation op's sample puts its result.
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar && op->name != "cond" && op->name != "while_loop" &&
        op->name != "full")
      out.push_back(op);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, GpuPlannedOp, ::testing::ValuesIn(runnable_ops()),
                         [](auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
