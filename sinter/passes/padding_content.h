#pragma once
// What is known of the elements of a region of a tensor: one number they all are, or a set of classes. The effect of a
// pointwise op is found by running it on a few numbers of each class, so no op needs a rule of its own.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sinter/graph/op.h"

namespace sinter::padding {

enum Class : uint16_t {
  kNaN = 1,
  kMinusInf = 2,
  kLow = 4,  // stands for -inf: -1e4 and less
  kNegative = 8,
  kZero = 16,
  kPositive = 32,
  kHigh = 64,
  kPlusInf = 128,
  kBelow = 256,   // a position before the true size
  kBeyond = 512,  // a position behind it
};

struct Content {
  uint16_t classes = 0;            // none: there are no such elements
  std::optional<double> constant;  // all of them are this number; `classes` is its class

  static Content of(double number);
  static Content of(uint16_t classes) { return {classes, {}}; }
  // Any finite number of the dtype.
  static Content finite(DType dtype) {
    return of(uint16_t(dtype == kBool ? kZero | kPositive : kNegative | kZero | kPositive));
  }
  static Content anything() { return of(uint16_t(kBelow - 1)); }

  bool empty() const { return classes == 0; }
  bool may_be_negative() const { return classes & (kMinusInf | kLow | kNegative); }
  auto operator<=>(const Content&) const = default;
};

Content join(const Content& a, const Content& b);
// "0", "negative, zero or positive".
std::string to_string(const Content& content);

// The result of a pointwise op on operands of these contents. `call` has the operands' types; `first_equal` gives for
// each operand the first that is the same value, as in x * x.
Content apply(const OpCall& call, DType result, std::span<const Content> operands, std::span<const size_t> first_equal);

// One or more elements combined.
Content fold(Combine combine, const Content& elements);
// Real elements and any number of padded ones combined.
Content fold(Combine combine, const Content& real, const Content& padding);
// Whether padded elements, which come after the real ones, leave the combination of these as it is.
bool neutral(Combine combine, const Content& real, const Content& padding);

}  // namespace sinter::padding
