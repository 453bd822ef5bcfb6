#include "sinter/passes/padding_content.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/base/format.h"
#include "sinter/graph/interpreter/kinds.h"

namespace sinter::padding {

namespace {

constexpr double kLarge = 8e3;  // the class kLow after a moderate number was added to it
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Samples {
  Class of;
  const char* text;
  std::initializer_list<double> numbers;
};
const Samples kSamples[] = {
    {kNaN, "NaN", {std::numeric_limits<double>::quiet_NaN()}},
    {kMinusInf, "-inf", {-kInfinity}},
    {kLow, "very negative", {-1e30, -1e9, -1e4}},
    {kNegative, "negative", {-50, -3, -1, -0.5, -1e-3}},
    {kZero, "zero", {0}},
    {kPositive, "positive", {1e-3, 0.5, 1, 3, 50}},
    {kHigh, "very large", {1e4, 1e9, 1e30}},
    {kPlusInf, "inf", {kInfinity}},
    {kBelow, "a position", {0, 1, 40}},
    {kBeyond, "a position in the padding", {41, 42, 80}},
};

bool is_moderate(double x) { return std::abs(x) < kLarge; }

// Moderate operands give no large result: what grows is not modelled.
Class class_of(double x, bool moderate) {
  if (std::isnan(x)) return kNaN;
  if (std::isinf(x)) return x < 0 ? kMinusInf : kPlusInf;
  if (x == 0) return kZero;
  bool large = !moderate && !is_moderate(x);
  return x < 0 ? (large ? kLow : kNegative) : (large ? kHigh : kPositive);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool fits(double x, DType dtype) {
  if (is_floating(dtype)) return true;
  if (dtype == kBool) return x == 0 || x == 1;
  return x == std::trunc(x) && std::abs(x) <= (item_size(dtype) < 4 ? 100 : 1e9);
}

std::vector<double> numbers_of(const Content& content) {
  if (content.constant) return {*content.constant};
  std::vector<double> out;
  for (auto& s : kSamples)
    if (content.classes & s.of) out.insert(out.end(), s.numbers);
  return out;
}

// The numbers to try an operand with. Beside the constants that the other operands are, a comparison may change.
std::vector<double> numbers_of(const Content& content, DType dtype, std::span<const Content> all) {
  auto out = numbers_of(content);
  if (content.constant) return out;
  for (auto& other : all) {
    if (!other.constant || !std::isfinite(*other.constant)) continue;
    for (double x : {*other.constant - 1, *other.constant, *other.constant + 1})
      if (content.classes & class_of(x, is_moderate(x))) out.push_back(x);
  }
  std::erase_if(out, [&](double x) { return !fits(x, dtype); });
  return out;
}

// Collects numbers into a content.
struct Collector {
  Content content;
  bool first = true;

  void add(double x, bool moderate) {
    Class c = class_of(x, moderate);
    content.classes |= c;
    if (first)
      content.constant = x + 0.0;  // of -0 too
    else if (content.constant && !same(*content.constant, x))
      content.constant.reset();
    first = false;
  }
  Content done() const {
    if (content.constant) return Content::of(*content.constant);
    return content;
  }
};

double combine_numbers(Combine combine, double a, double b) {
  switch (combine) {
    case Combine::kSum:
      return a + b;
    case Combine::kProd:
      return a * b;
    case Combine::kMax:
    case Combine::kArgMax:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case Combine::kMin:
    case Combine::kArgMin:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case Combine::kAny:
      return a != 0 || b != 0;
    case Combine::kAll:
      return a != 0 && b != 0;
    case Combine::kNone:
    case Combine::kReplace:
      break;
  }
  return b;
}

Content combine_contents(Combine combine, const Content& a, const Content& b) {
  Collector out;
  for (double x : numbers_of(a))
    for (double y : numbers_of(b)) out.add(combine_numbers(combine, x, y), is_moderate(x) && is_moderate(y));
  return out.done();
}

// Without the elements that a mask put there, unless there are no others.
Content unmasked(Combine combine, Content content) {
  if (content.constant) return content;
  uint16_t masked = combine == Combine::kSum                                  ? kZero
                    : combine == Combine::kMax || combine == Combine::kArgMax ? kMinusInf | kLow
                    : combine == Combine::kMin || combine == Combine::kArgMin ? kPlusInf | kHigh
                                                                              : 0;
  if (content.classes & ~masked) content.classes &= uint16_t(~masked);
  return content;
}

Content closure(Combine combine, Content content) {
  for (;;) {
    Content next = join(content, combine_contents(combine, content, content));
    if (next == content) return content;
    content = next;
  }
}

bool gives_position(Combine combine) { return combine == Combine::kArgMax || combine == Combine::kArgMin; }

}  // namespace

Content Content::of(double number) {
  if (std::isnan(number)) return of(uint16_t(kNaN));
  return {class_of(number, false), number};
}

Content join(const Content& a, const Content& b) {
  if (a.empty() || a == b) return b;
  if (b.empty()) return a;
  return Content::of(uint16_t(a.classes | b.classes));
}

std::string to_string(const Content& content) {
  if (content.constant) return format("{}", *content.constant);
  std::string out;
  for (auto& s : kSamples)
    if (content.classes & s.of) out += (out.empty() ? "" : " or ") + std::string(s.text);
  return out;
}

Content apply(const OpCall& call, DType result, std::span<const Content> operands,
              std::span<const size_t> first_equal) {
  if (call.op.pointwise->typing == Typing::kRandom) return Content::finite(result);
  std::vector<std::vector<double>> numbers;
  int64_t count = 1;
  for (size_t j = 0; j < operands.size(); ++j) {
    if (operands[j].empty()) return {};
    numbers.push_back(numbers_of(operands[j], call.inputs[j].dtype, operands));
    if (numbers.back().empty()) return Content::anything();
    if (first_equal[j] == j) count *= int64_t(numbers.back().size());
  }
  // Every combination, one an element of the arrays.
  std::vector<Array> arrays;
  std::vector<const Array*> pointers;
  int64_t repeat = count;
  for (size_t j = 0; j < operands.size(); ++j) {
    if (first_equal[j] != j) {
      arrays.push_back(Array(arrays[first_equal[j]]));
      continue;
    }
    auto& array = arrays.emplace_back(call.inputs[j].dtype, IntList{count});
    int64_t choices = int64_t(numbers[j].size());
    repeat /= choices;
    for (int64_t n = 0; n < count; ++n) array.set(n, numbers[j][size_t(n / repeat % choices)]);
  }
  for (auto& array : arrays) pointers.push_back(&array);
  Array results = interpreter::run_pointwise(call, pointers, Type{result, Shape(count), {}, false});

  Collector out;
  std::vector<bool> passed(operands.size(), true);  // the result is this operand, so all that is known of it stays
  for (int64_t n = 0; n < count; ++n) {
    bool moderate = true;
    double x = results.number(n);
    for (size_t j = 0; j < arrays.size(); ++j) {
      moderate = moderate && is_moderate(arrays[j].number(n));
      passed[j] = passed[j] && same(arrays[j].number(n), x);
    }
    out.add(x, moderate);
  }
  for (size_t j = 0; j < operands.size(); ++j)
    if (passed[j]) return operands[j];
  return out.done();
}

Content fold(Combine combine, const Content& elements) {
  if (elements.empty()) return Content::anything();
  if (gives_position(combine)) return Content::of(uint16_t(kZero | kPositive));
  return closure(combine, unmasked(combine, elements));
}

Content fold(Combine combine, const Content& real, const Content& padding) {
  if (padding.empty() || gives_position(combine)) return fold(combine, real);
  Content alone = fold(combine, real);
  return join(alone, combine_contents(combine, alone, closure(combine, padding)));
}

bool neutral(Combine combine, const Content& real, const Content& padding) {
  bool truth = combine == Combine::kAny || combine == Combine::kAll;
  for (double r : numbers_of(unmasked(combine, real)))
    for (double p : numbers_of(padding))
      if (!same(combine_numbers(combine, r, p), truth ? r != 0 : r)) return false;
  return combine != Combine::kReplace || padding.empty();
}

}  // namespace sinter::padding
