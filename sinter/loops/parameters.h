#pragma once
// The numbers that a kernel's caller passes: sizes, and strides of operands. Whoever lowers names them here; the nest lists
// those that it reads, and whoever launches takes what each stands for from that list.
#include <map>
#include <string>

#include "sinter/tensor/dim.h"

namespace sinter {

struct Parameter {
  int operand = -1;  // whose stride; -1: a size
  int axis = -1;     // of the stride; of a size, its number
  std::string name;
};

inline std::string size_name(int64_t number) { return "n" + std::to_string(number); }
inline Dim size_symbol(int64_t number) { return Dim::symbol(size_name(number)); }

// Those that somebody has named.
class Parameters {
 public:
  Dim size(int64_t number) { return add({-1, int(number), size_name(number)}); }
  Dim stride(int64_t operand, int64_t axis) {
    return add({int(operand), int(axis), "p" + std::to_string(operand) + "_" + std::to_string(axis)});
  }
  // A name that nobody gave here stands for nothing that a launch could look up.
  Parameter named(const std::string& name) const {
    auto it = all_.find(name);
    return it == all_.end() ? Parameter{.name = name} : it->second;
  }

 private:
  Dim add(Parameter parameter) {
    Dim symbol = Dim::symbol(parameter.name);
    all_.try_emplace(parameter.name, std::move(parameter));
    return symbol;
  }

  std::map<std::string, Parameter> all_;
};

}  // namespace sinter
