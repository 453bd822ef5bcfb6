#include "sinter/runtime/cpu/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/tensor/tensor.h"

namespace sinter::runtime {

namespace {

struct Bits512 {
  typedef float Reg __attribute__((vector_size(64)));
  static constexpr int kFmaChains = 24;
};
struct Bits256 {
  typedef float Reg __attribute__((vector_size(32)));
  static constexpr int kFmaChains = 12;
};
struct Bits128 {
  typedef float Reg __attribute__((vector_size(16)));
};

#if defined(__x86_64__)
#define SINTER_TARGET(features) __attribute__((target(features)))
#else
#define SINTER_TARGET(features)
#endif
#define SINTER_INLINE __attribute__((always_inline)) inline

// --- multiply-adds

constexpr int64_t kFmaSteps = 100000;

#if defined(__x86_64__)
// Independent chains that never leave the registers.
template <class V>
SINTER_INLINE void fma_chains() {
  typename V::Reg acc[V::kFmaChains] = {}, x = {}, y = {};
  asm volatile("" : "+v"(x), "+v"(y));
  for (int64_t s = 0; s < kFmaSteps; ++s) {
#pragma GCC unroll 24
    for (int i = 0; i < V::kFmaChains; ++i) {
      asm volatile("vfmadd231ps %1, %2, %0" : "+v"(acc[i]) : "v"(x), "v"(y));
    }
  }
}
SINTER_TARGET("avx512f") void fma_512() { fma_chains<Bits512>(); }
SINTER_TARGET("avx2,fma") void fma_256() { fma_chains<Bits256>(); }
#endif

// --- memory

template <class V, bool kStream>
SINTER_INLINE void store(typename V::Reg* to, const typename V::Reg& value) {
#if defined(__x86_64__)
  if constexpr (kStream && sizeof value == 16)
    asm volatile("movntps %1, %0" : "=m"(*to) : "x"(value));
  else if constexpr (kStream)
    asm volatile("vmovntps %1, %0" : "=m"(*to) : "v"(value));
  else
#endif
    *to = value;
}

template <class V, Traffic kTraffic, bool kStream>
SINTER_INLINE void stream_loop(const char* a, const char* b, char* c, int64_t bytes) {
  using Reg = typename V::Reg;
  const Reg *x = reinterpret_cast<const Reg*>(a), *y = reinterpret_cast<const Reg*>(b);
  Reg* z = reinterpret_cast<Reg*>(c);
  Reg sums[8] = {};
  for (int64_t i = 0; i < bytes / int64_t(sizeof(Reg)); i += 8) {
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) {
      if constexpr (kTraffic == Traffic::kRead) sums[u] += x[i + u];
      if constexpr (kTraffic == Traffic::kCopy) store<V, kStream>(z + i + u, x[i + u]);
      if constexpr (kTraffic == Traffic::kAdd) store<V, kStream>(z + i + u, x[i + u] + y[i + u]);
    }
  }
  if constexpr (kTraffic == Traffic::kRead) {
    Reg sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    asm volatile("" : : "m"(sum));
  }
#if defined(__x86_64__)
  if constexpr (kStream) asm volatile("sfence" : : : "memory");
#endif
}

// One function for each instruction set, since the attribute belongs to the function and not to the template.
template <Traffic kTraffic, bool kStream>
StreamLoop loop_for(CpuIsa isa) {
  struct Loops {
    SINTER_TARGET("avx512f") static void wide(const char* a, const char* b, char* c, int64_t bytes) {
      stream_loop<Bits512, kTraffic, kStream>(a, b, c, bytes);
    }
    SINTER_TARGET("avx2") static void middle(const char* a, const char* b, char* c, int64_t bytes) {
      stream_loop<Bits256, kTraffic, kStream>(a, b, c, bytes);
    }
    static void narrow(const char* a, const char* b, char* c, int64_t bytes) {
      stream_loop<Bits128, kTraffic, kStream>(a, b, c, bytes);
    }
  };
  return isa == CpuIsa::kAvx512 ? Loops::wide : isa == CpuIsa::kAvx2 ? Loops::middle : Loops::narrow;
}

// The largest cache of that level that Linux lists for the first core (sysconf adds up the sockets' on some machines).
int64_t cache_bytes(int level, int64_t otherwise) {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::ifstream level_file(folder + "level"), size_file(folder + "size");
    int found = 0;
    int64_t kilobytes = 0;
    if (level_file >> found && size_file >> kilobytes && found == level) largest = std::max(largest, kilobytes << 10);
  }
  return largest > 0 ? largest : otherwise;
}

constexpr int kRounds = 8;

// Seconds of the best of several calls; the first only warms up.
template <class F>
double best_seconds(int rounds, F&& f) {
  double best = 1e9;
  for (int i = 0; i <= rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    f();
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (i > 0) best = std::min(best, taken.count());
  }
  return best;
}

// Both arrays together have `bytes`; a small one is gone over several times, so that handing out work does not count.
Ceilings::Tier measure_tier(int64_t bytes, char* a, char* b) {
  int64_t blocks = bytes / 2 / kStreamBlock;
  int repeats = int(std::clamp<int64_t>((int64_t(8) << 20) / bytes, 1, 64));
  auto sweep = [&](StreamLoop loop, const char* from, char* to, int64_t count) {
    int64_t grain = std::clamp<int64_t>(count / num_threads(), 1, (int64_t(1) << 20) / kStreamBlock);
    double seconds = best_seconds(kRounds, [&] {
      for (int i = 0; i < repeats; ++i)
        parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
          loop(from + begin * kStreamBlock, from + begin * kStreamBlock, to + begin * kStreamBlock,
               (end - begin) * kStreamBlock);
        });
    });
    return double(repeats) / seconds;
  };
  Ceilings::Tier tier{.bytes = bytes};
  // a and b lie one behind the other.
  tier.read = double(bytes) * sweep(stream_loop(Traffic::kRead, false), a, b, 2 * blocks);
  for (bool stream : {false, true})
    tier.copy = std::max(tier.copy, double(bytes) * sweep(stream_loop(Traffic::kCopy, stream), a, b, blocks));
  // Loads alone are no slower than loads among stores; where they seem so, something else was running.
  tier.read = std::max(tier.read, tier.copy);
  return tier;
}

Ceilings measure() {
  Ceilings out;
  out.threads = num_threads();
  int64_t l2 = l2_cache_bytes(), last = last_cache_bytes();
  int64_t largest = std::clamp<int64_t>(4 * last, int64_t(64) << 20, int64_t(256) << 20);
  BufferPtr buffer = allocate_buffer(size_t(largest), Device());
  char* data = static_cast<char*>(buffer->data());
  // Not zeros: pages never written would all be read from one.
  parallel_for(0, largest / kStreamBlock, 2048, [&](int64_t begin, int64_t end) {
    std::memset(data + begin * kStreamBlock, 1, size_t((end - begin) * kStreamBlock));
  });
  for (int64_t bytes : {l2 / 2, last / 2, largest}) {
    bytes = bytes / (2 * kStreamBlock) * (2 * kStreamBlock);
    if (!out.tiers.empty() && bytes <= 2 * out.tiers.back().bytes) continue;
    out.tiers.push_back(measure_tier(bytes, data, data + bytes / 2));
  }
  if (auto fma = fma_loop()) {
    double seconds = best_seconds(kRounds, [&] {
      parallel_for(0, out.threads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) fma->run();
      });
    });
    out.flops = fma->flops * out.threads / seconds;
  }
  return out;
}

}  // namespace

std::optional<FmaLoop> fma_loop() {
#if defined(__x86_64__)
  CpuIsa isa = best_cpu_isa();
  if (isa == CpuIsa::kScalar) return std::nullopt;
  bool wide = isa == CpuIsa::kAvx512;
  double lanes = wide ? Bits512::kFmaChains * 16 : Bits256::kFmaChains * 8;
  return FmaLoop{wide ? fma_512 : fma_256, 2.0 * lanes * double(kFmaSteps)};
#else
  return std::nullopt;
#endif
}

StreamLoop stream_loop(Traffic traffic, bool stream) {
  CpuIsa isa = best_cpu_isa();
  stream = stream && can_stream();
  if (traffic == Traffic::kRead) return loop_for<Traffic::kRead, false>(isa);
  if (traffic == Traffic::kCopy)
    return stream ? loop_for<Traffic::kCopy, true>(isa) : loop_for<Traffic::kCopy, false>(isa);
  return stream ? loop_for<Traffic::kAdd, true>(isa) : loop_for<Traffic::kAdd, false>(isa);
}

bool can_stream() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

int64_t last_cache_bytes() { return std::max(cache_bytes(3, int64_t(32) << 20), l2_cache_bytes()); }

int64_t l2_cache_bytes() { return cache_bytes(2, int64_t(1) << 20) * num_threads(); }

double Ceilings::seconds(double read, double written, double flop, double footprint) const {
  if (tiers.empty()) return 0;
  auto* tier = &tiers.back();
  for (auto& each : tiers)
    if (footprint <= double(each.bytes)) {
      tier = &each;
      break;
    }
  // A byte written costs what a copy takes beyond its reading.
  double by_read = 1 / tier->read, by_write = std::max(2 / tier->copy - by_read, 0.5 * by_read);
  return std::max(read * by_read + written * by_write, flops > 0 ? flop / flops : 0);
}

std::string Ceilings::text() const {
  if (tiers.empty()) return "not measured";
  std::string out;
  for (auto& tier : tiers)
    out += format("{}{} GB/s read, {} copied {}", out.empty() ? "" : "; ", int64_t(tier.read / 1e9 + 0.5),
                  int64_t(tier.copy / 1e9 + 0.5),
                  &tier == &tiers.back() ? std::string("beyond") : format("up to {} MB", fixed(double(tier.bytes) / 1e6, 1)));
  out += format("; {} GFLOP/s", int64_t(flops / 1e9 + 0.5));
  return threads ? out + format("; {} thread{}", threads, threads == 1 ? "" : "s") : out;
}

const Ceilings& measured_ceilings() {
  static const Ceilings measured = measure();
  return measured;
}

}  // namespace sinter::runtime
