#include "bench/support/ceilings.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::bench {

namespace {

using runtime::best_cpu_isa;
using runtime::CpuIsa;

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

// Loops over whole blocks of eight registers: enough loads in flight, and a cache line is never shared by two threads.
constexpr int64_t kBlock = 512;

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

using Loop = void (*)(const char*, const char*, char*, int64_t);

// One function for each instruction set, since the attribute belongs to the function and not to the template.
template <Traffic kTraffic, bool kStream>
Loop loop_for(CpuIsa isa) {
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

Loop loop_for(Traffic traffic, bool stream) {
  CpuIsa isa = best_cpu_isa();
  if (traffic == Traffic::kRead) return loop_for<Traffic::kRead, false>(isa);
  if (traffic == Traffic::kCopy)
    return stream ? loop_for<Traffic::kCopy, true>(isa) : loop_for<Traffic::kCopy, false>(isa);
  return stream ? loop_for<Traffic::kAdd, true>(isa) : loop_for<Traffic::kAdd, false>(isa);
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

}  // namespace

std::optional<FmaCeiling> fma_ceiling([[maybe_unused]] int threads) {
#if defined(__x86_64__)
  CpuIsa isa = best_cpu_isa();
  if (isa == CpuIsa::kScalar) return std::nullopt;
  bool wide = isa == CpuIsa::kAvx512;
  auto body = [threads, wide] {
    parallel_for(0, threads, 1, [wide](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) wide ? fma_512() : fma_256();
    });
  };
  double lanes = wide ? Bits512::kFmaChains * 16 : Bits256::kFmaChains * 8;
  return FmaCeiling{repeat(body), 2.0 * lanes * double(kFmaSteps) * threads};
#else
  return std::nullopt;
#endif
}

double measure_fma_ceiling() {
  auto ceiling = fma_ceiling();
  if (!ceiling) return 0;
  return ceiling->flops / alternate({ceiling->work}, {.count = 20, .seconds = 0.005})[0].best;
}

std::optional<double> measure_free_cores() {
  auto together = fma_ceiling(), alone = fma_ceiling(1);
  if (!together || !alone) return std::nullopt;
  auto t = alternate({together->work, alone->work}, {.count = 15, .seconds = 0.005});
  return (together->flops / t[0].median) / (alone->flops / t[1].best);
}

const char* to_string(Traffic traffic) {
  return traffic == Traffic::kRead ? "1r" : traffic == Traffic::kCopy ? "1r1w" : "2r1w";
}

StreamCeiling::StreamCeiling(const Tensor& a, const Tensor& b)
    : array_bytes_(int64_t(a.numel()) * 4 / kBlock * kBlock), a_(a), b_(b), c_(ones({array_bytes_ / 4})) {
  check(a.is_contiguous() && b.is_contiguous() && a.dtype() == kFloat32 && b.dtype() == kFloat32 &&
            int64_t(a.numel()) == int64_t(b.numel()),
        "StreamCeiling: the operands must be contiguous f32 tensors of one size");
}

// The library's own tensors, so that pages are as large as those of the ops compared. Not zeros: pages never written
// would all be read from one.
StreamCeiling::StreamCeiling(int64_t bytes_per_array)
    : StreamCeiling(ones({bytes_per_array / 4}), ones({bytes_per_array / 4})) {}

Work StreamCeiling::work(Traffic traffic, bool streaming_stores) const {
  auto at = [](const Tensor& t) { return static_cast<char*>(t.data_ptr()); };
  Loop loop = loop_for(traffic, streaming_stores && can_stream());
  int64_t blocks = array_bytes_ / kBlock;
  // Few pieces while the arrays sit in caches; else small ones, so that no thread waits for a slower one.
  int64_t grain = std::clamp<int64_t>(blocks / num_threads(), 1, (int64_t(1) << 20) / kBlock);
  return repeat([loop, grain, blocks, a = at(a_), b = at(b_), c = at(c_)] {
    parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      loop(a + begin * kBlock, b + begin * kBlock, c + begin * kBlock, (end - begin) * kBlock);
    });
  });
}

int64_t StreamCeiling::bytes(Traffic traffic) const { return array_bytes_ * (int64_t(traffic) + 1); }

bool StreamCeiling::can_stream() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

int64_t last_cache_bytes() { return std::max(cache_bytes(3, int64_t(32) << 20), l2_cache_bytes()); }

int64_t l2_cache_bytes() { return cache_bytes(2, int64_t(1) << 20) * num_threads(); }

}  // namespace sinter::bench
