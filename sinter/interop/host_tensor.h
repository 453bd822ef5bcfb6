#pragma once
// A small tensor whose elements the host knows: sizes, axes, a factor. Programs compute shapes with tensors; kept as sizes they
// stay symbolic in a program being captured, and ask its data nothing.
#include <memory>
#include <vector>

#include "sinter/interop/value.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

struct HostTensor {
  // What has more elements is data.
  static constexpr int64_t kMostElements = 256;

  DType dtype = kInt64;
  IntList sizes = {};
  std::vector<Dim> whole = {};    // the elements of integers and truth values, row by row
  std::vector<double> real = {};  // those of floating numbers
  Device device = {};             // where it lies when an op reads it
  Tensor stored = {};             // the same elements in memory, where they come from there

  int64_t count() const { return int64_t(is_real() ? real.size() : whole.size()); }
  bool is_real() const { return is_floating(dtype); }
  // Whether no element is a size that may change from call to call.
  bool is_constant() const;
  Device place() const { return stored.defined() ? stored.device() : device; }
};

inline Value host_value(HostTensor tensor) { return {std::make_shared<const HostTensor>(std::move(tensor))}; }
// The tensor on the host behind a value; null when there is none.
inline const HostTensor* host_of(const Value& value) {
  auto* held = std::get_if<std::shared_ptr<const HostTensor>>(&value.held);
  return held ? held->get() : nullptr;
}

// Reads the elements of a tensor in memory; under capture that asks the program. It stays the one in memory.
HostTensor read_elements(const Tensor& tensor);
// As a tensor of the program.
Tensor tensor_of(const HostTensor& host);
// One element, as a value.
Value element_of(const HostTensor& host, int64_t at);

}  // namespace sinter::interop
