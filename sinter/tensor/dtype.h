#pragma once
// Element types, their properties, and PyTorch's promotion rules between them.
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

// Ordered so that promotion inside a category is a maximum. The second half are LibTorch's spellings: torch::ScalarType::Float.
enum class DType : uint8_t {
  kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128,
  Bool = kBool, Byte = kUInt8, Char = kInt8, Short = kInt16, Int = kInt32, Long = kInt64,
  Half = kFloat16, BFloat16 = kBFloat16, Float = kFloat32, Double = kFloat64,
  ComplexFloat = kComplex64, ComplexDouble = kComplex128
};
using ScalarType = DType;
using Dtype = DType;

inline constexpr int kDTypeCount = 12;
inline constexpr int kRealDTypeCount = 10;  // they come first: what kernels compute with

inline constexpr DType kBool = DType::kBool, kUInt8 = DType::kUInt8, kInt8 = DType::kInt8, kInt16 = DType::kInt16,
                       kInt32 = DType::kInt32, kInt64 = DType::kInt64, kFloat16 = DType::kFloat16,
                       kBFloat16 = DType::kBFloat16, kFloat32 = DType::kFloat32, kFloat64 = DType::kFloat64,
                       kComplex64 = DType::kComplex64, kComplex128 = DType::kComplex128;
// LibTorch's other spellings.
inline constexpr DType kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64, kHalf = kFloat16,
                       kFloat = kFloat32, kDouble = kFloat64, kComplexFloat = kComplex64, kComplexDouble = kComplex128;
inline constexpr DType kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64, kF16 = kFloat16,
                       kF32 = kFloat32, kF64 = kFloat64;

constexpr int64_t item_size(DType d) {
  constexpr int64_t kSizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[int(d)];
}
constexpr bool is_floating(DType d) { return d >= DType::kFloat16 && d <= DType::kFloat64; }
// A pair of floating numbers, the real part first.
constexpr bool is_complex(DType d) { return d >= DType::kComplex64; }
// Gradients are of floating and complex tensors.
constexpr bool is_differentiable(DType d) { return is_floating(d) || is_complex(d); }
constexpr bool is_integral(DType d) { return d >= DType::kUInt8 && d <= DType::kInt64; }
constexpr int64_t elementSize(DType d) { return item_size(d); }
constexpr bool isFloatingType(DType d) { return is_floating(d); }
constexpr bool isIntegralType(DType d, bool include_bool) { return is_integral(d) || (include_bool && d == kBool); }

// What the parts of a complex number are of, another dtype itself; and the complex dtype that holds a floating one.
constexpr DType real_dtype(DType d) { return d == kComplex64 ? kFloat32 : d == kComplex128 ? kFloat64 : d; }
constexpr DType complex_dtype(DType d) { return d == kFloat64 || d == kComplex128 ? kComplex128 : kComplex64; }

// What a floating dtype, or the parts of a complex one, can tell apart: finfo(kFloat).eps. `tiny` is the smallest normal number.
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

// The floating type of what does not say one: of new tensors, of numbers like 0.5, of what real functions make of integers, of the
// parameters of layers. f32 until it is set; one for all threads.
DType get_default_dtype();
void set_default_dtype(DType dtype);
// LibTorch's spellings: set_default_dtype(scalarTypeToTypeMeta(kDouble)).
inline DType get_default_dtype_as_scalartype() { return get_default_dtype(); }
constexpr DType scalarTypeToTypeMeta(DType d) { return d; }

// The type promotion of two tensor operands of equal standing: f16 with bf16 gives f32, u8 with i8 gives i16.
DType promote_types(DType a, DType b);
inline DType promoteTypes(DType a, DType b) { return promote_types(a, b); }
// Whether an in-place op may store results of `from` in a tensor of `to`: not floats in integers, not numbers in bools.
bool can_cast(DType from, DType to);

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
// LibTorch's name: "Float", "BFloat16", "Long".
std::string_view toString(DType d);
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

// std::complex<float>, std::complex<double> and types made like them, without their header.
template <class T>
concept ComplexNumber = (sizeof(T) == 8 || sizeof(T) == 16) && requires(const T& z) {
  { z.real() } -> std::floating_point;
  { z.imag() } -> std::floating_point;
};

// dtype_of<float> == kFloat32.
template <class T>
constexpr DType dtype_of_impl();
template <ComplexNumber T>
constexpr DType dtype_of_impl() { return sizeof(T) == 8 ? kComplex64 : kComplex128; }
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

[[noreturn]] void fail_complex_element(DType d);

// Calls f with a value of the element's host type, of a real dtype: visit_dtype(d, [&](auto zero) { using T = decltype(zero); … }).
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
    case DType::kComplex64:
    case DType::kComplex128: fail_complex_element(d);
  }
  return f(double{});
}

}  // namespace sinter
