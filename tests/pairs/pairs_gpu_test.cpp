// A slice of all pairs and chains on a GPU; SINTER_PAIRS_ONE_OF=1 runs all.
#include "sinter/runtime/cuda/device.h"
#include "tests/pairs/pairs_suites.h"

namespace sinter::pairs {
namespace {

void run_gpu_pairs(const Op& op, const Slice& slice) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  run_pairs(op, slice);
}

void run_gpu_chains(const Op& op, const Slice& slice) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  run_chains(op, slice);
}

SINTER_PAIR_SUITE(GpuPairs, run_gpu_pairs, "pairs", Slice::from_environment(40, cuda()))
SINTER_PAIR_PARTS_4(GpuPairs, producers());

SINTER_PAIR_SUITE(GpuPairChains, run_gpu_chains, "chains", Slice::from_environment(20, cuda()))
SINTER_PAIR_PARTS_4(GpuPairChains, selecting_ops());

}  // namespace
}  // namespace sinter::pairs
