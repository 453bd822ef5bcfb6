#pragma once
// A number that is not a tensor: the 2 of `x * 2`. Its kind takes part in promotion, its width does not.
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "sinter/tensor/dtype.h"

namespace sinter {

class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  template <std::floating_point T>
  Scalar(T v) : dtype_(kFloat64), float_(double(v)) {}
  template <std::integral T>
  Scalar(T v) : dtype_(std::same_as<T, bool> ? kBool : kInt64), int_(int64_t(v)) {}

  // kFloat64, kInt64 or kBool.
  DType dtype() const { return dtype_; }
  bool is_floating() const { return dtype_ == kFloat64; }
  double to_double() const { return is_floating() ? float_ : double(int_); }
  int64_t to_int() const { return is_floating() ? int64_t(float_) : int_; }
  bool to_bool() const { return is_floating() ? float_ != 0 : int_ != 0; }

  // Equal kinds and equal bits (so that NaN equals itself: this is identity, for caches and hash-consing).
  bool operator==(const Scalar& other) const { return dtype_ == other.dtype_ && int_ == other.int_; }

 private:
  DType dtype_;
  union {
    double float_;
    int64_t int_;
  };
};

// "2", "2.0", "true": the kind can be read back from the text.
std::string to_string(const Scalar& s);
std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace sinter
