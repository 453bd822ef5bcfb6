#pragma once
// What a nest calls the numbers that its caller passes: how whoever lowers names a size or a stride, and how whoever launches
// finds out what a name stands for.
#include <cstdio>
#include <optional>
#include <string>

#include "sinter/tensor/dim.h"

namespace sinter {

struct ParameterName {
  int operand = -1;  // whose stride; -1: a size
  int axis = 0;      // of the stride; of a size, its number
};

inline std::string size_name(int64_t number) { return "n" + std::to_string(number); }
inline std::string stride_name(int64_t operand, int64_t axis) {
  return "p" + std::to_string(operand) + "_" + std::to_string(axis);
}
inline Dim size_symbol(int64_t number) { return Dim::symbol(size_name(number)); }
inline Dim stride_symbol(int64_t operand, int64_t axis) { return Dim::symbol(stride_name(operand, axis)); }

// Nothing where the name is of neither kind.
inline std::optional<ParameterName> parse_parameter_name(const std::string& name) {
  ParameterName out;
  if (std::sscanf(name.c_str(), "n%d", &out.axis) == 1) return out;
  if (std::sscanf(name.c_str(), "p%d_%d", &out.operand, &out.axis) == 2) return out;
  return std::nullopt;
}

}  // namespace sinter
