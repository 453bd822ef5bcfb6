// Batches on a GPU: on the stand-in for the driver, and on a real one where there is one.
#include <gtest/gtest.h>

#include "sinter/data/data_loader.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cuda/pinned.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/error_of.h"

namespace sinter::data {
namespace {

TensorDataset rows() { return TensorDataset(arange(4000).view({40, 100}), arange(40)); }

// All data of an epoch, brought back.
std::vector<int64_t> epoch_of(const DataLoaderOptions& options) {
  std::vector<int64_t> out;
  auto loader = make_data_loader(rows(), options);
  for (auto& batch : *loader) {
    check(batch.data.device() == options.device() && batch.target.device() == options.device(),
          "the batch is elsewhere");
    const auto values = batch.data.cpu().to_vector<int64_t>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

using OnFakeCuda = runtime::FakeCudaTest;

TEST_F(OnFakeCuda, BatchesArriveThere) {
  using runtime::on_fake;
  SINTER_EXPECT_ON_FAKE([] {
    auto options = DataLoaderOptions(7).shuffle(true);
    const auto expected = epoch_of(options);
    SINTER_REQUIRE(expected.size() == 4000);
    for (int64_t workers : {0, 3})
      SINTER_REQUIRE(epoch_of(DataLoaderOptions(options).workers(workers).device(cuda(1))) == expected);
  });
}

TEST_F(OnFakeCuda, BatchesOfTheHostArePinned) {
  using runtime::on_fake;
  SINTER_EXPECT_ON_FAKE([] {
    auto loader = make_data_loader(rows(), DataLoaderOptions(8).workers(2).pin_memory(true));
    for (auto& batch : *loader)
      SINTER_REQUIRE(runtime::is_pinned(batch.data.data_ptr()) && runtime::is_pinned(batch.target.data_ptr()));
  });
}

TEST(DataLoaderDevice, OneThatIsNotHereIsAnErrorAtOnce) {
  if (runtime::cuda_is_available()) GTEST_SKIP() << "it is";
  EXPECT_NE(
      message_of([] { make_data_loader(rows(), DataLoaderOptions(8).device(kCUDA)); }).find("cuda:0 is not available"),
      std::string::npos);
}

TEST(GpuDataLoader, BatchesArriveThere) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  auto options = DataLoaderOptions(7).shuffle(true);
  const auto expected = epoch_of(options);
  for (int64_t workers : {0, 3})
    EXPECT_EQ(epoch_of(DataLoaderOptions(options).workers(workers).device(kCUDA)), expected);
}

}  // namespace
}  // namespace sinter::data
