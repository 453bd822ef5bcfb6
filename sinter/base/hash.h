#pragma once
// Hashing that is stable across processes and machines: keys of the artifact cache are made with it.
#include <cstdint>
#include <string>
#include <string_view>

namespace sinter {

// Mixes two 64-bit words into one (multiply and fold).
inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
  return uint64_t(product) ^ uint64_t(product >> 64) ^ (a + b);
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) { return hash_bytes(text.data(), text.size(), seed); }

// 128 bits as 32 hex digits: the name of an entry in the cache.
std::string hash_hex(std::string_view text);

}  // namespace sinter
