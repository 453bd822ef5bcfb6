#pragma once
// In-place forms of ops: the result is written into a tensor that keeps its dtype and shape.
#include "sinter/base/function_ref.h"
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

// The method `name`, "add_" say, of `out`: stores there what the function of that name makes of it.
const Tensor& in_place(const Tensor& out, const char* name, const Where& where,
                       FunctionRef<Tensor(const TensorArg&)> function);

// An in-place method under way on this thread. The pointwise op of the function's own name writes into the tensor at once,
// without memory for a result.
class InPlaceCall {
 public:
  InPlaceCall(const Tensor& out, std::string_view function) : out_(out), function_(function), outer_(current_) {
    current_ = this;
  }
  ~InPlaceCall() { current_ = outer_; }
  InPlaceCall(const InPlaceCall&) = delete;

  // The tensor that the op shall write, once; null where it makes a result of its own.
  static const Tensor* take(const Op& op, std::span<const TensorArg> inputs) {
    return current_ ? current_->out_for(op, inputs) : nullptr;
  }

 private:
  const Tensor* out_for(const Op& op, std::span<const TensorArg> inputs);

  const Tensor& out_;
  std::string_view function_;  // without the underscore
  bool taken_ = false;
  InPlaceCall* outer_;
  static inline thread_local InPlaceCall* current_ = nullptr;
};

}  // namespace sinter
