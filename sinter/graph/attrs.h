#pragma once
// Attributes of a node: a plain struct with defaulted == whose fields are listed once, so that printing, parsing and
// hashing need no code per op.
//
//   struct SumAttrs {
//     IntList dims;
//     bool keepdim = false;
//     SINTER_FIELDS(dims, keepdim)
//   };
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/base/fields.h"
#include "sinter/base/intrusive_ptr.h"
#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"
#include "sinter/tensor/scalar.h"
#include "sinter/tensor/shape.h"

namespace sinter SINTER_API {

// --- one field as text and back. Texts never contain a top-level comma; lists are bracketed.
std::string field_text(bool v);
std::string field_text(int64_t v);
std::string field_text(double v);
std::string field_text(DType v);
std::string field_text(Device v);
std::string field_text(const Scalar& v);
std::string field_text(const Dim& v);
std::string field_text(const IntList& v);
std::string field_text(const Shape& v);
std::string field_text(const std::string& v);
void parse_field(std::string_view text, bool& out);
void parse_field(std::string_view text, int64_t& out);
void parse_field(std::string_view text, double& out);
void parse_field(std::string_view text, DType& out);
void parse_field(std::string_view text, Device& out);
void parse_field(std::string_view text, Scalar& out);
void parse_field(std::string_view text, Dim& out);
void parse_field(std::string_view text, IntList& out);
void parse_field(std::string_view text, Shape& out);
void parse_field(std::string_view text, std::string& out);
template <class T>
std::string field_text(const std::optional<T>& v) { return v ? field_text(*v) : "none"; }
template <class T>
void parse_field(std::string_view text, std::optional<T>& out) {
  if (text == "none") return out.reset();
  out.emplace();
  parse_field(text, *out);
}

inline bool field_equal(const Dim& a, const Dim& b) { return a.same_as(b); }
// Equal bits: NaN is itself, and -0.0 is not 0.0.
inline bool field_equal(double a, double b) { return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b); }
inline bool field_equal(const Shape& a, const Shape& b) { return a.same_as(b); }
template <class T>
bool field_equal(const T& a, const T& b) { return a == b; }
template <class T>
bool field_equal(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || field_equal(*a, *b));
}

// "name=text" pairs of one node, split by the graph parser.
using FieldTexts = std::vector<std::pair<std::string, std::string>>;

namespace detail {

using DimMap = std::function<Dim(const Dim&)>;
template <class T>
void map_field(const DimMap&, T&) {}
inline void map_field(const DimMap& map, Dim& field) { field = map(field); }
inline void map_field(const DimMap& map, Shape& field) {
  for (auto& d : field) d = map(d);
}
inline void map_field(const DimMap& map, std::optional<Dim>& field) {
  if (field) field = map(*field);
}

struct AttrsBase : RefCounted {
  virtual ~AttrsBase() = default;
  virtual IntrusivePtr<AttrsBase> map_dims(const DimMap& map) const = 0;
  virtual bool equals(const AttrsBase& other) const = 0;
  virtual std::string text() const = 0;
};

template <class A>
struct AttrsBox final : AttrsBase {
  A value;
  explicit AttrsBox(A v) : value(std::move(v)) {}
  IntrusivePtr<AttrsBase> map_dims(const DimMap& map) const override {
    auto copy = make_intrusive<AttrsBox>(value);
    copy->value.visit_fields([&](const char*, auto& field) { map_field(map, field); });
    return copy;
  }
  bool equals(const AttrsBase& other) const override {
    auto* box = dynamic_cast<const AttrsBox*>(&other);
    if (!box) return false;
    bool equal = true;
    value.visit_fields([&](const char*, const auto& a, const auto& b) { equal = equal && field_equal(a, b); }, box->value);
    return equal;
  }
  // Fields that differ from their defaults.
  std::string text() const override {
    std::string out;
    A defaults{};
    value.visit_fields(
        [&](const char* name, const auto& field, const auto& standard) {
          if (!field_equal(field, standard)) out += (out.empty() ? "" : ", ") + std::string(name) + "=" + field_text(field);
        },
        defaults);
    return out;
  }
};

}  // namespace detail

struct NoAttrs {
  template <class F>
  void visit_fields(F&&, const NoAttrs&) const {}
  template <class F>
  void visit_fields(F&&) {}
};

// Any attribute struct, immutable and shared. Empty for ops without attributes.
class Attrs {
 public:
  Attrs() = default;
  template <class A>
    requires requires(A& a) { a.visit_fields([](auto&&...) {}); }
  Attrs(A value) {
    if constexpr (!std::is_same_v<A, NoAttrs>) box_ = make_intrusive<detail::AttrsBox<A>>(std::move(value));
  }
  template <class A>
  const A& as() const {
    if constexpr (std::is_same_v<A, NoAttrs>) {
      static const NoAttrs none;
      return none;
    } else {
      SINTER_INTERNAL_ASSERT(box_, "the node carries no attributes");
      auto* box = dynamic_cast<const detail::AttrsBox<A>*>(box_.get());
      SINTER_INTERNAL_ASSERT(box, "the node carries attributes of another op");
      return box->value;
    }
  }
  bool empty() const { return !box_; }
  bool operator==(const Attrs& other) const {
    if (!box_ || !other.box_) return !box_ && !other.box_;
    return box_->equals(*other.box_);
  }
  // The same attributes with every size (a Dim, or the Dims of a Shape) replaced.
  Attrs map_dims(const std::function<Dim(const Dim&)>& map) const {
    Attrs out;
    if (box_) out.box_ = box_->map_dims(map);
    return out;
  }
  // "dims=[1], keepdim=true"; only what differs from the defaults.
  std::string text() const { return box_ ? box_->text() : std::string(); }
  // The same with the symbols of its sizes replaced.
  Attrs substitute(const std::function<Dim(const std::string&)>& value_of) const {
    return map_dims([&](const Dim& d) { return d.substitute(value_of); });
  }

 private:
  IntrusivePtr<detail::AttrsBase> box_;
};

// Reads a struct from its text; an Error names a field that the op does not have.
template <class A>
Attrs parse_attrs(const char* op, const FieldTexts& fields) {
  A value{};
  for (auto& [name, text] : fields) {
    bool known = false;
    value.visit_fields([&](const char* field_name, auto& field) {
      if (name == field_name) {
        parse_field(text, field);
        known = true;
      }
    });
    check(known, "{}: no attribute is called '{}'", op, name);
  }
  return Attrs(std::move(value));
}

}  // namespace sinter
