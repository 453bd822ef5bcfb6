// Matrix multiplication on the CPU beside the machine's FMA ceiling and, where built with it, oneDNN. Rounds alternate
// between the two, the best of each counts. Usage: gemm [threads] [filter]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

#if defined(SINTER_HAVE_DNNL)
#include <dlfcn.h>
#include <dnnl.h>
#endif

using namespace sinter;
using namespace sinter::runtime;

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Wide {
  typedef float Reg __attribute__((vector_size(64)));
  static constexpr int kChains = 24;
};
struct Narrow {
  typedef float Reg __attribute__((vector_size(32)));
  static constexpr int kChains = 12;
};

// Independent chains of FMAs that never leave the registers.
template <class V>
__attribute__((always_inline)) inline void fma_chains(int64_t steps) {
  typename V::Reg acc[V::kChains] = {}, x = {}, y = {};
  asm volatile("" : "+v"(x), "+v"(y));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 24
    for (int i = 0; i < V::kChains; ++i) {
      asm volatile("vfmadd231ps %1, %2, %0" : "+v"(acc[i]) : "v"(x), "v"(y));
    }
  }
}
__attribute__((target("avx512f"))) void fma_512(int64_t steps) { fma_chains<Wide>(steps); }
__attribute__((target("avx2,fma"))) void fma_256(int64_t steps) { fma_chains<Narrow>(steps); }

double fma_ceiling(int threads) {
  const CpuIsa isa = best_cpu_isa();
  if (isa == CpuIsa::kScalar) return 0;
  constexpr int64_t kSteps = 200000;
  const double flops = isa == CpuIsa::kAvx512 ? kSteps * 24.0 * 32 : kSteps * 12.0 * 16;
  double best = 0;
  for (int round = 0; round < 100; ++round) {
    const double start = seconds();
    parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) isa == CpuIsa::kAvx512 ? fma_512(kSteps) : fma_256(kSteps);
    });
    best = std::max(best, flops * threads / (seconds() - start) * 1e-9);
  }
  return best;
}

double read_bandwidth() {
  std::vector<float> data(64 << 20);
  double best = 0;
  std::vector<float> sums(1024);
  for (int round = 0; round < 5; ++round) {
    const double start = seconds();
    parallel_for(0, 256, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        typedef float Reg __attribute__((vector_size(64), aligned(4)));
        Reg total[4] = {};
        const float* at = data.data() + i * (data.size() / 256);
        for (size_t j = 0; j < data.size() / 256; j += 64)
          for (int u = 0; u < 4; ++u) total[u] += *reinterpret_cast<const Reg*>(at + j + size_t(u) * 16);
        sums[size_t(i)] = (total[0] + total[1] + total[2] + total[3])[0];
      }
    });
    best = std::max(best, double(data.size()) * 4 / (seconds() - start) * 1e-9);
  }
  return best;
}

struct Shape {
  int64_t m, n, k;
};

template <class Body>
double time_once(int64_t repeats, const Body& body) {
  // Idle threads of the other library spin for a while after its last call; let them fall asleep, then wake our own.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  body();
  const double start = seconds();
  for (int64_t i = 0; i < repeats; ++i) body();
  return (seconds() - start) / double(repeats);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) set_num_threads(std::atoi(argv[1]));
  const std::string filter = argc > 2 ? argv[2] : "";
  const int threads = num_threads();
#if defined(SINTER_HAVE_DNNL)
  // By name, since oneDNN may have been built on any runtime, and this program links none.
  if (void* set = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(threads);
#endif
  const double ceiling = fma_ceiling(threads);
  std::printf("threads %d, FMA ceiling %.1f GFLOP/s, read %.1f GB/s\n", threads, ceiling, read_bandwidth());
  std::printf("%-18s %-10s %10s %9s %8s %10s %8s\n", "m x n x k", "B", "sinter us", "GFLOP/s", "ceiling", "oneDNN us",
              "ratio");

  const Shape shapes[] = {{4, 4, 4},       {16, 16, 16},    {64, 64, 64},       {128, 128, 128},
                          {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
                          {1, 4096, 4096}, {8, 4096, 4096}, {32, 4096, 1024},   {100, 300, 500}};
  std::mt19937 rng(1);
  for (const Shape& s : shapes) {
    for (const char* layout : {"normal", "transposed", "packed", "bf16", "bf16 trans"}) {
      const std::string name = format("{}x{}x{}", s.m, s.n, s.k);
      if (!filter.empty() && (name + " " + layout).find(filter) == std::string::npos) continue;
      const bool transposed = std::strstr(layout, "trans") != nullptr, bf16 = layout[0] == 'b';
      std::vector<float> a(size_t(s.m * s.k)), b(size_t(s.k * s.n)), c(size_t(s.m * s.n)), d(c.size());
      for (float& v : a) v = float(int(rng() % 64) - 32) / 32;
      for (float& v : b) v = float(int(rng() % 64) - 32) / 32;
      std::vector<uint16_t> narrow(bf16 ? b.size() : 0);
      for (size_t i = 0; i < narrow.size(); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &b[i], 4);
        narrow[i] = uint16_t(bits >> 16);
      }
      const GemmOperand view{bf16 ? static_cast<const void*>(narrow.data()) : b.data(), transposed ? 1 : s.n,
                             transposed ? s.k : 1, bf16 ? GemmType::bf16 : GemmType::f32};
      const PackedB packed = layout[0] == 'p' ? pack_b(s.k, s.n, view) : PackedB();
      const auto ours = [&] {
        if (layout[0] == 'p')
          gemm(s.m, {a.data(), s.k, 1}, packed, {c.data(), s.n, 1});
        else
          gemm(s.m, s.n, s.k, {a.data(), s.k, 1}, view, {c.data(), s.n, 1});
      };
      const auto peer = [&] {
#if defined(SINTER_HAVE_DNNL)
        dnnl_sgemm('N', transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a.data(), s.k, b.data(), transposed ? s.k : s.n,
                   0.0f, d.data(), s.n);
#endif
      };
      ours();
      peer();
      const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
      const int64_t repeats = std::clamp<int64_t>(int64_t(4e8 / (flops + 1e4)), 1, 20000);
      double best_ours = 1e9, best_peer = 1e9;
      for (int round = 0; round < 8; ++round) {
        best_ours = std::min(best_ours, time_once(repeats, ours));
        best_peer = std::min(best_peer, time_once(repeats, peer));
      }
      const double rate = flops / best_ours * 1e-9;
      std::printf("%-18s %-10s %10.2f %9.1f %7.0f%%", name.c_str(), layout, best_ours * 1e6, rate,
                  ceiling > 0 ? 100 * rate / ceiling : 0);
#if defined(SINTER_HAVE_DNNL)
      double error = 0;
      for (size_t i = 0; i < c.size(); ++i) error = std::max(error, double(std::abs(c[i] - d[i])));
      std::printf(" %10.2f %8.2f%s", best_peer * 1e6, best_peer / best_ours,
                  error > 1e-3 * double(s.k) ? "  WRONG" : "");
#endif
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}
