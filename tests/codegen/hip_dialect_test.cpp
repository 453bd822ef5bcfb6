// HIP kernels as text: that those of every op, of every kind, of a Llama block and of a ResNet block compile for AMD's GPUs; and
// that the blocks compute what they should with as many lanes as those have, on the CPU. No such GPU was at hand.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/codegen/hip/prelude.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "tests/support/network_blocks.h"
#include "tests/codegen/gpu_program.h"
#include "tests/codegen/kernels.h"
#include "tests/support/amd_compiler.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

using testing::GpuProgram;
using testing::NetworkBlock;

TEST(HipTarget, LanesFollowTheArchitecture) {
  for (auto* architecture : {"gfx906", "gfx90a", "gfx942", "gfx950"})
    EXPECT_EQ(codegen::hip_target(architecture).lane_width, 64) << architecture;
  for (auto* architecture : {"gfx1030", "gfx1100", "gfx1201"})
    EXPECT_EQ(codegen::hip_target(architecture).lane_width, 32) << architecture;
  EXPECT_THROW(codegen::hip_target("sm_90"), Error);
  EXPECT_THROW(codegen::hip_target("gfx"), Error);
}

// The graph of a block on an AMD GPU after the passes.
Graph graph_of(const NetworkBlock& block, bool simplified_only = false) {
  std::vector<Type> types;
  for (auto& t : block.inputs) types.push_back({t.dtype(), t.sizes(), hip()});
  PipelineOptions pipeline = planning_pipeline(gpu_target(64));
  if (simplified_only) pipeline.skip = {"fuse", "nest"};
  return run_passes(trace(block.run, types), pipeline);
}

class HipDialect : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!testing::amd_compiler_problem().empty()) GTEST_SKIP() << testing::amd_compiler_problem();
  }
  static Target target() { return codegen::hip_target(GetParam()); }
  static void expect_compiled(const std::string& program, const std::vector<std::string>& names) {
    std::string object;
    ASSERT_NO_THROW(object = testing::compile_for_amd(codegen::hip_prelude(target()) + program, GetParam()));
    for (auto& name : names) EXPECT_TRUE(testing::has_amd_kernel(object, name)) << name;
  }
  static void expect_compiled(const Kernels& kernels) {
    const size_t at_once = 64;
    auto programs = kernels.programs(at_once);
    for (size_t i = 0; i < programs.size(); ++i) {
      auto from = kernels.names().begin() + long(i * at_once);
      expect_compiled(programs[i], {from, from + std::min(long(at_once), kernels.names().end() - from)});
    }
  }
};

TEST_P(HipDialect, EveryOpCompiles) {
  Kernels kernels(target());
  kernels.add_every_op();
  EXPECT_GT(kernels.size(), 100u);
  expect_compiled(kernels);
  RecordProperty("kernels", int(kernels.size()));
}

TEST_P(HipDialect, EveryKindCompiles) {
  Kernels kernels(target());
  kernels.add_every_kind();
  expect_compiled(kernels);
  RecordProperty("kernels", int(kernels.size()));
}

TEST_P(HipDialect, BlocksCompile) {
  int all = 0;
  for (DType dtype : {kFloat32, kBFloat16, kFloat16})
    for (auto& block : {testing::llama_block(dtype), testing::resnet_block(dtype)}) {
      GpuProgram program(graph_of(block), block.inputs, target());
      std::string text;
      std::vector<std::string> names;
      for (auto& kernel : program.kernels()) {
        text += kernel.text;
        names.push_back(kernel.name);
      }
      EXPECT_GT(names.size(), 2u);
      expect_compiled(text, names);
      all += int(names.size());
    }
  RecordProperty("kernels", all);
}

TEST_P(HipDialect, AnotherNumberOfLanesIsRefused) {
  const Target other = gpu_target(target().lane_width == 64 ? 32 : 64);
  EXPECT_THROW(testing::compile_for_amd(codegen::hip_prelude(other), GetParam()), Error);
}

INSTANTIATE_TEST_SUITE_P(Architectures, HipDialect, ::testing::Values("gfx90a", "gfx942", "gfx1100"),
                         [](const auto& info) { return info.param; });

// The same kernels on the CPU, with the lanes of either architecture.
class BlocksOnHost : public testing::WithoutThreadSanitizer, public ::testing::WithParamInterface<int> {};

TEST_P(BlocksOnHost, AgreeWithTheReferee) {
  for (auto& block : {testing::llama_block(kFloat32), testing::resnet_block(kFloat32)}) {
    std::vector<Array> arrays;
    for (auto& t : block.inputs) arrays.push_back(to_array(t));
    auto want = interpret(graph_of(block, true), arrays);
    GpuProgram program(graph_of(block), block.inputs, gpu_target(GetParam()));
    ASSERT_EQ(program.run(), "");
    ASSERT_EQ(program.results().size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      Array got = to_array(program.results()[i]);
      ASSERT_EQ(got.sizes, want[i].sizes);
      for (int64_t at = 0; at < want[i].numel(); ++at)
        ASSERT_NEAR(got.number(at), want[i].number(at), 1e-4 * std::max(1.0, std::abs(want[i].number(at))))
            << "result " << i << " at " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, BlocksOnHost, ::testing::Values(32, 64),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace sinter
