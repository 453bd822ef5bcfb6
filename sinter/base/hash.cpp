#include "sinter/base/hash.h"

#include <cstring>

namespace sinter {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t h = hash_mix(seed, size);
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    h = hash_mix(h, word);
  }
  uint64_t tail = 0;
  if (size) std::memcpy(&tail, bytes, size);
  return hash_mix(h, tail);
}

std::string hash_hex(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  uint64_t words[2] = {hash_text(text, 1), hash_text(text, 2)};
  std::string out;
  for (uint64_t w : words)
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(w >> shift) & 15];
  return out;
}

}  // namespace sinter
