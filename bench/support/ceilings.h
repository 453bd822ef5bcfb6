#pragma once
// The machine's own ceilings, on the library's thread pool and memory, to be measured beside what is compared to them.
#include <cstdint>
#include <optional>

#include "bench/support/timing.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/ceilings.h"
#include "sinter/tensor/tensor.h"

namespace sinter::bench {

// f32 multiply-adds from registers alone, on that many threads of the pool, in the widest instruction set the library
// uses. Absent where there is none to use.
struct FmaCeiling {
  Work work;
  double flops;  // of one call
};
std::optional<FmaCeiling> fma_ceiling(int threads = num_threads());
// Operations a second in the best of several rounds; 0 where there is no ceiling.
double measure_fma_ceiling();
// How many cores' worth of multiply-adds the pool's threads get, in the median round: near num_threads() on a quiet
// machine, less while other processes hold cores. Absent where there is no ceiling.
std::optional<double> measure_free_cores();

using runtime::Traffic;
const char* to_string(Traffic traffic);

// STREAM-like loops over arrays of one size.
class StreamCeiling {
 public:
  explicit StreamCeiling(int64_t bytes_per_array);
  // The loops read these two contiguous f32 tensors of one size, so that they meet the same pages as an op on them.
  StreamCeiling(const Tensor& a, const Tensor& b);

  // One call moves bytes(traffic), each array counted once. Streaming stores go past the caches; without them the
  // hardware also reads what is about to be overwritten.
  Work work(Traffic traffic, bool streaming_stores) const;
  int64_t bytes(Traffic traffic) const;
  // Whether this machine has streaming stores.
  static bool can_stream() { return runtime::can_stream(); }

 private:
  int64_t array_bytes_;
  Tensor a_, b_, c_;
};

// Bytes read a second from memory, in the best of several rounds.
double measure_read_bandwidth();

using runtime::l2_cache_bytes;
using runtime::last_cache_bytes;

}  // namespace sinter::bench
