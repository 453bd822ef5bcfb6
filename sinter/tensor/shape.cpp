#include "sinter/tensor/shape.h"

#include <ostream>

#include "sinter/base/error.h"

namespace sinter {

IntList::IntList(const Shape& sizes) : IntList(sizes.vec()) {}

bool Shape::is_static() const {
  for (auto& d : *this)
    if (!d.is_number()) return false;
  return true;
}

IntList Shape::numbers() const {
  IntList out;
  out.resize(size());
  for (size_t i = 0; i < size(); ++i) out[i] = (*this)[i].number();
  return out;
}

Dim Shape::numel() const {
  Dim n = 1;
  for (auto& d : *this) n = n * d;
  return n;
}

bool Shape::same_as(const Shape& other) const {
  if (size() != other.size()) return false;
  for (size_t i = 0; i < size(); ++i)
    if (!(*this)[i].same_as(other[i])) return false;
  return true;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ", ";
    out += to_string(shape[i]);
  }
  out += ']';
  return out;
}

std::string to_string(const IntList& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    out += std::to_string(values[i]);
  }
  out += ']';
  return out;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[i + shift], &y = shorter[i];
    if (x.same_as(y) || y.same_as(1)) continue;
    // A size that is an expression may have come to 1.
    bool differ = !x.same_as(1) && !(x == y);
    if (differ && !y.is_number() && y == 1) continue;
    if (x.same_as(1) || (differ && !x.is_number() && x == 1)) {
      out[i + shift] = y;
      continue;
    }
    check(!differ, "{}: shapes {} and {} do not broadcast: sizes {} and {} differ at dimension {}", op, a, b, x, y,
          int64_t(i + shift) - longer.rank());
    if (y.is_number()) out[i + shift] = y;
  }
  return out;
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t rank) {
  int64_t limit = rank == 0 ? 1 : rank;
  check(dim >= -limit && dim < limit, "{}: dimension {} is out of range for a tensor of {} dimensions (expected {} to {})",
        op, dim, rank, -limit, limit - 1);
  return dim < 0 ? dim + limit : dim;
}

IntList contiguous_strides(std::span<const int64_t> sizes) {
  IntList strides;
  strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (sizes[i] > 1) stride *= sizes[i];
  }
  return strides;
}

int64_t checked_numel(const char* op, std::span<const int64_t> sizes) {
  int64_t n = 1;
  bool overflow = false, zero = false;
  for (int64_t s : sizes) {
    check(s >= 0, "{}: a size is negative: {}", op, Shape(sizes));
    zero |= s == 0;
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  if (zero) return 0;
  check(!overflow && n < (int64_t(1) << 59), "{}: the sizes {} overflow the address space", op, Shape(sizes));
  return n;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, const IntList& values) { return out << to_string(values); }

}  // namespace sinter
