#pragma once
// Fast Fourier transforms of many lines on the CPU, of any length, by kernels compiled ahead of time per instruction set
// and chosen at run time.
//
// Lengths without a prime factor above 47 go by mixed radices, others by Bluestein's convolution of a chirp. Either lines
// are computed side by side, one in each lane of a vector, or a long line is taken as a matrix whose columns and rows are.
// Which way depends on the sizes and strides, so the last bits of a result may depend on how many lines are computed
// together, but never on the number of threads. Denormals count as zero. What a length needs, twiddle factors above all, is
// made at its first use and kept in a bounded cache, which all threads share.
#include <cstdint>

#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime {

// `outer` times `lines` lines of n >= 1 reals or complex numbers each (for real transforms n is the number of reals, and a
// line has n / 2 + 1 complex numbers). The number of all elements, spanned memory included, fits in int64_t. Without lines
// nothing is done.
struct FftShape {
  int64_t n;
  int64_t lines = 1, outer = 1;
};

// Where the lines lie. Strides count elements: reals where the elements are real, and pairs (re, im) where they are complex;
// they may be negative. Lines of an input may overlap one another, elements of an output may not. An output may lie in the
// memory of the input where each of its lines overlaps no other line of the input than its own.
template <class T>
struct FftSide {
  T* data;
  int64_t stride = 1, line_stride = 0, outer_stride = 0;
};

struct FftOptions {
  int sign = -1;      // of the exponent: out[k] = factor * sum over j of in[j] * exp(sign * 2 pi i j k / n)
  double factor = 1;  // the normalisation
  CpuIsa isa = best_cpu_isa();
};

// Complex to complex. T is float or double here and below.
template <class T>
void fft_c2c(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options);

// Real to complex: the first n / 2 + 1 results; the others are their conjugates.
template <class T>
void fft_r2c(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options);

// Complex to real: the input is the first n / 2 + 1 elements of a line whose others are their conjugates. The imaginary
// parts of the first and, where n is even, the last of them are not read. For the way back from fft_r2c the sign is +1.
template <class T>
void fft_c2r(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options);

}  // namespace sinter::runtime
