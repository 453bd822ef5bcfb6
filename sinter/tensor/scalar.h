#pragma once
// A number that is not a tensor: the 2 of `x * 2`. Its kind takes part in promotion, its width does not. What `item()`
// gives under capture is lazy: comparing it asks the program a yes-or-no question, arithmetic stays lazy, fed back into an
// op it is a tensor of one element, and only a conversion to a C++ number asks for the value.
#include <bit>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "sinter/base/api.h"
#include "sinter/base/intrusive_ptr.h"
#include "sinter/tensor/dtype.h"

namespace sinter SINTER_API {

class Scalar;
class Tensor;

// A number of a program being captured. Implemented in capture/.
class LazyNumber : public RefCounted {
 public:
  virtual ~LazyNumber() = default;
  virtual Scalar value() const = 0;
  virtual bool truth() const = 0;
  // The value for a text that the host writes: from now on it is asked for in every call.
  virtual Scalar shown() const = 0;
  // The tensor of one element that it is.
  virtual Tensor tensor() const = 0;
  // `op` is one of "+ - * / < <= == !="; `reversed`: the other operand comes first.
  virtual Scalar combine(const char* op, const Scalar& other, bool reversed) const = 0;
};

class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  template <std::floating_point T>
  Scalar(T v) : dtype_(kFloat64), float_(double(v)) {}
  template <std::integral T>
  Scalar(T v) : dtype_(std::same_as<T, bool> ? kBool : kInt64), int_(int64_t(v)) {}
  template <ComplexNumber T>
  Scalar(const T& v) : dtype_(kComplex128), float_(double(v.real())), imaginary_(double(v.imag())) {}
  // `dtype` is kFloat64, kInt64 or kBool: what the value will be.
  Scalar(IntrusivePtr<LazyNumber> lazy, DType dtype) : dtype_(dtype), int_(0), lazy_(std::move(lazy)) {}

  // kComplex128, kFloat64, kInt64 or kBool.
  DType dtype() const { return dtype_; }
  bool is_floating() const { return dtype_ == kFloat64; }
  bool is_complex() const { return dtype_ == kComplex128; }
  // An Error where the number has an imaginary part.
  double to_double() const {
    return lazy_ ? known().to_double() : is_floating() ? float_ : is_complex() ? without_imaginary() : double(int_);
  }
  int64_t to_int() const {
    return lazy_ ? known().to_int() : is_floating() ? int64_t(float_) : is_complex() ? int64_t(without_imaginary()) : int_;
  }
  bool to_bool() const {
    return lazy_ ? lazy_->truth() : is_floating() ? float_ != 0 : is_complex() ? float_ != 0 || imaginary_ != 0 : int_ != 0;
  }
  // The parts of any number.
  double real() const { return is_complex() ? float_ : to_double(); }
  double imag() const { return imaginary_; }
  // LibTorch's spellings: x.item().to<float>(), x.item().toDouble().
  template <class T>
  T to() const {
    if constexpr (std::same_as<T, bool>)
      return to_bool();
    else if constexpr (std::integral<T>)
      return T(to_int());
    else if constexpr (ComplexNumber<T>)
      return T(typename T::value_type(real()), typename T::value_type(imag()));
    else
      return T(to_double());
  }
  double toDouble() const { return to_double(); }
  float toFloat() const { return float(to_double()); }
  int64_t toLong() const { return to_int(); }
  int toInt() const { return int(to_int()); }
  bool toBool() const { return to_bool(); }
  bool isFloatingPoint() const { return is_floating(); }
  bool isComplex() const { return is_complex(); }
  bool isIntegral(bool include_bool) const { return dtype_ == kInt64 || (include_bool && isBoolean()); }
  bool isBoolean() const { return dtype_ == kBool; }
  DType type() const { return dtype_; }
  bool is_lazy() const { return bool(lazy_); }
  const LazyNumber* lazy() const { return lazy_.get(); }
  explicit operator bool() const { return to_bool(); }

  // Equal kinds and equal bits (so that NaN equals itself: this is identity, for caches and hash-consing).
  bool operator==(const Scalar& other) const {
    return dtype_ == other.dtype_ && int_ == other.int_ && lazy_ == other.lazy_ &&
           std::bit_cast<int64_t>(imaginary_) == std::bit_cast<int64_t>(other.imaginary_);
  }

 private:
  Scalar known() const { return lazy_->value(); }
  double without_imaginary() const;

  DType dtype_;
  union {
    double float_;
    int64_t int_;
  };
  double imaginary_ = 0;
  IntrusivePtr<LazyNumber> lazy_;
};

// Numbers as numbers: x.item() > 0.5, 2 * x.item().
namespace detail {
Scalar combine(const char* op, const Scalar& a, const Scalar& b);
template <class T>
concept PlainNumber = std::integral<T> || std::floating_point<T> || ComplexNumber<T>;
}  // namespace detail

#define SINTER_SCALAR_OPERATOR(op, text, result)                                                                      \
  template <detail::PlainNumber T>                                                                                    \
  inline result operator op(const Scalar& a, T b) { return result(detail::combine(text, a, b)); }                     \
  template <detail::PlainNumber T>                                                                                    \
  inline result operator op(T a, const Scalar& b) { return result(detail::combine(text, a, b)); }
#define SINTER_SCALAR_PAIR(op, text, result) \
  inline result operator op(const Scalar& a, const Scalar& b) { return result(detail::combine(text, a, b)); }
SINTER_SCALAR_OPERATOR(+, "+", Scalar)
SINTER_SCALAR_OPERATOR(-, "-", Scalar)
SINTER_SCALAR_OPERATOR(*, "*", Scalar)
SINTER_SCALAR_OPERATOR(/, "/", Scalar)
SINTER_SCALAR_OPERATOR(<, "<", bool)
SINTER_SCALAR_OPERATOR(<=, "<=", bool)
SINTER_SCALAR_PAIR(+, "+", Scalar)
SINTER_SCALAR_PAIR(-, "-", Scalar)
SINTER_SCALAR_PAIR(*, "*", Scalar)
SINTER_SCALAR_PAIR(/, "/", Scalar)
SINTER_SCALAR_PAIR(<, "<", bool)
SINTER_SCALAR_PAIR(<=, "<=", bool)
inline bool operator>(const Scalar& a, const Scalar& b) { return b < a; }
inline bool operator>=(const Scalar& a, const Scalar& b) { return b <= a; }
template <detail::PlainNumber T>
inline bool operator>(const Scalar& a, T b) { return b < a; }
template <detail::PlainNumber T>
inline bool operator>=(const Scalar& a, T b) { return b <= a; }
template <detail::PlainNumber T>
inline bool operator>(T a, const Scalar& b) { return b < a; }
template <detail::PlainNumber T>
inline bool operator>=(T a, const Scalar& b) { return b <= a; }
template <detail::PlainNumber T>
inline bool operator==(const Scalar& a, T b) { return bool(detail::combine("==", a, b)); }
#undef SINTER_SCALAR_PAIR
#undef SINTER_SCALAR_OPERATOR

// "2", "2.0", "true": the kind can be read back from the text; "(1.0, 2.0)" of a complex number.
std::string to_string(const Scalar& s);
std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace sinter
