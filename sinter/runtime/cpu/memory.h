#pragma once
// Host memory for tensors: a caching allocator, so that a result as large as the last one touches no fresh pages.
//
// Sizes are rounded up to classes, four to a power of two. Blocks up to 64 KiB are kept in lists of the freeing thread;
// larger ones in one shared cache, least recently freed out first, bounded by SINTER_CPU_CACHE_MB (by default an eighth
// of the memory, at most 1 GiB). A block may be freed by any thread. Under AddressSanitizer nothing is cached.
#include <cstddef>
#include <cstdint>

#include "sinter/tensor/buffer.h"

namespace sinter {

Allocator& cpu_allocator();

// Bytes, counted in rounded sizes. Blocks of at most 64 KiB that other threads hold are counted to within 256 KiB a
// thread.
struct CpuMemoryStats {
  int64_t allocated = 0;  // in use by tensors
  int64_t cached = 0;     // free, kept for reuse: the shared cache, and the lists of the calling thread
  int64_t peak = 0;       // the most that `allocated` has been
};

CpuMemoryStats cpu_memory_stats();
// From now on `peak` is the most since this call.
void reset_cpu_memory_peak();
// Gives the shared cache and the calling thread's lists back to the system.
void empty_cpu_cache();
// An allocation that would bring the memory in use beyond this many bytes throws OutOfMemoryError. At first, and again
// after 0, the limit is the machine's memory and swap.
void set_cpu_memory_limit(size_t bytes);

}  // namespace sinter
