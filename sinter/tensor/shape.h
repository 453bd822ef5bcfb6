#pragma once
// Shape: the sizes of a tensor, each a number or symbolic. IntList: plain integers (dimensions, strides, paddings).
#include <span>
#include <string>

#include "sinter/base/small_vector.h"
#include "sinter/tensor/dim.h"

namespace sinter {

using IntList = SmallVector<int64_t, 6>;

class Shape : public SmallVector<Dim, 5> {
 public:
  using SmallVector<Dim, 5>::SmallVector;
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : SmallVector<Dim, 5>(dims) {}
  explicit Shape(std::span<const int64_t> sizes) {
    resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) (*this)[i] = Dim(sizes[i]);
  }

  int64_t rank() const { return int64_t(size()); }
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

// PyTorch's broadcasting; `op` names the caller in the Error that says which shapes do not fit.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

// A dimension counted from the end when negative. The Error names the op and the rank.
int64_t wrap_dim(const char* op, int64_t dim, int64_t rank);

// Row-major strides of these sizes.
IntList contiguous_strides(std::span<const int64_t> sizes);
// Product of sizes; an Error naming the op when it overflows or a size is negative.
int64_t checked_numel(const char* op, std::span<const int64_t> sizes);

}  // namespace sinter
