#pragma once
// A tensor beside what the referee has for it.
#include <optional>
#include <span>
#include <string>

#include "sinter/graph/interpreter.h"

namespace sinter::referee {

// The worst of the elements that are wrong.
struct Mismatch {
  int result = 0;  // which of the results
  DType dtype = kFloat32;
  IntList sizes, index;
  double got = 0, want = 0, allowed = 0;
  int64_t wrong = 0, elements = 0;
  std::string form;  // what is wrong where sizes or dtypes already differ

  // "result 0, f32[2, 3]: element [1, 2] is 0.5 instead of 1.5 (allowed error 1e-6); 4 of 6 elements are wrong".
  std::string text() const;
};

// `allowed` by element, or empty: none. A number has any floating dtype.
std::optional<Mismatch> compare(int result, const Tensor& got, const Array& want, std::span<const double> allowed,
                                bool number = false);

}  // namespace sinter::referee
