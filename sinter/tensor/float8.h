#pragma once
// Floating-point numbers of eight and of four bits, as the files of models have them; no elements of tensors yet.
#include <bit>
#include <cmath>
#include <cstdint>

namespace sinter {

// E4M3: a sign, four bits of an exponent, three of a fraction; no infinities, and one number that is none for each
// sign.
inline constexpr float kMostE4m3 = 448;

constexpr float e4m3_to_float(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if ((code & 127) == 127) return std::bit_cast<float>(0x7fc00000u | uint32_t(code & 128) << 24);
  // 2^-6 is the least with a whole fraction; below, steps are 2^-9.
  const uint32_t scale = uint32_t((exponent ? exponent - 1 : 0) - 9 + 127) << 23;
  const float value = float(exponent ? 8 + fraction : fraction) * std::bit_cast<float>(scale);
  return code & 128 ? -value : value;
}

// To the nearest, halves to the even one; what is beyond the largest becomes it.
inline uint8_t float_to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 128 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return uint8_t(sign | 127);
  if (size >= kMostE4m3) return uint8_t(sign | 126);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);  // size is in [2^(exponent - 1), 2^exponent)
  const int step = exponent - 4 < -9 ? -9 : exponent - 4;
  const int steps = int(std::nearbyint(std::ldexp(size, -step)));
  // So many steps of 2^step: beyond 8 of them the exponent counts them on.
  return uint8_t(sign | ((step + 9) * 8 + steps));
}

// E8M0: an exponent alone, and 255 for no number.
constexpr float e8m0_to_float(uint8_t code) {
  if (code == 255) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(code == 0 ? 0x00400000u : uint32_t(code) << 23);
}

// E2M1, of four bits.
inline constexpr float kE2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

}  // namespace sinter
