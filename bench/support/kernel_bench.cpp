#include "bench/support/kernel_bench.h"

#include <cstdlib>
#include <random>

#include "bench/support/onednn.h"
#include "sinter/base/thread_pool.h"

namespace sinter::bench {

Wanted parse_wanted(int argc, char** argv) {
  if (argc > 1) set_num_threads(std::atoi(argv[1]));
  set_onednn_threads(num_threads());
  return {argc > 2 ? argv[2] : ""};
}

std::vector<float> few_bits(int64_t count) {
  static std::mt19937 rng(1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = float(int(rng() % 64) - 32) / 32;
  return out;
}

}  // namespace sinter::bench
