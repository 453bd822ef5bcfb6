#pragma once
// What one instruction set offers to Fourier transforms. Internal to fft/.
//
// A vector holds `lanes` numbers, which belong to as many transforms side by side. A block is n complex vectors, the real
// parts of an element before its imaginary ones. All transforms have the sign -1: the other is the conjugate of that of the
// conjugates.
#include <cstdint>

#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::runtime::fft_detail {

inline constexpr int64_t kMaxLanes = 16;
// The largest prime with a butterfly, which is a product with a matrix: beyond it a convolution costs less.
inline constexpr int64_t kMaxPrime = 47;

// Complex vectors, the real parts of element i at re + i * stride and the imaginary ones at im + i * stride. Without `im`
// they are pairs: lane after lane real and imaginary, at re + i * stride.
template <class T>
struct Vectors {
  T *re, *im;
  int64_t stride;

  operator Vectors<const T>() const { return {re, im, stride}; }
};

template <class T>
struct Factors {
  T re = 1, im = 1;
};

// One step of Stockham's algorithm. For j < groups, k < span and p, q < radix:
// out[k + span * (radix * j + p)] = w^(j p) * sum over q of in[k + span * (j + groups * q)] * exp(-2 pi i p q / radix)
template <class T>
struct StageArgs {
  Vectors<const T> in;
  Vectors<T> out;
  int64_t radix, span, groups;
  const T* twiddles;     // w^(j p) as (re, im) for p = 1 .. radix - 1, by j
  const T* matrix;       // by p and q up to radix / 2: cos and sin of 2 pi p q / radix; for radices without a butterfly
  Factors<T> of_input;   // where the input is pairs
  Factors<T> of_output;  // where the output is pairs
};
template <class T>
using Stage = void (*)(const StageArgs<T>& args);

// out[i] = in[i], its parts by factors; not from pairs to pairs.
template <class T>
struct MoveArgs {
  Vectors<const T> in;
  Vectors<T> out;
  int64_t count;
  Factors<T> factors;
};

// Lines to the lanes of a block or back. Line i begins at offsets[i], its elements are adjacent: pairs or reals, at least
// `lanes` numbers of them. Of a block the lanes from `lines` on hold anything. Imaginary parts of reals are zero.
template <class T>
struct RowArgs {
  T* rows;  // read alone by loads
  const int64_t* offsets;
  int64_t lines, n;
  T* block;
  Factors<T> factors;
};

// Columns of a matrix to the lanes of rows. `columns` holds a block for every `lanes` columns of `rows` elements; the rows
// from `first` on, as many as there are lanes, become the lanes of one block of n elements, element (row, column) times
// w^(row column).
template <class T>
struct TurnArgs {
  const T* columns;
  int64_t rows, n, first;
  const T* twiddles;  // of every element, in the order of `columns`; or of the first block alone, and
  const T* steps;     // where not null, those of each block's first column: as (re, im), by block and row
  T* block;
};

// out[i] = in[i] * by[i]; the coefficients are one a vector, or (`along`) one a lane, whole vectors of them.
template <class T>
struct MultiplyArgs {
  Vectors<const T> in;
  Vectors<T> out;
  int64_t count;  // of coefficients
  bool along;
  const T *by_re, *by_im;
  T in_sign, out_sign;  // of the imaginary parts
};

// out[k] = in[k] + conj(in[last - k]) + by[k] * (in[k] - conj(in[last - k])) for k < count: complex elements from those of
// the pairs of a real line, and back. With `along` the elements of a line are in lanes, and whole vectors are read.
template <class T>
struct CombineArgs {
  Vectors<const T> in;
  Vectors<T> out;
  int64_t count, last;
  bool along;
  const T *by_re, *by_im;
};

// Of a stage: which of its sides are pairs.
enum Variant { kPlain = 0, kPairsIn = 1, kPairsOut = 2, kVariants = 4 };

template <class T>
struct FftCore {
  int64_t lanes;
  // A variant of a radix, which is 2, 4, 8, 16 or odd and at most kMaxPrime; null where it has none. All have kPlain.
  Stage<T> (*stage)(int64_t radix, int variant);
  void (*move)(const MoveArgs<T>& args);
  void (*load_rows)(const RowArgs<T>& args);
  void (*store_rows)(const RowArgs<T>& args);
  void (*load_real_rows)(const RowArgs<T>& args);
  void (*store_real_rows)(const RowArgs<T>& args);
  void (*turn)(const TurnArgs<T>& args);
  void (*multiply)(const MultiplyArgs<T>& args);
  void (*combine)(const CombineArgs<T>& args);
};

// Those of an instruction set the compiler has no support for are null, those of another machine are not defined.
template <class T>
const FftCore<T>* scalar_core();
template <class T>
const FftCore<T>* avx2_core();
template <class T>
const FftCore<T>* avx512_core();

// The best one that `isa` allows.
template <class T>
const FftCore<T>& fft_core(CpuIsa isa);

}  // namespace sinter::runtime::fft_detail
