#pragma once
// The functions of complex numbers whose values PyTorch recorded: tools/record_complex.py has each under the same name.
#include <functional>
#include <ostream>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::testing {

struct ComplexCase {
  const char* name;
  std::function<TensorList(const TensorList&)> run;
};
inline void PrintTo(const ComplexCase& c, std::ostream* out) { *out << c.name; }

const std::vector<ComplexCase>& complex_cases();

}  // namespace sinter::testing
