// Kernels of attention and of steps that are not fused are compiled with the plan, before they run; on a stand-in for the
// driver.
#include "sinter/engine/executable/eager_step.h"

#include <deque>

#include "sinter/engine/executable/frame.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/runtime/fake_cuda.h"

namespace sinter {
namespace {

using runtime::on_fake;
using CudaPreparations = runtime::FakeCudaTest;

int64_t programs() {
  auto stats = runtime::cuda_compile_stats();
  return stats.compiles + stats.disk_hits;
}

TEST_F(CudaPreparations, AttentionAndLoopsAreReadyBeforeTheFirstRun) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    Program program{.graph = group_kernels(Graph::parse(R"(%0 = input : bf16[1, 1, 64, 32]@cuda:0
                                             %1 = cumsum(%0) {dim=2} : bf16[1, 1, 64, 32]@cuda:0
                                             %2 = scaled_dot_product_attention(%1, %0, %0) {is_causal=true} : bf16[1, 1, 64, 32]@cuda:0
                                             %3 = scaled_dot_product_attention(%2, %0, %0) {is_causal=true} : bf16[1, 1, 64, 32]@cuda:0
                                             return %3)")),
                    .symbols = {}, .writes = {}, .name = "test"};
    int64_t before = programs();
    auto plan = make_plan(program, {}, {});
    // The two calls of attention are one kernel, and one step.
    SINTER_REQUIRE(eager_preparations(*plan).size() == 1);
    SINTER_REQUIRE(plan->steps.size() == 3 && plan->steps[1].code && plan->steps[1].code == plan->steps[2].code);
    SINTER_REQUIRE(plan->steps[1].code->made_by() == "attention" && plan->steps[1].code->is_loaded());
    SINTER_REQUIRE(programs() == before + 2);
    Frame frame(plan);
    TensorArg x(empty({1, 1, 64, 32}, TensorOptions(kBFloat16).device(cuda(0))));
    Tensor out;
    frame.run({&x, 1}, {&out, 1});
    SINTER_REQUIRE(programs() == before + 2);
  });
}

// Calls that run step by step, are recorded, and are replayed, with rows that have to be copied.
TEST_F(CudaPreparations, AttentionOnRowsThatAreNotDense) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    Program program{.graph = group_kernels(Graph::parse(R"(%0 = input : bf16[1, 2, 8, 4]@cuda:0
                                                           %1 = permute(%0) {dims=[0, 1, 3, 2]} : bf16[1, 2, 4, 8]@cuda:0
                                                           %2 = scaled_dot_product_attention(%1, %1, %1) : bf16[1, 2, 4, 8]@cuda:0
                                                           return %2)")),
                    .symbols = {}, .writes = {}, .name = "test", .records = true, .grouped = true};
    auto executable = compile_program(std::move(program));
    std::deque<Tensor> kept;
    for (int round = 0; round < 4; ++round) {
      TensorArg x(kept.emplace_back(empty({1, 2, 8, 4}, TensorOptions(kBFloat16).device(cuda(0)))));
      Tensor& out = kept.emplace_back();
      executable->run({&x, 1}, {}, {&out, 1});
      SINTER_REQUIRE(out.sizes() == Shape({1, 2, 4, 8}));
    }
  });
}

}  // namespace
}  // namespace sinter
