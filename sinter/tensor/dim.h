#pragma once
// Dim: a size that is a number or a symbolic expression such as `2*s0 + 1`. Index expressions of kernels are Dims too:
// loop variables are symbols like any other.
#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

class Dim;

namespace detail {

// A symbol or an indivisible function of two Dims. Interned: equal atoms are the same object, for the life of the process.
struct DimAtom;
// coefficient * product of atoms.
struct DimTerm;
// A sum of terms in a canonical order. Interned like the atoms.
struct DimExpr;

}  // namespace detail

enum class DimCompare : uint8_t { kEqual, kLess, kLessEqual };

class Dim {
 public:
  constexpr Dim() = default;
  template <std::integral T>
  constexpr Dim(T value) : value_(int64_t(value)) {}

  // The symbol of this name: the same Dim every time. Names are C identifiers.
  static Dim symbol(std::string_view name);

  constexpr bool is_number() const { return expr_ == nullptr; }
  // The number; an internal error when symbolic.
  int64_t number() const {
    if (expr_) [[unlikely]]
      fail_not_number();
    return value_;
  }
  // Using a symbolic size as a number specialises the graph being captured to its present value.
  operator int64_t() const { return is_number() ? value_ : specialize(__builtin_return_address(0)); }
  int64_t to_int(const std::source_location& where = std::source_location::current()) const;

  friend Dim operator+(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ + b.value_;
    return add(a, b, 1);
  }
  friend Dim operator-(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ - b.value_;
    return add(a, b, -1);
  }
  friend Dim operator*(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ * b.value_;
    return multiply(a, b);
  }
  // Division and remainder round toward minus infinity, as index arithmetic wants.
  friend Dim operator/(const Dim& a, const Dim& b);
  friend Dim operator%(const Dim& a, const Dim& b);
  Dim operator-() const { return Dim(0) - *this; }
  Dim& operator+=(const Dim& b) { return *this = *this + b; }
  Dim& operator-=(const Dim& b) { return *this = *this - b; }
  Dim& operator++() { return *this += Dim(1); }
  Dim& operator--() { return *this -= Dim(1); }
  Dim operator++(int) {
    Dim before = *this;
    ++*this;
    return before;
  }
  Dim operator--(int) {
    Dim before = *this;
    --*this;
    return before;
  }
  Dim& operator*=(const Dim& b) { return *this = *this * b; }

  // A comparison that the structure does not answer asks the current Tracer; the answer becomes a guard.
  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ == b.value_;
    return decide(DimCompare::kEqual, a, b);
  }
  friend bool operator<(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ < b.value_;
    return decide(DimCompare::kLess, a, b);
  }
  friend bool operator<=(const Dim& a, const Dim& b) {
    if (a.is_number() && b.is_number()) return a.value_ <= b.value_;
    return decide(DimCompare::kLessEqual, a, b);
  }
  friend bool operator>(const Dim& a, const Dim& b) { return b < a; }
  friend bool operator>=(const Dim& a, const Dim& b) { return b <= a; }

  // Structural identity: never asks. Canonical forms make equal expressions identical.
  bool same_as(const Dim& other) const { return value_ == other.value_ && expr_ == other.expr_; }
  uint64_t hash() const;

  // The expression with each symbol replaced by what `value_of(name)` gives.
  Dim substitute(const std::function<Dim(const std::string&)>& value_of) const;
  // What the symbol is multiplied by when the expression is linear in it (a stride, perhaps symbolic); nothing when not.
  std::optional<Dim> coefficient_of(const Dim& symbol) const;
  bool depends_on(const Dim& symbol) const;
  // Names of the symbols in it, in text order, each once.
  std::vector<std::string> symbols() const;
  // The least and greatest value, given those of the symbols; wide where nothing better is known.
  struct Range {
    int64_t low, high;
  };
  Range range(const std::function<Range(const std::string&)>& range_of) const;
  // Rebuilds the expression through callbacks: how the code generator and the packer read it.
  struct Visitor;
  std::string text(const Visitor& visitor) const;

 private:
  static Dim add(const Dim& a, const Dim& b, int64_t sign);
  static Dim multiply(const Dim& a, const Dim& b);
  static bool decide(DimCompare op, const Dim& a, const Dim& b);
  int64_t specialize(const void* return_address) const;
  [[noreturn]] void fail_not_number() const;
  static Dim from_terms(std::vector<detail::DimTerm> terms);
  static Dim from_atom(const detail::DimAtom* atom);
  std::vector<detail::DimTerm> terms() const;

  int64_t value_ = 0;
  const detail::DimExpr* expr_ = nullptr;

  friend struct detail::DimAtom;
  friend class DimProgram;
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
};

// How to print the two-operand functions of a Dim; sums and products print as such.
struct Dim::Visitor {
  std::function<std::string(const std::string& name)> symbol = [](const std::string& n) { return n; };
  std::string floor_div = "({} / {})", mod = "({} % {})", max = "max({}, {})", min = "min({}, {})";
};

Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);

// The mixed forms are needed because Dim converts both from and to the integers.
#define SINTER_DIM_MIXED(op, result)                                                          \
  template <std::integral T>                                                                  \
  inline result operator op(const Dim& a, T b) { return a op Dim(b); }                        \
  template <std::integral T>                                                                  \
  inline result operator op(T a, const Dim& b) { return Dim(a) op b; }
SINTER_DIM_MIXED(+, Dim)
SINTER_DIM_MIXED(-, Dim)
SINTER_DIM_MIXED(*, Dim)
SINTER_DIM_MIXED(/, Dim)
SINTER_DIM_MIXED(%, Dim)
SINTER_DIM_MIXED(<, bool)
SINTER_DIM_MIXED(<=, bool)
SINTER_DIM_MIXED(>, bool)
SINTER_DIM_MIXED(>=, bool)
#undef SINTER_DIM_MIXED
template <std::integral T>
inline bool operator==(const Dim& a, T b) { return a == Dim(b); }

// A Dim ready to be evaluated many times: symbols are places in an array.
class DimProgram {
 public:
  DimProgram() = default;
  // `place_of` gives the place of a symbol.
  DimProgram(const Dim& dim, const std::function<int(const std::string&)>& place_of) { compile(dim, place_of); }
  int64_t operator()(const int64_t* symbols) const;

 private:
  enum class Code : uint8_t { kNumber, kSymbol, kAdd, kMultiply, kFloorDiv, kMod, kMax, kMin };
  struct Step {
    Code code;
    int64_t value;
  };
  void compile(const Dim& dim, const std::function<int(const std::string&)>& place_of);

  std::vector<Step> steps_;  // postfix
};

std::string to_string(const Dim& d);
std::ostream& operator<<(std::ostream& out, const Dim& d);
// Reads what to_string writes; an Error names what was not understood.
Dim parse_dim(std::string_view text);

}  // namespace sinter
