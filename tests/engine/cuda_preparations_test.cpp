// Kernels of steps that are not fused are compiled with the plan, before they run; on a stand-in for the driver.
#include "sinter/engine/executable/eager_step.h"

#include "sinter/engine/executable/frame.h"
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
    Program program{.graph = Graph::parse(R"(%0 = input : bf16[1, 1, 64, 32]@cuda:0
                                             %1 = cumsum(%0) {dim=2} : bf16[1, 1, 64, 32]@cuda:0
                                             %2 = scaled_dot_product_attention(%1, %0, %0) {is_causal=true} : bf16[1, 1, 64, 32]@cuda:0
                                             %3 = scaled_dot_product_attention(%2, %0, %0) {is_causal=true} : bf16[1, 1, 64, 32]@cuda:0
                                             return %3)"),
                    .symbols = {}, .writes = {}, .name = "test"};
    int64_t before = programs();
    auto plan = make_plan(program, {}, {});
    // The two calls of attention are one kernel.
    SINTER_REQUIRE(eager_preparations(*plan).size() == 2);
    SINTER_REQUIRE(programs() == before + 2);
    Frame frame(plan);
    TensorArg x(empty({1, 1, 64, 32}, TensorOptions(kBFloat16).device(cuda(0))));
    Tensor out;
    frame.run({&x, 1}, {&out, 1});
    SINTER_REQUIRE(programs() == before + 2);
  });
}

}  // namespace
}  // namespace sinter
