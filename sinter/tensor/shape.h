#pragma once
// Shape: the sizes of a tensor, each a number or symbolic. IntList: plain integers (dimensions, strides, paddings).
#include <array>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/small_vector.h"
#include "sinter/tensor/dim.h"

namespace sinter SINTER_API {

class Shape;

// A single signed number stands for a list of one, as in x.sum(0); an unsigned one is a count.
class IntList : public SmallVector<int64_t, 6> {
 public:
  using SmallVector<int64_t, 6>::SmallVector;
  IntList() = default;
  IntList(std::initializer_list<int64_t> values) : SmallVector<int64_t, 6>(values) {}
  IntList(const std::vector<int64_t>& values) : SmallVector<int64_t, 6>(std::span<const int64_t>(values)) {}
  template <size_t N>
  IntList(const std::array<int64_t, N>& values) : SmallVector<int64_t, 6>(std::span<const int64_t>(values)) {}
  // As plain numbers; a symbolic size is specialised to its present value.
  IntList(const Shape& sizes);
  template <std::signed_integral T>
  IntList(T value) : SmallVector<int64_t, 6>({int64_t(value)}) {}
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  bool equals(const IntList& other) const { return *this == other; }
  // The rest from position `start`, or `length` of it.
  IntList slice(size_t start) const { return slice(start, size() - start); }
  IntList slice(size_t start, size_t length) const { return IntList(begin() + start, begin() + start + length); }
};
// LibTorch's lists of integers are borrowed, these are owned.
using IntArrayRef = IntList;

class Shape : public SmallVector<Dim, 5> {
 public:
  using SmallVector<Dim, 5>::SmallVector;
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : SmallVector<Dim, 5>(dims) {}
  Shape(const std::vector<int64_t>& sizes) : Shape(std::span<const int64_t>(sizes)) {}
  Shape(const IntList& sizes) : Shape(std::span<const int64_t>(sizes)) {}
  // One size: zeros(3), x.view(-1), ones(list.size()).
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Shape(T size) : SmallVector<Dim, 5>({Dim(size)}) {}
  Shape(const Dim& size) : SmallVector<Dim, 5>({size}) {}
  explicit Shape(std::span<const int64_t> sizes) {
    resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) (*this)[i] = Dim(sizes[i]);
  }

  int64_t rank() const { return int64_t(size()); }
  // As plain numbers; a symbolic size is specialised to its present value.
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  // Also of a list of numbers.
  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  bool equals(const Shape& other) const { return *this == other; }
  // The rest from position `start`, or `length` of it.
  Shape slice(size_t start) const { return slice(start, size() - start); }
  Shape slice(size_t start, size_t length) const { return Shape(begin() + start, begin() + start + length); }
  bool is_static() const;
  // The sizes as numbers; an internal error when one is symbolic.
  IntList numbers() const;
  Dim numel() const;
  // Structural identity of every size: never asks the tracer.
  bool same_as(const Shape& other) const;
};

// "[2, s0, 4]".
std::string to_string(const Shape& shape);
std::string to_string(const IntList& values);
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, const IntList& values);

// PyTorch's broadcasting; `op` names the caller in the Error that says which shapes do not fit.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

// A dimension counted from the end when negative. The Error names the op and the rank.
int64_t wrap_dim(const char* op, int64_t dim, int64_t rank);

// Row-major strides of these sizes.
IntList contiguous_strides(std::span<const int64_t> sizes);
// Product of sizes; an Error naming the op when it overflows or a size is negative.
int64_t checked_numel(const char* op, std::span<const int64_t> sizes);

}  // namespace sinter
