#pragma once
// The members of plain structs, listed once: for attributes of ops and arguments of compiled functions (SINTER_FIELDS), and
// as options that are set by name (SINTER_OPTION), some of them to LibTorch's words (Word).
#include <concepts>
#include <string>

#include "sinter/base/api.h"

// SINTER_FIELDS(hidden, mask) inside a struct lists its fields, in order.
#define SINTER_FIELDS(...)                                                                               \
  template <class F>                                                                                     \
  void visit_fields(F&& visit_) { SINTER_FOR_EACH(SINTER_VISIT_FIELD, __VA_ARGS__) }                     \
  template <class F>                                                                                     \
  void visit_fields(F&& visit_, const auto& other_) const { SINTER_FOR_EACH(SINTER_VISIT_TWO, __VA_ARGS__) }
#define SINTER_VISIT_FIELD(field) visit_(#field, field);
#define SINTER_VISIT_TWO(field) visit_(#field, field, other_.field);

// SINTER_FOR_EACH(M, a, b, c) → M(a) M(b) M(c), for up to 12 arguments.
#define SINTER_FOR_EACH(m, ...) SINTER_PICK_FOR(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(m, __VA_ARGS__)
#define SINTER_PICK_FOR(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) SINTER_FOR_##n
#define SINTER_FOR_1(m, a) m(a)
#define SINTER_FOR_2(m, a, ...) m(a) SINTER_FOR_1(m, __VA_ARGS__)
#define SINTER_FOR_3(m, a, ...) m(a) SINTER_FOR_2(m, __VA_ARGS__)
#define SINTER_FOR_4(m, a, ...) m(a) SINTER_FOR_3(m, __VA_ARGS__)
#define SINTER_FOR_5(m, a, ...) m(a) SINTER_FOR_4(m, __VA_ARGS__)
#define SINTER_FOR_6(m, a, ...) m(a) SINTER_FOR_5(m, __VA_ARGS__)
#define SINTER_FOR_7(m, a, ...) m(a) SINTER_FOR_6(m, __VA_ARGS__)
#define SINTER_FOR_8(m, a, ...) m(a) SINTER_FOR_7(m, __VA_ARGS__)
#define SINTER_FOR_9(m, a, ...) m(a) SINTER_FOR_8(m, __VA_ARGS__)
#define SINTER_FOR_10(m, a, ...) m(a) SINTER_FOR_9(m, __VA_ARGS__)
#define SINTER_FOR_11(m, a, ...) m(a) SINTER_FOR_10(m, __VA_ARGS__)
#define SINTER_FOR_12(m, a, ...) m(a) SINTER_FOR_11(m, __VA_ARGS__)

// SINTER_OPTION(bool, bias) = true; inside a struct of options declares the value with its default, `bias()` to read it
// and `bias(false)` to set it, which gives the options again: Conv2dOptions(3, 8, 3).stride(2).padding(1).

#define SINTER_OPTION(type, name)              \
 public:                                       \
  const type& name() const { return name##_; } \
  auto& name(const type& value) {              \
    name##_ = value;                           \
    return *this;                              \
  }                                            \
                                               \
 private:                                      \
  type name##_

namespace sinter SINTER_API {
namespace nn {

// One of LibTorch's words for modes, kBilinear or kMean. It stands for the value of that name in each of these enums.
template <auto... kMeanings>
struct Word {
  template <class E>
    requires((std::same_as<E, decltype(kMeanings)> || ...))
  constexpr operator E() const {
    E meaning{};
    ((void)[&] {
      if constexpr (std::same_as<E, decltype(kMeanings)>) meaning = kMeanings;
    }(), ...);
    return meaning;
  }
};

// A word that also stands for a text.
template <class W>
struct TextWord : W {
  const char* text;
  operator std::string() const { return text; }
};

}  // namespace nn
}  // namespace sinter
