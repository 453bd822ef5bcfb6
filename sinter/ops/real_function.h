#pragma once
// The struct of a real function of one operand whose scalar function is `function`: `derivative` is an expression of the operand x and
// the result y; further members follow, its tolerance among them.
#include "sinter/ops/define.h"

#define SINTER_REAL_OP(Struct, op_name, function, derivative, ...)    \
  struct Struct : Pointwise<Struct> {                                 \
    static constexpr auto name = op_name;                             \
    static constexpr Typing typing = Typing::kFloat;                  \
    SINTER_BODY((x), function(x))                                     \
    static TensorList grad(const GradCall& c) {                       \
      [[maybe_unused]] const TensorArg& x = c[0];                     \
      [[maybe_unused]] const Tensor& y = c.out();                     \
      return c.each([&] { return c.grad() * (derivative); });         \
    }                                                                 \
    __VA_ARGS__                                                       \
  };
