#pragma once
// Complex numbers below the op call: pairs of real tensors. What an op does with complex operands stands in its struct as
// `on_complex`, told in ops on their real and imaginary parts:
//
//   static TensorList on_complex(const ComplexCall& c) { Parts x = c.parts(0); return {joined(x.re, -x.im)}; }
//   static constexpr auto on_complex = by_parts<>;   // each part by itself: add, flip, sum
//
// So gradients, passes and kernels know real numbers alone. An op without the member refuses complex operands.
#include "sinter/graph/op.h"

namespace sinter {

// A complex number in two: tensors, or plain numbers.
struct Parts {
  TensorArg re, im;
};

struct ComplexCall {
  const Op& op;
  std::span<const TensorArg> inputs;
  const Attrs& attrs;

  const TensorArg& operator[](int i) const { return inputs[size_t(i)]; }
  template <class A>
  const A& as() const { return attrs.as<A>(); }
  bool is_complex(int i) const { return sinter::is_complex(inputs[size_t(i)].dtype()); }
  // The floating dtype of the parts, by promotion of the operands.
  DType part_dtype() const;
  // Operand i in this dtype: its parts, of a real one with 0 as the imaginary part; and a real one as it is.
  Parts parts(int i) const;
  TensorArg real(int i) const;
  // Operand i as a complex tensor of that dtype.
  Tensor whole(int i) const;
};

// The complex tensor of these parts, broadcast to one shape. Not both are plain numbers.
Tensor joined(const TensorArg& re, const TensorArg& im);
inline Tensor joined(const Parts& parts) { return joined(parts.re, parts.im); }
// The complex tensor that looks at pairs along the last dimension; a copy where they do not lie side by side.
Tensor look_at_pairs(const Tensor& pairs);

// A tensor's place in memory, of a complex one as pairs: in elements of its parts.
struct RealGeometry {
  IntList sizes, strides;
  int64_t offset = 0;
};
RealGeometry real_geometry(const TensorImpl& tensor);
// The tensor that lies in the memory of `base` as `look` does; one of both may be complex, and the other of its parts.
Tensor look_at_memory(const Tensor& base, const TensorImpl& look);

// The size of the number, without overflow; its gradient at 0 is 0.
Tensor modulus(const TensorArg& re, const TensorArg& im);

// The op by itself on the real and on the imaginary parts of the operands `values`, which are made complex where they are real;
// the others (conditions, positions) are shared.
TensorList each_part(const ComplexCall& call, std::span<const int> values);
// As `on_complex` of an op: the named operands are the values, all where none is named.
template <int... kValues>
TensorList by_parts(const ComplexCall& call) {
  static constexpr std::initializer_list<int> values{kValues...};
  return each_part(call, {values.begin(), values.size()});
}

// Whether the call is one for `on_complex`.
inline bool has_complex(std::span<const TensorArg> inputs) {
  for (auto& arg : inputs) {
    const TensorImpl* body = arg.tensor().impl_ptr().get();
    if (body ? is_complex(body->dtype) : arg.scalar().is_complex()) return true;
  }
  return false;
}
// Runs or records what the op does with complex operands, or gives a complex result by its attributes. An Error where that has
// no meaning.
TensorList call_on_complex(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
// The same, written into a tensor.
void call_on_complex_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out);

}  // namespace sinter
