// Products with weights of few bits beside bf16, at several numbers of rows. Weights come from memory: there are as many copies
// as no cache holds, and of each the best time of some rounds counts. Usage: encoded [threads] [k] [n]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/timing.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/encoded.h"
#include "sinter/tensor/buffer.h"
#include "sinter/tensor/dtype.h"

using namespace sinter;
using namespace sinter::bench;
using namespace sinter::runtime;

namespace {

constexpr int64_t kBeyondCaches = int64_t(300) << 20;

uint32_t drawn(uint32_t& state) { return state = state * 1664525u + 1013904223u, state >> 8; }

// Copies of one packed weight.
struct Copies {
  std::string name;
  BufferPtr memory;
  std::vector<PackedEncoded> packed;
};

Copies copies_of(const std::string& name, const EncodedFormat& format, int64_t count) {
  uint32_t state = 1;
  std::vector<uint8_t> codes(size_t(format.n * format.k / format.codes_in_byte()));
  for (auto& code : codes) code = uint8_t(drawn(state));
  const int64_t groups = format.group ? format.k / format.group : 1;
  std::vector<uint16_t> scale(size_t(format.n * groups), BFloat16(0.01f).bits);
  std::vector<uint8_t> zero(size_t(format.n * groups), 7);
  const EncodedOperand operand{
      codes.data(), format.k / format.codes_in_byte(), 1, scale.data(), groups, 1, zero.data(), groups, 1};
  const int64_t bytes = packed_encoded_bytes(format);
  Copies out{name, allocate_buffer(size_t(bytes * count), Device()), {}};
  for (int64_t i = 0; i < count; ++i) {
    char* at = static_cast<char*>(out.memory->data()) + i * bytes;
    pack_encoded(format, operand, at);
    out.packed.push_back({format, at});
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) set_num_threads(std::atoi(argv[1]));
  const int64_t k = argc > 2 ? std::atol(argv[2]) : 2048, n = argc > 3 ? std::atol(argv[3]) : 8192;
  const int64_t count = std::max<int64_t>(2, kBeyondCaches / (2 * k * n));
  std::vector<uint16_t> plain(size_t(count * k * n));
  uint32_t state = 2;
  for (auto& value : plain) value = BFloat16(float(int(drawn(state) % 256) - 128) / 1000).bits;
  std::vector<PackedB> packed;
  for (int64_t i = 0; i < count; ++i) packed.push_back(pack_b(k, n, {plain.data() + i * k * n, 1, k, GemmType::bf16}));
  const Copies encodings[] = {
      copies_of("int8", {CodeKind::kInt8, k, n, 0, GemmType::bf16}, count),
      copies_of("int4, 128", {CodeKind::kUInt4, k, n, 128, GemmType::bf16, ZeroType::u8}, count),
      copies_of("int4, 32", {CodeKind::kUInt4, k, n, 32, GemmType::bf16, ZeroType::u8}, count)};
  std::printf("weights of %ld x %ld, %d threads; microseconds, and of the faster bf16\n", long(n), long(k),
              num_threads());
  std::printf("%-6s %10s %10s", "rows", "bf16", "packed");
  for (auto& encoding : encodings) std::printf(" %10s %5s", encoding.name.c_str(), "");
  std::printf("\n");
  for (int64_t m : {1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 64, 128, 256, 512}) {
    std::vector<uint16_t> a(size_t(m * k)), c(size_t(m * n));
    for (auto& value : a) value = BFloat16(float(int(drawn(state) % 256) - 128) / 100).bits;
    const GemmOutput out{c.data(), n, 1, GemmType::bf16};
    std::vector<std::function<GemmPart(size_t)>> ways = {
        [&](size_t i) {
          return GemmPart{n, {plain.data() + int64_t(i) * k * n, 1, k, GemmType::bf16}, nullptr, out};
        },
        [&](size_t i) {
          return GemmPart{n, {}, &packed[i], out};
        }};
    for (auto& encoding : encodings)
      ways.push_back([&](size_t i) { return GemmPart{n, {}, nullptr, out, &encoding.packed[i]}; });
    std::vector<std::vector<double>> best(ways.size(), std::vector<double>(size_t(count), 1e9));
    for (int round = 0; round < (m > 100 ? 5 : 12); ++round)
      for (size_t way = 0; way < ways.size(); ++way)
        for (size_t i = 0; i < size_t(count); ++i) {
          const GemmPart part = ways[way](i);
          const double begin = seconds();
          gemm_joint(m, k, {a.data(), k, 1, GemmType::bf16}, {&part, 1});
          best[way][i] = std::min(best[way][i], seconds() - begin);
        }
    std::vector<double> mean;
    for (auto& times : best) {
      double total = 0;
      for (double t : times) total += t;
      mean.push_back(total / double(count) * 1e6);
    }
    const double bf16 = std::min(mean[0], mean[1]);
    std::printf("%-6ld %10.0f %10.0f", long(m), mean[0], mean[1]);
    for (size_t way = 2; way < mean.size(); ++way) std::printf(" %10.0f %5.2f", mean[way], mean[way] / bf16);
    std::printf("\n");
    std::fflush(stdout);
  }
}
