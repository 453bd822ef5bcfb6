#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace sinter {

// Philox4x32-10 (Salmon et al., SC 2011): four 32-bit words for one counter. The counter is (index, offset), the key is
// the seed. Generated kernels compute the same words (codegen/cpu/random.embed), so every device draws one sequence.
constexpr std::array<uint32_t, 4> philox(int64_t index, int64_t seed, int64_t offset) {
  auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
  auto high = [](int64_t x) { return static_cast<uint32_t>(static_cast<uint64_t>(x) >> 32); };
  std::array<uint32_t, 4> c = {low(index), high(index), low(offset), high(offset)};
  uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xd2511f53} * c[0], b = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

// 32 and 64 random bits of element `index`.
constexpr int32_t rand_bits32(int64_t index, int64_t seed, int64_t offset) {
  return static_cast<int32_t>(philox(index, seed, offset)[0]);
}
constexpr int64_t rand_bits64(int64_t index, int64_t seed, int64_t offset) {
  auto w = philox(index, seed, offset);
  return static_cast<int64_t>(uint64_t{w[1]} << 32 | w[0]);
}

// Uniform in [0, 1): in steps of 2^-24 (what f32 draws, exactly) and of 2^-53 (f64).
constexpr double rand_uniform24(int64_t index, int64_t seed, int64_t offset) {
  return (philox(index, seed, offset)[0] >> 8) * 0x1p-24;
}
// Of four elements that share a counter, the words one after another: element `index` has word index % 4 of counter index / 4.
constexpr double rand_word24(int64_t index, int64_t seed, int64_t offset) {
  return (philox(index >> 2, seed, offset)[size_t(index & 3)] >> 8) * 0x1p-24;
}
constexpr double rand_uniform53(int64_t index, int64_t seed, int64_t offset) {
  return static_cast<double>(static_cast<uint64_t>(rand_bits64(index, seed, offset)) >> 11) * 0x1p-53;
}

// Standard normal by Box-Muller from two 24-bit uniforms, the real value that f32 kernels round; at most 5.77 in size.
inline double rand_normal(int64_t index, int64_t seed, int64_t offset) {
  auto w = philox(index, seed, offset);
  double u = ((w[0] >> 8) + 1) * 0x1p-24, v = (w[1] >> 8) * 0x1p-24;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace sinter
