#include "sinter/base/fault.h"

#include <limits>

#include "sinter/base/format.h"

namespace sinter {

namespace {

constexpr int64_t kFirst = std::numeric_limits<int64_t>::min() + 1;

#define SINTER_DIVISION(op)                                                                                           \
  op ": integer division by zero: an element of the divisor is 0. Replace the zeros first, or divide floating-point " \
     "tensors"
// In the order of Fault.
constexpr std::string_view kTexts[] = {
    SINTER_DIVISION("floor_divide"),
    SINTER_DIVISION("trunc_divide"),
    SINTER_DIVISION("fmod"),
    SINTER_DIVISION("remainder"),
    "one_hot: a class is negative, or not smaller than num_classes",
    "nll_loss: a target is not among the classes; one to be left out must be ignore_index",
    "cross_entropy: a target is not among the classes; one to be left out must be ignore_index",
    "binary_cross_entropy: an element of the input is not between 0 and 1. Take its sigmoid(), or use "
    "binary_cross_entropy_with_logits",
    "bernoulli: a probability is not between 0 and 1",
    "multinomial: a weight is negative, infinite or NaN",
    "multinomial: the weights of a row are all 0, so that none of its indices can be drawn",
    "histogram: the range of the elements is not finite; remove what is infinite or NaN, or give a range",
    "quantile: a share is not between 0 and 1",
    "segment_reduce: the lengths are negative, or do not add up to the size of what they divide; the offsets are "
    "outside of it, or "
    "not in ascending order",
    "multi_margin_loss: a target is not among the classes",
    "embedding_bag: the first of the offsets is not 0, where the first bag begins",
    "poisson: a rate is negative",
    "binomial: a count is negative",
    "binomial: a probability is not between 0 and 1",
    "distributions: a parameter is outside of what its distribution allows",
    "distributions: a value is outside of the support of its distribution"};
#undef SINTER_DIVISION
static_assert(std::size(kTexts) == size_t(Fault::kCount));

}  // namespace

int64_t fault_code(Fault fault) { return kFirst + int64_t(fault); }

std::string_view fault_text(Fault fault) { return kTexts[size_t(fault)]; }

std::string fault_text(std::string_view ops, int64_t index, int64_t extent) {
  if (index >= kFirst && index < kFirst + int64_t(std::size(kTexts)))
    return std::string(kTexts[size_t(index - kFirst)]);
  return format("{}: index {} is out of range for size {}", ops, index, extent);
}

}  // namespace sinter
