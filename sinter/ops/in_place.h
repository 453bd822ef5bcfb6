#pragma once
// In-place forms of ops: the result is written into a tensor that keeps its dtype and shape.
#include "sinter/ops/define.h"

namespace sinter {

// An Error unless the result of the op may be stored in `out`: floats do not fit integers, nothing but bool fits bool,
// and the shape may not grow.
void check_in_place(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out);

template <class T>
const Tensor& call_in_place(const Tensor& out, std::initializer_list<TensorArg> inputs, const Attrs& attrs = {},
                            const char* function = __builtin_FUNCTION()) {
  const Where& where = inputs.begin()->where();
  UserPosition here(where, function);
  check_in_place(op_of<T>, {inputs.begin(), inputs.size()}, attrs, out);
  call_op_into(op_of<T>, {inputs.begin(), inputs.size()}, attrs, out, where);
  return out;
}

}  // namespace sinter
