#pragma once
// One function that people call, as a case of tests/ops/composites_recorded_test.cpp; the longer lists have files of their own.
#include <functional>
#include <ostream>
#include <tuple>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::testing {

using X = const TensorList&;

struct Composite {
  const char* name;
  std::function<TensorList(X)> run;
  // Reads values on the host, writes its inputs, or has a result whose size PyTorch's cotangent cannot be matched with
  // before the data is known: not traced.
  bool eager_only = false;
};
inline void PrintTo(const Composite& composite, std::ostream* out) { *out << composite.name; }

// Several results as a list.
inline TensorList list(const std::tuple<Tensor, Tensor>& t) { return {std::get<0>(t), std::get<1>(t)}; }
inline TensorList list(const std::tuple<Tensor, Tensor, Tensor>& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

// Joins, diagonals, neighbours, orderings and counts.
std::vector<Composite> arrangement_composites();
// Factorisations of any matrices, drawn windows, runs of elements, whole numbers.
std::vector<Composite> irregular_composites();

}  // namespace sinter::testing
