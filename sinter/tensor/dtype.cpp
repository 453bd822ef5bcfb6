#include "sinter/tensor/dtype.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <ostream>

#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"

namespace sinter {

namespace {

std::atomic<DType> default_dtype{kFloat32};

constexpr std::string_view kNames[kDTypeCount] = {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64",
                                                "c64", "c128"};

constexpr std::string_view kLibTorchNames[kDTypeCount] = {"Bool", "Byte", "Char",     "Short", "Int",
                                                          "Long", "Half", "BFloat16", "Float", "Double",
                                                          "ComplexFloat", "ComplexDouble"};

}  // namespace

DType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  check(is_floating(dtype), "set_default_dtype: {} is no floating dtype", dtype);
  auto set = [](DType d) { default_dtype.store(d, std::memory_order_relaxed); };
  perform_on_host("set_default_dtype()", [=] { set(dtype); }, [=, before = get_default_dtype()] { set(before); });
}

finfo::finfo(DType given) : bits(int(8 * item_size(real_dtype(given)))) {
  const DType dtype = real_dtype(given);
  check(is_floating(dtype), "finfo: {} is no floating dtype; iinfo() tells of integers", dtype);
  // Bits of the fraction, the largest exponent, and decimal digits that survive.
  int fraction = dtype == kFloat16 ? 10 : dtype == kBFloat16 ? 7 : dtype == kFloat32 ? 23 : 52;
  int exponent = dtype == kFloat16 ? 15 : dtype == kFloat64 ? 1023 : 127;
  int digits = dtype == kFloat16 ? 3 : dtype == kBFloat16 ? 2 : dtype == kFloat32 ? 6 : 15;
  eps = std::ldexp(1, -fraction);
  max = std::ldexp(2 - eps, exponent);
  min = -max;
  tiny = smallest_normal = std::ldexp(1, 1 - exponent);
  resolution = std::pow(10, -digits);
}

iinfo::iinfo(DType dtype) : bits(int(8 * item_size(dtype))) {
  check(is_integral(dtype), "iinfo: {} is no integer dtype; finfo() tells of floating ones", dtype);
  min = dtype == kUInt8 ? 0 : -(int64_t(1) << (bits - 2)) * 2;
  max = dtype == kUInt8 ? 255 : -(min + 1);
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (a == kFloat16 && b == kBFloat16) return kFloat32;
  if (a == kUInt8 && b == kInt8) return kInt16;
  if (a == kFloat64 && is_complex(b)) return kComplex128;
  return b;
}

void fail_complex_element(DType d) {
  SINTER_INTERNAL_ASSERT(false, "elements of {} are taken by their bytes or as pairs of real ones", d);
}

bool can_cast(DType from, DType to) {
  if (is_complex(from)) return is_complex(to);
  if (is_floating(from)) return is_differentiable(to);
  return from == kBool || to != kBool;
}

std::string_view dtype_name(DType d) { return kNames[int(d)]; }
std::string_view toString(DType d) { return kLibTorchNames[int(d)]; }
std::string to_string(DType d) { return std::string(dtype_name(d)); }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kNames[i] == name) return DType(i);
  return std::nullopt;
}

uint16_t float_to_bfloat16(float v) {
  auto bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t((bits >> 16) | 0x40);  // keep NaN a NaN
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float bfloat16_to_float(uint16_t v) { return std::bit_cast<float>(uint32_t(v) << 16); }

uint16_t float_to_float16(float v) {
  auto bits = std::bit_cast<uint32_t>(v);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds past 65504
  if (magnitude < 0x38800000) {                                 // subnormal: let the FPU round at 2^-24
    float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000));
  }
  uint32_t rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
  return uint16_t(sign | (rounded >> 13));
}

float float16_to_float(uint16_t v) {
  uint32_t sign = uint32_t(v & 0x8000) << 16, magnitude = v & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude << 13));
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  float value = float(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

std::ostream& operator<<(std::ostream& out, DType d) { return out << to_string(d); }

}  // namespace sinter
