#include "sinter/graph/interpreter/combine.h"

#include <cmath>

namespace sinter::interpreter {

namespace {

// Integers wrap.
Number product(Number a, Number b) {
  return a.floating ? Number(a.f * b.f) : Number(int64_t(uint64_t(a.i) * uint64_t(b.i)));
}

}  // namespace

bool Combiner::wins(Number challenger) const {
  bool larger = combine_ == Combine::kMax || combine_ == Combine::kArgMax;
  if (!challenger.floating) return larger ? challenger.i > total_.i : challenger.i < total_.i;
  if (total_.f != total_.f) return false;
  return challenger.f != challenger.f || (larger ? challenger.f > total_.f : challenger.f < total_.f);
}

void Combiner::add_to_sum(Number value) {
  if (!value.floating) {
    total_ = Number(int64_t(uint64_t(total_.i) + uint64_t(value.i)));  // wraps
    return;
  }
  // Neumaier's sum: the rounding error of each addition is exact in double, and added at the end.
  double sum = total_.f + value.f;
  lost_ += std::abs(total_.f) >= std::abs(value.f) ? (total_.f - sum) + value.f : (value.f - sum) + total_.f;
  total_ = Number(sum);
}

void Combiner::add(Number value, int64_t payload) {
  bool first = count_++ == 0;
  switch (combine_) {
    case Combine::kSum:
      value = value.as(result_);
      if (first)
        total_ = value;
      else
        add_to_sum(value);
      return;
    case Combine::kProd:
      value = value.as(result_);
      total_ = first ? value : product(total_, value);
      return;
    case Combine::kMax:
    case Combine::kMin:
    case Combine::kArgMax:
    case Combine::kArgMin:
      if (first || wins(value)) {
        total_ = value;
        payload_ = payload;
      }
      return;
    case Combine::kAny:
      total_ = Number(int64_t((!first && total_.truth()) || value.truth()));
      return;
    case Combine::kAll:
      total_ = Number(int64_t((first || total_.truth()) && value.truth()));
      return;
    case Combine::kNone:
    case Combine::kReplace:
      total_ = value;
      return;
  }
}

Number Combiner::value(std::string_view op) const {
  if (count_ == 0) {
    switch (combine_) {
      case Combine::kSum:
      case Combine::kProd:
      case Combine::kAny:
      case Combine::kAll:
      case Combine::kMax:
      case Combine::kMin:
        return Number(identity_of(combine_, result_)).as(result_);
      default:
        throw_error(format("{}: no elements to choose from: a reduced size is 0", op));
    }
  }
  if (combine_ == Combine::kArgMax || combine_ == Combine::kArgMin) return Number(payload_);
  bool compensated = combine_ == Combine::kSum && total_.floating && std::isfinite(total_.f);
  return compensated ? Number(total_.f + lost_) : total_;
}

}  // namespace sinter::interpreter
