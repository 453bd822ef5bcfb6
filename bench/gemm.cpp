// Matrix multiplication on the CPU beside the machine's FMA ceiling and, where built with it, oneDNN. Rounds alternate
// between the two, the best of each counts. Usage: gemm [threads] [filter]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/support/ceilings.h"
#include "bench/support/kernel_bench.h"
#include "bench/support/onednn.h"
#include "bench/support/timing.h"
#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/runtime/cpu/gemm/gemm_s8.h"

using namespace sinter;
using namespace sinter::bench;
using namespace sinter::runtime;

namespace {

struct Size {
  int64_t m, n, k;
};

// Nothing when not wanted. The values here have few bits.
std::vector<uint16_t> to_bf16(const std::vector<float>& values, bool wanted) {
  std::vector<uint16_t> narrow(wanted ? values.size() : 0);
  for (size_t i = 0; i < narrow.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    narrow[i] = uint16_t(bits >> 16);
  }
  return narrow;
}

// int8 by int8 beside the f32 ceiling.
void bench_s8(const Size& s, double ceiling, const Wanted& wanted) {
  const std::string name = format("{}x{}x{}", s.m, s.n, s.k);
  if (!wanted(name + " s8 packed")) return;
  std::vector<int8_t> a(size_t(s.m * s.k), 3), b(size_t(s.k * s.n), -5);
  std::vector<int32_t> c(size_t(s.m * s.n));
  const PackedS8 packed = pack_s8(s.k, s.n, {b.data(), s.n, 1});
  const auto ours = [&] { gemm_s8(s.m, {a.data(), s.k, 1}, packed, c.data(), s.n); };
  const double best = alternate({repeat(ours)}, {.count = 8, .seconds = 0.003})[0].best;
  const double rate = 2.0 * double(s.m) * double(s.n) * double(s.k) / best * 1e-9;
  std::printf("%-18s %-10s %10.2f %9.1f %7.0f%%\n", name.c_str(), "s8 packed", best * 1e6, rate,
              ceiling > 0 ? 100 * rate / ceiling : 0);
}

}  // namespace

int main(int argc, char** argv) {
  const Wanted wanted = parse_wanted(argc, argv);
  const double ceiling = measure_fma_ceiling() * 1e-9;
  std::printf("threads %d, FMA ceiling %.1f GFLOP/s, read %.1f GB/s, AMX %s\n", num_threads(), ceiling,
              measure_read_bandwidth() * 1e-9, enable_amx_bf16() ? "yes" : "no");
  std::printf("%-18s %-10s %10s %9s %8s %10s %8s\n", "m x n x k", "B", "sinter us", "GFLOP/s", "ceiling", "oneDNN us",
              "ratio");

  const Size sizes[] = {{4, 4, 4},       {16, 16, 16},    {64, 64, 64},       {128, 128, 128},
                        {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
                        {1, 4096, 4096}, {8, 4096, 4096}, {32, 4096, 1024},   {100, 300, 500}};
  for (const Size& s : sizes) {
    // "16 x 16": A is bf16 too, so that the instructions for pairs and tiles of bf16 serve where the machine has them.
    for (const char* layout :
         {"normal", "transposed", "packed", "bf16", "bf16 trans", "bf16 pack", "16 x 16", "16x16trans", "16x16pack"}) {
      const std::string name = format("{}x{}x{}", s.m, s.n, s.k);
      if (!wanted(name + " " + layout)) continue;
      const bool transposed = std::strstr(layout, "trans") != nullptr, both = layout[0] == '1';
      const bool bf16 = layout[0] == 'b' || both, packs = std::strstr(layout, "pack") != nullptr;
      const std::vector<float> a = few_bits(s.m * s.k), b = few_bits(s.k * s.n);
      std::vector<float> c(size_t(s.m * s.n)), d(c.size());
      const std::vector<uint16_t> narrow = to_bf16(b, bf16), narrow_a = to_bf16(a, both);
      const GemmOperand rows{both ? static_cast<const void*>(narrow_a.data()) : a.data(), s.k, 1,
                             both ? GemmType::bf16 : GemmType::f32};
      const GemmOperand view{bf16 ? static_cast<const void*>(narrow.data()) : b.data(), transposed ? 1 : s.n,
                             transposed ? s.k : 1, bf16 ? GemmType::bf16 : GemmType::f32};
      const PackedB packed = packs ? pack_b(s.k, s.n, view) : PackedB();
      const auto ours = [&] {
        if (packs)
          gemm(s.m, rows, packed, {c.data(), s.n, 1});
        else
          gemm(s.m, s.n, s.k, rows, view, {c.data(), s.n, 1});
      };
      const auto peer = [&] { onednn_sgemm(s.m, s.n, s.k, a.data(), b.data(), transposed, d.data()); };
      std::vector<Work> works{repeat(ours)};
      if (have_onednn()) works.push_back(repeat(peer));
      const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
      const auto timings = alternate(works, {.count = 8, .seconds = 0.003, .settle = 0.02});
      const double best = timings[0].best, rate = flops / best * 1e-9;
      std::printf("%-18s %-10s %10.2f %9.1f %7.0f%%", name.c_str(), layout, best * 1e6, rate,
                  ceiling > 0 ? 100 * rate / ceiling : 0);
      if (have_onednn()) {
        double error = 0;
        for (size_t i = 0; i < c.size(); ++i) error = std::max(error, double(std::abs(c[i] - d[i])));
        std::printf(" %10.2f %8.2f%s", timings[1].best * 1e6, timings[1].best / best,
                    error > 1e-3 * double(s.k) ? "  WRONG" : "");
      }
      std::printf("\n");
      std::fflush(stdout);
    }
    bench_s8(s, ceiling, wanted);
  }
}
