#pragma once
// The distributions that PyTorch has recorded (tools/record_distributions.py, where each has its counterpart of the same name).
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sinter/distributions.h"

namespace sinter::testing {

using distributions::DistributionPtr;

// From the parameters, in their order.
using Make = std::function<DistributionPtr(const TensorList& parameters)>;

template <class D>
DistributionPtr of(D distribution) {
  return std::make_shared<D>(std::move(distribution));
}

// By name: of a distribution, and of the first and the second of a pair.
const std::map<std::string, Make>& recorded_distributions();
struct RecordedPair {
  Make p, q;
  size_t parameters_of_p;
};
const std::map<std::string, RecordedPair>& recorded_pairs();

}  // namespace sinter::testing
