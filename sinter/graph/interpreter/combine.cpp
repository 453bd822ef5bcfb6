#include "sinter/graph/interpreter/combine.h"

namespace sinter::interpreter {

namespace {

// Integers wrap.
Number sum(Number a, Number b) {
  return a.floating ? Number(a.f + b.f) : Number(int64_t(uint64_t(a.i) + uint64_t(b.i)));
}
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

void Combiner::add(Number value, int64_t payload) {
  bool first = count_++ == 0;
  switch (combine_) {
    case Combine::kSum:
      value = value.as(result_);
      total_ = first ? value : sum(total_, value);
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
        return Number(int64_t(0)).as(result_);
      case Combine::kProd:
        return Number(int64_t(1)).as(result_);
      case Combine::kAny:
        return Number(int64_t(0));
      case Combine::kAll:
        return Number(int64_t(1));
      default:
        throw_error(format("{}: no elements to choose from: a reduced size is 0", op));
    }
  }
  return combine_ == Combine::kArgMax || combine_ == Combine::kArgMin ? Number(payload_) : total_;
}

}  // namespace sinter::interpreter
