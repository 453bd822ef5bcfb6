#pragma once
// What a kernel may find wrong with the values it is given. A kernel has one way to say so: it notes an index that is out
// of range, with the extent, in a cell that the host looks at. Rules of other kinds travel the same way, as numbers below
// every index: an op that such a rule concerns replaces the index (see ops/checked.h).
#include <cstdint>
#include <string>
#include <string_view>

namespace sinter {

enum class Fault : uint8_t {
  kFloorDivide,
  kTruncDivide,
  kFmod,
  kRemainder,
  kOneHot,
  kNllLoss,
  kCrossEntropy,
  kBinaryCrossEntropy,
  kBernoulli,
  kMultinomialWeight,
  kMultinomialSum,
  kHistogramRange,
  kQuantileShare,
  kSegmentLengths,
  kMultiMarginLoss,
  kEmbeddingBag,
  kPoisson,
  kBinomialCount,
  kBinomialChance,
  kDistributionParameter,
  kDistributionValue,
  kCount
};

// The number that stands for the fault among indices.
int64_t fault_code(Fault fault);
// What the user is told of it: "floor_divide: …".
std::string_view fault_text(Fault fault);
// The same of what a kernel of these ops has noted: a fault, or an index out of range.
std::string fault_text(std::string_view ops, int64_t index, int64_t extent);

}  // namespace sinter
