#pragma once
// What the programs that fuzzing has found compare, and on what.
#include "common.h"

namespace sinter {

inline void expect_same(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(got.impl().sizes, want.impl().sizes);
  EXPECT_EQ(got.impl().strides, want.impl().strides);
  EXPECT_TRUE(allclose(got.detach(), want.detach())) << got << "\ninstead of\n" << want;
}

inline Tensor ramp(const Shape& shape) { return (arange(shape.numel(), kFloat32) - 2.5).view(shape); }

// The same of every argument, eagerly and compiled: the result, and the argument afterwards.
template <class F>
void expect_same_calls(F f, const TensorList& arguments, CompileOptions options = {}) {
  auto compiled = compile(f, options);
  for (auto& argument : arguments) {
    Tensor x = argument.clone(), y = argument.clone();
    Tensor got = compiled(x), want = f(y);
    expect_same(got, want);
    expect_same(x, y);
    EXPECT_EQ(got.is_alias_of(x), want.is_alias_of(y)) << x.sizes();
  }
}

}  // namespace sinter
