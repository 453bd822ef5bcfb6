#pragma once
// What one element of an op's result is, written once in index notation. The reference interpreter runs the definition
// with numbers, lowering runs it once with symbols: neither sees the other.
#include <initializer_list>
#include <span>

#include "sinter/base/api.h"
#include "sinter/graph/type.h"
#include "sinter/tensor/scalar.h"

namespace sinter SINTER_API {

class Attrs;
struct Op;

// The operands and attributes of one application of an op.
struct OpCall {
  const Op& op;
  std::span<const Type> inputs;
  const Attrs& attrs;

  template <class A>
  const A& as() const;
  const Shape& shape(int i) const { return inputs[size_t(i)].shape; }
  int64_t rank(int i) const { return inputs[size_t(i)].rank(); }
  // Message prefix.
  const char* name() const;
};

using Index = SmallVector<Dim, 8>;

inline constexpr int64_t kUnbounded = INT64_MAX;

// 0 <= value < extent, and value is a multiple of `multiple`.
struct Condition {
  Dim value;
  Dim extent = kUnbounded;
  int64_t multiple = 1;
};
using Conditions = SmallVector<Condition, 4>;

// A scalar under construction.
struct Elem {
  int id = -1;
};

class ElementBuilder {
 public:
  explicit ElementBuilder(const OpCall& c) : call(c) {}
  virtual ~ElementBuilder() = default;

  const OpCall& call;
  Index i;  // coordinates of the result
  Index k;  // coordinates of the reduction, one per extent the op gave

  // The element of an operand at these coordinates.
  virtual Elem load(int operand, const Index& at) = 0;
  // The same where all conditions hold, `otherwise` elsewhere: nothing outside is read.
  virtual Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) = 0;
  // An element of an integer operand used as a coordinate: counted from the end when negative, an Error outside [0, extent).
  virtual Dim load_index(int operand, const Index& at, const Dim& extent) = 0;
  virtual Elem select(const Conditions& conditions, Elem yes, Elem no) = 0;
  // A pointwise op applied to scalars of the given dtype.
  virtual Elem apply(const Op& pointwise, DType dtype, std::initializer_list<Elem> args) = 0;
  // A coordinate as an i64 value.
  virtual Elem number(const Dim& value) = 0;
  virtual Elem constant(const Scalar& value) = 0;
};

}  // namespace sinter
