#pragma once
// What this machine can do at best, measured: loops that do nothing but move memory or multiply and add. Profiles and
// floor times are told against it; the benchmarks time the same loops beside what they compare.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinter::runtime {

// What a memory-bound loop does with its arrays: reads one, reads one and writes another, reads two and writes a third.
enum class Traffic { kRead, kCopy, kAdd };

// Whole blocks of eight registers: enough loads in flight, and a cache line is never shared by two threads. Arrays are
// aligned to 64 bytes, `bytes` is a multiple of the block.
inline constexpr int64_t kStreamBlock = 512;
using StreamLoop = void (*)(const char* a, const char* b, char* c, int64_t bytes);
// In the widest instruction set the library uses. Streaming stores go past the caches, where the machine has them.
StreamLoop stream_loop(Traffic traffic, bool streaming_stores);
bool can_stream();

// f32 multiply-adds from registers alone, on the calling thread; absent where there is no instruction set for them.
struct FmaLoop {
  void (*run)();
  double flops;  // of one run
};
std::optional<FmaLoop> fma_loop();

// Bytes in the last cache that a core sees, and in the second-level caches of as many cores as the pool has threads; a
// guess where the system does not tell.
int64_t last_cache_bytes();
int64_t l2_cache_bytes();

struct Ceilings {
  // Bytes a second of reading, and of copying (both sides counted), while all arrays together have at most so many bytes.
  struct Tier {
    int64_t bytes = 0;
    double read = 0, copy = 0;
  };
  std::vector<Tier> tiers;  // second-level cache, last cache, memory; fewer where they are close
  double flops = 0;         // a second, f32; 0 where unknown
  int threads = 0;          // 0 for a GPU

  // The least time for work of so many bytes and operations, over memory of `footprint` bytes.
  double seconds(double read, double written, double flop, double footprint) const;
  // For people.
  std::string text() const;
};

// Of the pool's threads together; measured at the first call, in about a tenth of a second, and then remembered.
const Ceilings& measured_ceilings();

}  // namespace sinter::runtime
