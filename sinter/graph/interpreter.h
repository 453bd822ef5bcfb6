#pragma once
// The referee: a small, slow evaluator of graphs in double precision. It shares nothing with lowering, scheduling or
// code generation; every test of an op, a pass or a fusion compares against it.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

// Row-major elements: `f` for floating types, `i` for integers and bool.
struct Array {
  DType dtype = kFloat32;
  IntList sizes;
  std::vector<double> f;
  std::vector<int64_t> i;

  Array() = default;
  Array(DType dtype, const IntList& sizes);
  bool floating() const { return is_floating(dtype); }
  int64_t numel() const { return int64_t(floating() ? f.size() : i.size()); }
  double number(int64_t at) const { return floating() ? f[size_t(at)] : double(i[size_t(at)]); }
  int64_t integer(int64_t at) const { return floating() ? int64_t(f[size_t(at)]) : i[size_t(at)]; }
  // Stores with the conversion of an explicit cast: integers wrap, bool is "not zero", floats stay doubles.
  void set(int64_t at, double value);
  void set(int64_t at, int64_t value);
};

// What an opaque op's own referee sees. It fills `outputs`, already sized when the result types have static sizes.
struct InterpretCall {
  const OpCall& call;
  std::span<const Array* const> inputs;
  std::vector<Array>& outputs;
};

Array to_array(const Tensor& tensor);
// A plain number: what a graph input of weak type takes.
Array to_array(const Scalar& number);
// Rounds to the array's dtype (or another).
Tensor to_tensor(const Array& array);
Tensor to_tensor(const Array& array, DType dtype);

// Evaluates the graph; symbolic sizes are bound by `sizes`, by name, and by the shapes of the inputs. `as_stored`: each
// value is rounded to its dtype, as memory would hold it: a program that is cut in two compares values of both parts.
std::vector<Array> interpret(const Graph& graph, std::span<const Array> inputs,
                             const std::map<std::string, int64_t>& sizes = {}, bool as_stored = false);

}  // namespace sinter
