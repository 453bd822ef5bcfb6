#pragma once
// How ops on batches of matrices read, run and write them.
#include <algorithm>
#include <string_view>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/op.h"

namespace sinter {

inline void check_matrices(const OpCall& call, int operand = 0) {
  const Type& a = call.inputs[size_t(operand)];
  check(a.dtype == kFloat32 || a.dtype == kFloat64, "{}: takes f32 or f64, not {}; convert with .to(kFloat32)",
        call.name(), a.dtype);
  check(a.rank() >= 2, "{}: expected matrices in the last two dimensions, got shape {}", call.name(), a.shape);
}
inline void check_square(const OpCall& call, int operand = 0) {
  check_matrices(call, operand);
  const Shape& s = call.shape(operand);
  check(s[s.size() - 2] == s.back(), "{}: the matrices must be square, got shape {}", call.name(), s);
}

// Square matrices, and right-hand sides of the same batch and as many rows.
inline void check_system(const OpCall& call) {
  check_square(call, 0);
  check_matrices(call, 1);
  auto &a = call.inputs[0], &b = call.inputs[1];
  check(a.dtype == b.dtype, "{}: dtypes {} and {} differ", call.name(), a.dtype, b.dtype);
  bool fits = a.rank() == b.rank();
  for (size_t d = 0; fits && d + 1 < a.shape.size(); ++d) fits = a.shape[d] == b.shape[d];
  check(fits, "{}: matrices {} do not fit right-hand sides {}", call.name(), a.shape, b.shape);
}

// The sizes in front of the last `count`, followed by others.
inline Shape batch_with(const Shape& shape, const Shape& tail, int64_t count = 2) {
  Shape out(shape.begin(), shape.end() - count);
  out.append(tail);
  return out;
}

// One operand or result, row-major: `rows`×`columns` elements for each of `count` matrices.
struct MatrixSizes {
  int64_t count = 1, rows = 1, columns = 1;
  explicit MatrixSizes(std::span<const int64_t> sizes) {
    rows = sizes[sizes.size() - 2];
    columns = sizes.back();
    for (size_t d = 0; d + 2 < sizes.size(); ++d) count *= sizes[d];
  }
  int64_t numel() const { return rows * columns; }
};

// Between rows side by side and columns side by side.
template <class From, class To>
void transpose(int64_t rows, int64_t columns, const From* from, To* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = To(from[i * columns + j]);
}
template <class T>
std::vector<T> by_columns(int64_t rows, int64_t columns, const T* from) {
  std::vector<T> out(size_t(rows * columns));
  transpose(rows, columns, from, out.data());
  return out;
}
template <class T>
void store_columns(int64_t rows, int64_t columns, const T* from, T* to) {
  transpose(columns, rows, from, to);
}

// body(i) for every matrix of a batch, on the pool; `work` is about what one costs.
template <class F>
void for_each_matrix(int64_t count, int64_t work, F&& body) {
  int64_t grain = std::max<int64_t>(1, 20'000 / std::max<int64_t>(work, 1));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// Calls with a float or a double, as the tensor has them.
template <class F>
void visit_real(DType dtype, F&& f) {
  if (dtype == kFloat32)
    f(float());
  else
    f(double());
}

// "" or "(batch element 3) ".
inline std::string batch_element(int64_t count, int64_t at) {
  return count > 1 ? format("(batch element {}) ", at) : "";
}

}  // namespace sinter
