#pragma once
// What the functions of operators share: operands that are tensors of the program or small ones that the host knows.
#include "sinter/interop/convert.h"
#include "sinter/interop/host_tensor.h"
#include "sinter/interop/onnx/table.h"

namespace sinter::interop::onnx {

using Any = const Value&;
using Maybe = const Tensor&;  // undefined where it is left out

inline bool is_given(Any value) { return !value.is<Value::None>(); }
DType dtype_of(Any value);
Shape sizes_of(Any value);

// A pair of operands of an arithmetic op: a constant of one element is a number beside a tensor of the same type.
struct Pair {
  TensorArg a, b;
};
Pair pair_of(Any a, Any b);

// Integers and truth values that the host knows, element by element; nothing where one operand is no such tensor, or where there
// are too many elements.
using OfWhole = Dim (*)(const Dim& a, const Dim& b);
std::optional<Value> combine_on_host(Any a, Any b, OfWhole of_whole, std::optional<DType> result = {});
// The same where all elements are constants, floating ones as well.
using OfReal = double (*)(double a, double b);
std::optional<Value> combine_constants(Any a, Any b, OfReal of_real);

// The elements that `x` has at these places, as a tensor of these sizes.
Value pick(const HostTensor& x, const IntList& sizes, const std::vector<int64_t>& places);
// The coordinates of sizes, one after another, row by row.
void for_coordinates(const IntList& sizes, const std::function<void(const IntList& at)>& visit);
int64_t place_of(const IntList& at, const IntList& sizes);

// Dimensions counted from the end when negative.
IntList wrapped(const char* op, const IntList& dims, int64_t rank);

}  // namespace sinter::interop::onnx
