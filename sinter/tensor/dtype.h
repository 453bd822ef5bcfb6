#pragma once
// Element types, their properties, and PyTorch's promotion rules between them.
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

// Ordered so that promotion inside a category is a maximum.
enum class DType : uint8_t { kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64 };

inline constexpr int kDTypeCount = 10;

inline constexpr DType kBool = DType::kBool, kUInt8 = DType::kUInt8, kInt8 = DType::kInt8, kInt16 = DType::kInt16,
                       kInt32 = DType::kInt32, kInt64 = DType::kInt64, kFloat16 = DType::kFloat16,
                       kBFloat16 = DType::kBFloat16, kFloat32 = DType::kFloat32, kFloat64 = DType::kFloat64;
// LibTorch's other spellings.
inline constexpr DType kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64, kHalf = kFloat16,
                       kFloat = kFloat32, kDouble = kFloat64;

constexpr int64_t item_size(DType d) {
  constexpr int64_t kSizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[int(d)];
}
constexpr bool is_floating(DType d) { return d >= DType::kFloat16; }
constexpr bool is_integral(DType d) { return d >= DType::kUInt8 && d <= DType::kInt64; }

// What a floating dtype can tell apart: finfo(kFloat).eps. `tiny` is the smallest normal number.
struct finfo {
  explicit finfo(DType dtype);
  int bits;
  double eps, min, max, tiny, smallest_normal, resolution;
};
// The range of an integer dtype.
struct iinfo {
  explicit iinfo(DType dtype);
  int bits;
  int64_t min, max;
};

// The type promotion of two tensor operands of equal standing: f16 with bf16 gives f32, u8 with i8 gives i16.
DType promote_types(DType a, DType b);

// The type arithmetic happens in inside a kernel: f32 for the half types, i32 for the narrow integers, else the type itself.
constexpr DType compute_dtype(DType d) {
  if (d == kFloat16 || d == kBFloat16) return kFloat32;
  if (d == kUInt8 || d == kInt8 || d == kInt16) return kInt32;
  return d;
}

// The short name used in graphs and kernels: "f32", "bf16", "i64", "bool".
std::string_view dtype_name(DType d);
std::optional<DType> parse_dtype(std::string_view name);
std::string to_string(DType d);
std::ostream& operator<<(std::ostream& out, DType d);

// Host scalar types of the same layout as the elements.
uint16_t float_to_bfloat16(float v);
float bfloat16_to_float(uint16_t v);
uint16_t float_to_float16(float v);
float float16_to_float(uint16_t v);

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float v) : bits(float_to_bfloat16(v)) {}
  operator float() const { return bfloat16_to_float(bits); }
};
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float v) : bits(float_to_float16(v)) {}
  operator float() const { return float16_to_float(bits); }
};

// dtype_of<float> == kFloat32.
template <class T>
constexpr DType dtype_of_impl();
template <> constexpr DType dtype_of_impl<bool>() { return kBool; }
template <> constexpr DType dtype_of_impl<uint8_t>() { return kUInt8; }
template <> constexpr DType dtype_of_impl<int8_t>() { return kInt8; }
template <> constexpr DType dtype_of_impl<int16_t>() { return kInt16; }
template <> constexpr DType dtype_of_impl<int32_t>() { return kInt32; }
template <> constexpr DType dtype_of_impl<int64_t>() { return kInt64; }
template <> constexpr DType dtype_of_impl<long long>() { return kInt64; }
template <> constexpr DType dtype_of_impl<Half>() { return kFloat16; }
template <> constexpr DType dtype_of_impl<BFloat16>() { return kBFloat16; }
template <> constexpr DType dtype_of_impl<float>() { return kFloat32; }
template <> constexpr DType dtype_of_impl<double>() { return kFloat64; }
template <class T>
inline constexpr DType dtype_of = dtype_of_impl<T>();

// Calls f with a value of the element's host type: visit_dtype(d, [&](auto zero) { using T = decltype(zero); … }).
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::kBool: return f(bool{});
    case DType::kUInt8: return f(uint8_t{});
    case DType::kInt8: return f(int8_t{});
    case DType::kInt16: return f(int16_t{});
    case DType::kInt32: return f(int32_t{});
    case DType::kInt64: return f(int64_t{});
    case DType::kFloat16: return f(Half{});
    case DType::kBFloat16: return f(BFloat16{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: break;
  }
  return f(double{});
}

}  // namespace sinter
