#pragma once
// The discrete Fourier transforms that all others are made of, of f32 or f64. Complex numbers are pairs (re, im) in the last
// dimension of a real tensor. Dimensions are counted from the front, where that one does not count; the last of those named
// is the one along which a real tensor's transform has only its first half: the rest are conjugates.
#include <cstdint>

#include "sinter/graph/attrs.h"
#include "sinter/ops/registry.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// What results are divided by, n being the product of the sizes transformed.
enum class FourierNorm : int64_t { kNone = 0, kRootOfN = 1, kN = 2 };
// 1 over it.
double fourier_factor(int64_t norm, double n);

struct ComplexToComplexAttrs {
  IntList dims;
  int64_t norm = 0;
  bool forward = true;  // exponents are negative
  SINTER_FIELDS(dims, norm, forward)
};
struct RealToComplexAttrs {
  IntList dims;
  int64_t norm = 0;
  bool onesided = true;  // n / 2 + 1 elements, not n
  SINTER_FIELDS(dims, norm, onesided)
};
struct ComplexToRealAttrs {
  IntList dims;
  int64_t norm = 0;
  Dim last_size = 1;  // of the result, along the last of the dimensions
  SINTER_FIELDS(dims, norm, last_size)
};

namespace fourier {

// x[..., 2] → [..., 2].
Tensor complex_to_complex(const TensorArg& x, const IntList& dims, FourierNorm norm, bool forward);
// x[...] → [..., 2], forward.
Tensor real_to_complex(const TensorArg& x, const IntList& dims, FourierNorm norm, bool onesided);
// x[..., 2] → [...], backward: the other half of x is taken for conjugates, and what a real tensor's transform has no imaginary
// parts for is not looked at.
Tensor complex_to_real(const TensorArg& x, const IntList& dims, FourierNorm norm, const Dim& last_size);

}  // namespace fourier

}  // namespace sinter
