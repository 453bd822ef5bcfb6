#pragma once
// A value of an exported program: what its nodes take and give, by the types that ATen's schemas have.
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::interop {

struct HostTensor;
struct Value;
using ValueList = std::vector<Value>;

struct Value {
  using None = std::monostate;
  // A Dim is an integer: a number, or a size of the program being captured. A Scalar is a floating number, or any number that
  // only the program knows.
  std::variant<None, bool, Dim, Scalar, std::string, DType, MemoryFormat, Device, Tensor, ValueList,
               std::shared_ptr<const HostTensor>>
      held;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(held);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(held);
  }
};

// "a number", "a list of 3": what a value is, for errors.
std::string describe(const Value& value);

}  // namespace sinter::interop
