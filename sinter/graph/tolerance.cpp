#include "sinter/graph/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinter {

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {.computing = 0x1p-52, .smallest = 0x1p-1022, .largest = std::numeric_limits<double>::max()};
    case DType::kFloat16:
      return {.computing = 0x1p-23, .storing = 0x1p-11, .smallest = 0x1p-25, .largest = 65504};
    case DType::kBFloat16:
      return {.computing = 0x1p-23, .storing = 0x1p-8, .smallest = 0x1p-126, .largest = 3.3895e38};
    default:
      return {.computing = 0x1p-23, .smallest = 0x1p-126, .largest = 3.3895e38};
  }
}

double allowed_error(DType dtype, const Tolerance& tolerance, double want) {
  Precision p = precision_of(dtype);
  double computing = tolerance.partial ? std::max(p.computing, p.storing) : p.computing;
  double absolute = tolerance.absolute * computing / 0x1p-23;
  return (tolerance.ulp * computing + p.storing) * std::abs(want) + absolute + p.smallest;
}

bool agrees(DType dtype, double got, double want, double allowed) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  if (std::isinf(got) && std::signbit(got) == std::signbit(want) && std::abs(want) >= precision_of(dtype).largest) return true;
  return std::isfinite(want) && std::abs(got - want) <= allowed;
}

}  // namespace sinter
