// Pools in the order of channels-last images.
#include <gtest/gtest.h>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/pooling.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/registry.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/support/distance.h"

namespace sinter {
namespace {

const MaxPoolAttrs kForward{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
const MaxPoolGradAttrs kBack{.reach = {3, 3}, .stride = {2, 1}, .padding = {1, 0}, .size = {13, 17}};

TEST(CudaPool, KernelsCompile) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  for (DType dtype : {kFloat32, kBFloat16, kFloat16})
    for (int64_t each : {int64_t(1), 16 / item_size(dtype)})
      for (auto& source : eager::channels_last_pool_texts(kForward, kBack, dtype, each))
        EXPECT_NO_THROW(runtime::compile_cuda(std::string(codegen::cuda_prelude()) + source.text, source.name, "sm_90"))
            << source.text;
}

// What was meant for a kernel that gives another order.
TEST(EagerLoops, WriteIntoAPlaceOfAnyOrder) {
  Tensor x = randn({2, 5, 6, 7}), want = eager::run_loops(*find_op("max_pool"), std::vector<TensorArg>{x}, kForward, nullptr);
  Tensor place = zeros({2, want.size(2), want.size(3), 5}).permute({0, 3, 1, 2});
  Tensor got = eager::run_loops(*find_op("max_pool"), std::vector<TensorArg>{x}, kForward, &place);
  EXPECT_EQ(distance(place, want), 0);
  EXPECT_EQ(got.data_ptr(), place.data_ptr());
}

}  // namespace
}  // namespace sinter
