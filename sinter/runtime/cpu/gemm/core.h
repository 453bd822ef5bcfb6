#pragma once
// What one instruction set offers to the blocked driver: a table of small kernels. Internal to gemm/
// and attention/.
#include <cstdint>

namespace sinter::runtime {
enum class CpuIsa;
}

namespace sinter::runtime::gemm_detail {

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

// Two bf16 that follow each other along k, the first one in the low half.
struct Pair {
  uint32_t bits;
};

// Position in the kernel tables. kNative is the compute type itself: float or double. kPairs exists in packed panels
// only: rows 2p and 2p + 1 of a bf16 B interleaved, a row of zeros after an odd last one.
enum Storage : int { kNative = 0, kBFloat16 = 1, kHalf = 2, kPairs = 3 };
inline constexpr int kStorages = 4, kMaxRows = 14, kMaxDotRows = 8, kWidths = 4;

// C[rows, cols] = alpha * A.B (+ C): A by any strides, B with unit column stride, C with unit column stride.
template <class T>
struct MicroArgs {
  int64_t k;
  const T* a;
  int64_t a_row_stride, a_k_stride;
  const void* b;
  int64_t b_k_stride;
  int64_t b_ahead;  // elements from a row of b to what is to be prefetched beside it
  T* c;
  int64_t c_row_stride;
  int64_t cols;  // within the last vector of the kernel's width
  T alpha;
  bool accumulate;
};

// The same by dot products: A and B both have unit stride along k.
template <class T>
struct DotArgs {
  int64_t k;
  const T* a;
  int64_t a_row_stride;
  const void* b;
  int64_t b_col_stride;
  T* c;
  int64_t c_row_stride;
  int64_t cols;
  T alpha;
  bool accumulate;
};

struct EncodedCore;

template <class T>
struct GemmCore {
  int lanes;        // elements of a vector
  int panel;        // columns of a panel of packed B: two vectors
  int max_rows;     // rows of the largest micro kernel on kNative
  int max_rows_16;  // and on 16-bit B
  int max_rows_pairs;
  // [storage of B][rows - 1][log2 of the width in vectors]; null where the registers do not suffice.
  void (*micro[kStorages][kMaxRows][kWidths])(const MicroArgs<T>&);
  // [storage of B][rows - 1]
  void (*dot[kStorages][kMaxDotRows])(const DotArgs<T>&);
  // dst[i * dst_stride + j] = src[i * row_stride + j * col_stride]
  void (*load)(const void* src, Storage, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols, T* dst,
               int64_t dst_stride);
  // dst[i * row_stride + j * col_stride] = src[i * src_stride + j], rounded to nearest even
  void (*store)(const T* src, int64_t src_stride, int64_t rows, int64_t cols, void* dst, Storage, int64_t row_stride,
                int64_t col_stride);
  // One panel: dst[p * panel + j] = src(p, j) for p < k, j < cols, zero for cols <= j < panel.
  void (*pack_panel)(const void* src, Storage, int64_t row_stride, int64_t col_stride, int64_t k, int64_t cols, T* dst);
  // One panel of pairs, ceil(k / 2) rows of them, from bf16. Null for double.
  void (*pack_pairs)(const void* src, int64_t row_stride, int64_t col_stride, int64_t k, int64_t cols, void* dst);
  const EncodedCore* encoded;  // for weights of few bits; null for double
};

// Products of bf16 by bf16 with sums in float, by instructions that take pairs: `a` and `b` of the arguments point to
// Pairs, and strides and k count them.
// Up to kMaxTileRows rows by a whole panel of two vectors, of which `cols` are stored.
using TileKernel = void (*)(const MicroArgs<float>&, int64_t rows);
inline constexpr int kMaxTileRows = 32;

struct Bf16Core {
  int max_rows;
  TileKernel tile;  // for products of many rows, where the machine has tile registers; else null
  void (*micro[kMaxRows][kWidths])(const MicroArgs<float>&);
  void (*dot[kMaxDotRows])(const DotArgs<float>&);
};

// The tables; those of an instruction set the compiler has no support for are null, those of another machine are not
// defined.
const GemmCore<float>* scalar_core_f32();
const GemmCore<double>* scalar_core_f64();
const GemmCore<float>* neon_core_f32();
const GemmCore<double>* neon_core_f64();
const GemmCore<float>* avx2_core_f32();
const GemmCore<double>* avx2_core_f64();
const GemmCore<float>* avx512_core_f32();
const GemmCore<double>* avx512_core_f64();
const Bf16Core* avx512_bf16_core();
TileKernel amx_tile_kernel();

// The one for `isa`, null where this build has none.
const GemmCore<float>* core_f32(CpuIsa isa);
const GemmCore<double>* core_f64(CpuIsa isa);

}  // namespace sinter::runtime::gemm_detail
