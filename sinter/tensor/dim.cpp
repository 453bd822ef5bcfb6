#include "sinter/tensor/dim.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <ostream>
#include <set>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/small_vector.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace detail {

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMod, kMax, kMin };

struct DimAtom {
  AtomKind kind;
  std::string text;  // canonical: orders atoms the same way in every process
  Dim a, b;
};

struct DimTerm {
  int64_t coefficient = 0;
  std::vector<const DimAtom*> factors;
};

struct DimExpr {
  std::vector<DimTerm> terms;
  std::string text;
  uint64_t hash;
};

namespace {

// Never destroyed: Dims in static objects may outlive any order of destruction.
struct Interner {
  std::mutex mutex;
  std::unordered_map<std::string, DimAtom*> atoms;
  std::unordered_map<std::string, DimExpr*> exprs;
  static Interner& instance() {
    static auto* interner = new Interner;
    return *interner;
  }
};

std::string term_text(const DimTerm& t, bool first) {
  std::string out = t.coefficient < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
  int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
  if (t.factors.empty()) return out + std::to_string(magnitude);
  if (magnitude != 1) out += std::to_string(magnitude) + "*";
  for (size_t i = 0; i < t.factors.size(); ++i) out += (i ? "*" : "") + t.factors[i]->text;
  return out;
}

bool factors_less(const DimTerm& a, const DimTerm& b) {
  // Constants last, then text order: `2*s0 + 1`.
  if (a.factors.empty() != b.factors.empty()) return b.factors.empty();
  return std::lexicographical_compare(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                                      [](auto* x, auto* y) { return x->text < y->text; });
}

const DimAtom* intern_atom(AtomKind kind, std::string text, const Dim& a, const Dim& b) {
  auto& in = Interner::instance();
  std::lock_guard lock(in.mutex);
  auto& slot = in.atoms[text];
  if (!slot) slot = new DimAtom{kind, text, a, b};
  return slot;
}

}  // namespace
}  // namespace detail

using detail::AtomKind;
using detail::DimAtom;
using detail::DimTerm;

Dim Dim::from_terms(std::vector<DimTerm> terms) {
  std::sort(terms.begin(), terms.end(), detail::factors_less);
  std::vector<DimTerm> merged;
  for (auto& t : terms) {
    if (!merged.empty() && merged.back().factors == t.factors)
      merged.back().coefficient += t.coefficient;
    else
      merged.push_back(std::move(t));
  }
  std::erase_if(merged, [](const DimTerm& t) { return t.coefficient == 0; });
  if (merged.empty()) return 0;
  if (merged.size() == 1 && merged[0].factors.empty()) return merged[0].coefficient;
  std::string text;
  for (size_t i = 0; i < merged.size(); ++i) text += detail::term_text(merged[i], i == 0);
  auto& in = detail::Interner::instance();
  std::lock_guard lock(in.mutex);
  auto& slot = in.exprs[text];
  if (!slot) slot = new detail::DimExpr{std::move(merged), text, hash_text(text)};
  Dim out;
  out.expr_ = slot;
  return out;
}

std::vector<DimTerm> Dim::terms() const {
  if (expr_) return expr_->terms;
  if (value_ == 0) return {};
  return {DimTerm{value_, {}}};
}

Dim Dim::from_atom(const DimAtom* atom) { return from_terms({DimTerm{1, {atom}}}); }

Dim Dim::symbol(std::string_view name) {
  return from_atom(detail::intern_atom(AtomKind::kSymbol, std::string(name), 0, 0));
}

namespace {

// What this thread computed lately: the layers of a network ask for the same again and again. Expressions live as long as
// the process, so that a result never goes stale.
template <class Compute>
Dim remembered(char op, const Dim& a, const Dim& b, Compute&& compute) {
  struct Slot {
    Dim a, b, result;
    char op = 0;
  };
  thread_local std::array<Slot, 256> slots;
  Slot& slot = slots[hash_mix(hash_mix(a.hash(), b.hash()), uint64_t(op)) % slots.size()];
  if (slot.op != op || !slot.a.same_as(a) || !slot.b.same_as(b)) {
    Dim result = compute();  // before the slot is touched: it may need others itself
    slot = {a, b, result, op};
  }
  return slot.result;
}

}  // namespace

Dim Dim::add(const Dim& a, const Dim& b, int64_t sign) {
  if (b.same_as(0)) return a;
  return remembered(sign < 0 ? '-' : '+', a, b, [&] {
    auto terms = a.terms();
    for (auto t : b.terms()) {
      t.coefficient *= sign;
      terms.push_back(std::move(t));
    }
    return from_terms(std::move(terms));
  });
}

Dim Dim::multiply(const Dim& a, const Dim& b) {
  if (b.same_as(1)) return a;
  return remembered('*', a, b, [&] {
    std::vector<DimTerm> terms;
    for (auto& x : a.terms())
      for (auto& y : b.terms()) {
        DimTerm t{x.coefficient * y.coefficient, x.factors};
        t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
        std::sort(t.factors.begin(), t.factors.end(), [](auto* p, auto* q) { return p->text < q->text; });
        terms.push_back(std::move(t));
      }
    return from_terms(std::move(terms));
  });
}

namespace {

int64_t floor_divide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// term / divisor when it divides exactly, coefficient 0 otherwise.
DimTerm divide_term(const DimTerm& term, const DimTerm& divisor) {
  if (term.coefficient % divisor.coefficient != 0) return {};
  DimTerm out{term.coefficient / divisor.coefficient, term.factors};
  for (auto* f : divisor.factors) {
    auto it = std::find(out.factors.begin(), out.factors.end(), f);
    if (it == out.factors.end()) return {};
    out.factors.erase(it);
  }
  return out;
}

}  // namespace

// Declared as friends, which take no visibility from their namespace.
SINTER_API Dim operator/(const Dim& a, const Dim& b) {
  if (b.is_number()) SINTER_INTERNAL_ASSERT(b.number() != 0, "a size is divided by zero");
  if (a.is_number() && b.is_number()) return floor_divide(a.value_, b.value_);
  if (b.is_number() && b.value_ == 1) return a;
  if (a.is_number() && a.value_ == 0) return 0;
  if (a.same_as(b)) return 1;
  return remembered('/', a, b, [&]() -> Dim {
    auto divisor = b.terms();
    if (divisor.size() == 1) {
      // (q*b + r) / b = q + r/b whatever the sign of r: split off the terms that divide.
      std::vector<DimTerm> quotient, rest;
      for (auto& t : a.terms()) {
        auto q = divide_term(t, divisor[0]);
        (q.coefficient ? quotient : rest).push_back(q.coefficient ? q : t);
      }
      if (!quotient.empty()) return Dim::from_terms(std::move(quotient)) + Dim::from_terms(std::move(rest)) / b;
    }
    return Dim::from_atom(
        detail::intern_atom(AtomKind::kFloorDiv, "((" + to_string(a) + ") / (" + to_string(b) + "))", a, b));
  });
}

SINTER_API Dim operator%(const Dim& a, const Dim& b) {
  if (b.is_number()) SINTER_INTERNAL_ASSERT(b.number() != 0, "a size is divided by zero");
  if (a.is_number() && b.is_number()) return a.value_ - floor_divide(a.value_, b.value_) * b.value_;
  if ((b.is_number() && b.value_ == 1) || a.same_as(b)) return 0;
  if (a.is_number() && a.value_ == 0) return 0;
  return remembered('%', a, b, [&]() -> Dim {
    auto divisor = b.terms();
    if (divisor.size() == 1) {
      std::vector<DimTerm> rest;
      for (auto& t : a.terms())
        if (!divide_term(t, divisor[0]).coefficient) rest.push_back(t);
      if (rest.size() != a.terms().size()) return Dim::from_terms(std::move(rest)) % b;
    }
    return Dim::from_atom(
        detail::intern_atom(AtomKind::kMod, "((" + to_string(a) + ") % (" + to_string(b) + "))", a, b));
  });
}

Dim max(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.is_number()) return difference.number() >= 0 ? a : b;
  return Dim::from_atom(detail::intern_atom(AtomKind::kMax, "max(" + to_string(a) + ", " + to_string(b) + ")", a, b));
}

Dim min(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.is_number()) return difference.number() <= 0 ? a : b;
  return Dim::from_atom(detail::intern_atom(AtomKind::kMin, "min(" + to_string(a) + ", " + to_string(b) + ")", a, b));
}

bool Dim::decide(DimCompare op, const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.is_number()) {
    int64_t d = difference.number();
    return op == DimCompare::kEqual ? d == 0 : op == DimCompare::kLess ? d < 0 : d <= 0;
  }
  if (auto* tracer = Tracer::current()) return tracer->decide(op, a, b);
  const char* sign = op == DimCompare::kEqual ? "==" : op == DimCompare::kLess ? "<" : "<=";
  throw_error(format("{} {} {} cannot be answered outside a capture: the sizes are symbolic", a, sign, b));
}

int64_t Dim::specialize(const void* return_address) const {
  auto* tracer = Tracer::current();
  check(tracer != nullptr, "the symbolic size {} has no value outside a capture", *this);
  return tracer->specialize(*this, nullptr, return_address);
}

int64_t Dim::to_int(const std::source_location& where) const {
  if (is_number()) return value_;
  auto* tracer = Tracer::current();
  check(tracer != nullptr, "the symbolic size {} has no value outside a capture", *this);
  return tracer->specialize(*this, &where, nullptr);
}

void Dim::fail_not_number() const { SINTER_INTERNAL_ASSERT(false, "size {} is symbolic where a number is needed", *this); }

uint64_t Dim::hash() const { return expr_ ? expr_->hash : hash_mix(uint64_t(value_), 77); }

Dim Dim::substitute(const std::function<Dim(const std::string&)>& value_of) const {
  if (is_number()) return *this;
  Dim out = 0;
  for (auto& t : expr_->terms) {
    Dim product = t.coefficient;
    for (auto* f : t.factors) {
      Dim factor;
      switch (f->kind) {
        case AtomKind::kSymbol: factor = value_of(f->text); break;
        case AtomKind::kFloorDiv: factor = f->a.substitute(value_of) / f->b.substitute(value_of); break;
        case AtomKind::kMod: factor = f->a.substitute(value_of) % f->b.substitute(value_of); break;
        case AtomKind::kMax: factor = max(f->a.substitute(value_of), f->b.substitute(value_of)); break;
        case AtomKind::kMin: factor = min(f->a.substitute(value_of), f->b.substitute(value_of)); break;
      }
      product = product * factor;
    }
    out = out + product;
  }
  return out;
}

namespace {

// Sums and products that stop at the ends of the range instead of wrapping.
constexpr int64_t kEnd = int64_t(1) << 62;
int64_t clamp_end(__int128 v) { return v > kEnd ? kEnd : v < -kEnd ? -kEnd : int64_t(v); }

Dim::Range times(const Dim::Range& a, const Dim::Range& b) {
  __int128 ends[] = {__int128(a.low) * b.low, __int128(a.low) * b.high, __int128(a.high) * b.low, __int128(a.high) * b.high};
  return {clamp_end(*std::min_element(ends, ends + 4)), clamp_end(*std::max_element(ends, ends + 4))};
}

Dim::Range atom_range(AtomKind kind, const Dim::Range& a, const Dim::Range& b) {
  switch (kind) {
    case AtomKind::kFloorDiv:
      if (b.low <= 0) return {-kEnd, kEnd};
      return {std::min(floor_divide(a.low, b.low), floor_divide(a.low, b.high)),
              std::max(floor_divide(a.high, b.low), floor_divide(a.high, b.high))};
    case AtomKind::kMod:
      return b.low > 0 ? Dim::Range{0, b.high - 1} : Dim::Range{-kEnd, kEnd};
    case AtomKind::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
  }
}

}  // namespace

Dim::Range Dim::range(const std::function<Range(const std::string&)>& range_of) const {
  if (is_number()) return {value_, value_};
  Range sum{0, 0};
  for (auto& t : expr_->terms) {
    Range product{t.coefficient, t.coefficient};
    for (auto* f : t.factors)
      product = times(product, f->kind == AtomKind::kSymbol
                                   ? range_of(f->text)
                                   : atom_range(f->kind, f->a.range(range_of), f->b.range(range_of)));
    sum = {clamp_end(__int128(sum.low) + product.low), clamp_end(__int128(sum.high) + product.high)};
  }
  return sum;
}

void DimProgram::compile(const Dim& dim, const std::function<int(const std::string&)>& place_of) {
  bool first_term = true;
  if (dim.is_number()) return steps_.push_back({Code::kNumber, dim.number()});
  for (auto& t : dim.terms()) {
    steps_.push_back({Code::kNumber, t.coefficient});
    for (auto* f : t.factors) {
      if (f->kind == AtomKind::kSymbol) {
        steps_.push_back({Code::kSymbol, place_of(f->text)});
      } else {
        compile(f->a, place_of);
        compile(f->b, place_of);
        steps_.push_back({f->kind == AtomKind::kFloorDiv ? Code::kFloorDiv
                          : f->kind == AtomKind::kMod    ? Code::kMod
                          : f->kind == AtomKind::kMax    ? Code::kMax
                                                         : Code::kMin,
                          0});
      }
      steps_.push_back({Code::kMultiply, 0});
    }
    if (!first_term) steps_.push_back({Code::kAdd, 0});
    first_term = false;
  }
}

int64_t DimProgram::operator()(const int64_t* symbols) const {
  SmallVector<int64_t, 16> stack;
  auto pop = [&] {
    int64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (auto& step : steps_) {
    if (step.code == Code::kNumber || step.code == Code::kSymbol) {
      stack.push_back(step.code == Code::kNumber ? step.value : symbols[step.value]);
      continue;
    }
    int64_t b = pop(), a = pop();
    switch (step.code) {
      case Code::kAdd: a += b; break;
      case Code::kMultiply: a *= b; break;
      case Code::kFloorDiv: a = b ? floor_divide(a, b) : 0; break;
      case Code::kMod: a = b ? a - floor_divide(a, b) * b : 0; break;
      case Code::kMax: a = std::max(a, b); break;
      default: a = std::min(a, b); break;
    }
    stack.push_back(a);
  }
  return stack.back();
}

namespace {

void collect_symbols(const std::vector<DimTerm>& terms, std::set<std::string>& out) {
  for (auto& t : terms)
    for (auto* f : t.factors) {
      if (f->kind == AtomKind::kSymbol) {
        out.insert(f->text);
      } else {
        for (auto& name : f->a.symbols()) out.insert(name);
        for (auto& name : f->b.symbols()) out.insert(name);
      }
    }
}

}  // namespace

std::vector<std::string> Dim::symbols() const {
  if (is_number()) return {};
  std::set<std::string> names;
  collect_symbols(expr_->terms, names);
  return {names.begin(), names.end()};
}

bool Dim::depends_on(const Dim& symbol) const {
  if (is_number() || symbol.is_number()) return false;
  for (auto& t : expr_->terms)
    for (auto* f : t.factors) {
      bool found = f->kind == AtomKind::kSymbol ? f->text == symbol.expr_->text : f->a.depends_on(symbol) || f->b.depends_on(symbol);
      if (found) return true;
    }
  return false;
}

std::optional<Dim> Dim::coefficient_of(const Dim& symbol) const {
  if (is_number()) return Dim(0);
  if (!depends_on(symbol)) return Dim(0);
  const std::string& name = symbol.expr_->text;
  std::vector<DimTerm> coefficient;
  for (auto& t : expr_->terms) {
    DimTerm rest{t.coefficient, {}};
    int power = 0;
    for (auto* f : t.factors) {
      if (f->kind == AtomKind::kSymbol) {
        if (f->text == name)
          ++power;
        else
          rest.factors.push_back(f);
      } else {
        if (f->a.depends_on(symbol) || f->b.depends_on(symbol)) return std::nullopt;
        rest.factors.push_back(f);
      }
    }
    if (power > 1) return std::nullopt;
    if (power == 1) coefficient.push_back(std::move(rest));
  }
  return from_terms(std::move(coefficient));
}

std::string Dim::text(const Visitor& visitor) const {
  if (is_number()) return std::to_string(value_);
  std::string out;
  for (size_t i = 0; i < expr_->terms.size(); ++i) {
    auto& t = expr_->terms[i];
    out += t.coefficient < 0 ? (i ? " - " : "-") : (i ? " + " : "");
    int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    bool printed = magnitude != 1 || t.factors.empty();
    if (printed) out += std::to_string(magnitude);
    for (auto* f : t.factors) {
      if (printed) out += "*";
      printed = true;
      if (f->kind == AtomKind::kSymbol) {
        out += visitor.symbol(f->text);
        continue;
      }
      const std::string& pattern = f->kind == AtomKind::kFloorDiv ? visitor.floor_div
                                   : f->kind == AtomKind::kMod    ? visitor.mod
                                   : f->kind == AtomKind::kMax    ? visitor.max
                                                                  : visitor.min;
      out += format(pattern, f->a.text(visitor), f->b.text(visitor));
    }
  }
  return out;
}

std::string to_string(const Dim& d) {
  static const Dim::Visitor plain{.floor_div = "(({}) / ({}))", .mod = "(({}) % ({}))"};
  return d.text(plain);
}

namespace {

// Recursive descent over what to_string writes.
struct DimParser {
  std::string_view text;
  size_t at = 0;
  int depth = 0;

  void skip() {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  bool eat(char c) {
    skip();
    if (at < text.size() && text[at] == c) return ++at, true;
    return false;
  }
  [[noreturn]] void fail() { throw_error(format("'{}' is not a size expression (at position {})", text, at)); }
  Dim sum() {
    Dim out = eat('-') ? -product() : product();
    for (;;) {
      if (eat('+'))
        out = out + product();
      else if (eat('-'))
        out = out - product();
      else
        return out;
    }
  }
  Dim product() {
    Dim out = atom();
    for (;;) {
      if (eat('*')) {
        out = out * atom();
      } else if (eat('/')) {
        Dim divisor = atom();
        if (divisor.same_as(0)) fail();
        out = out / divisor;
      } else if (eat('%')) {
        Dim divisor = atom();
        if (divisor.same_as(0)) fail();
        out = out % divisor;
      } else {
        return out;
      }
    }
  }
  Dim atom() {
    skip();
    if (++depth > 200) fail();  // hostile text must not exhaust the stack
    Dim out = primary();
    --depth;
    return out;
  }
  Dim primary() {
    if (eat('(')) {
      Dim out = sum();
      if (!eat(')')) fail();
      return out;
    }
    size_t begin = at;
    while (at < text.size() && (std::isalnum((unsigned char)text[at]) || text[at] == '_')) ++at;
    std::string word(text.substr(begin, at - begin));
    if (word.empty()) fail();
    if (std::isdigit((unsigned char)word[0])) {
      int64_t value = 0;
      auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || end != word.data() + word.size()) fail();
      return value;
    }
    if ((word == "max" || word == "min") && eat('(')) {
      Dim a = sum();
      if (!eat(',')) fail();
      Dim b = sum();
      if (!eat(')')) fail();
      return word == "max" ? max(a, b) : min(a, b);
    }
    return Dim::symbol(word);
  }
};

}  // namespace

Dim parse_dim(std::string_view text) {
  DimParser parser{text};
  Dim out = parser.sum();
  parser.skip();
  if (parser.at != text.size()) parser.fail();
  return out;
}

std::ostream& operator<<(std::ostream& out, const Dim& d) { return out << to_string(d); }

}  // namespace sinter
