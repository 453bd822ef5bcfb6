#pragma once
// What one instruction set offers to products with encoded weights. Internal to gemm/.
#include <cstdint>

namespace sinter::runtime::gemm_detail {

inline constexpr int kCodeKinds = 4, kPanelColumns = 32;
inline constexpr int kEncodedRows = 6;  // of the largest kernel
// Codes along k of a call of a kernel: what integers sum of bytes meanwhile is exact in float.
inline constexpr int kCodeBlock = 512;

// Scales and zeros of groups, one a column of a panel, and bytes from a group's to the next one's.
struct GroupNumbers {
  const void* scale;
  int scale_storage;  // a Storage
  int64_t scale_step;
  const void* zero;  // null: `same` for all columns
  int zero_storage;
  int64_t zero_step;
  float same;

  void next() {
    scale = static_cast<const char*>(scale) + scale_step;
    if (zero) zero = static_cast<const char*>(zero) + zero_step;
  }
};

// C[rows, 32] (+)= A.B over codes of some groups, of `depth` codes each. Codes of a panel: 32 columns, four neighbours along k of
// a column in a word; of four bits eight, of which the first four are the low halves of its bytes.
struct EncodedArgs {
  int64_t groups, depth;  // depth is a multiple of 8; A is zero where there are no codes
  const uint8_t* codes;   // those of 8 bits as unsigned numbers, 128 added to them
  const float* table;
  GroupNumbers numbers;
  // Prepared: floats, or the high and behind them, `low` bytes apart, the low bytes of 16-bit integers.
  const void* a;
  int64_t a_row_stride, low;
  const float* a_scale;  // of each row here: what its integers are to be multiplied by
  int64_t a_scale_stride;
  const float* a_sum;  // of each row and group: the sum of its elements, or integers
  int64_t a_sum_stride;
  float* c;
  int64_t c_row_stride;
  bool accumulate;
};

// Rows [0, rows) of B, from a place that EncodedArgs could begin at, as a panel of B for the usual kernels: two vectors wide, of
// floats or of pairs of bf16.
struct ExpandArgs {
  int64_t rows;
  const uint8_t* codes;  // of the first column of the panel
  const float* table;
  GroupNumbers numbers;
  void* to;
  bool pairs;
};

struct EncodedCore {
  int max_rows;
  bool integers;  // A is prepared as integers
  // [kind][rows - 1]
  void (*rows[kCodeKinds][kEncodedRows])(const EncodedArgs&);
  // So many groups of a row of A, as integers of one scale; null: it stays as it is. Gives the scale, and their sum by group.
  void (*prepare)(const float* from, int64_t groups, int64_t depth, int8_t* high, int8_t* low, float* scale,
                  float* sum);
  void (*expand[kCodeKinds])(const ExpandArgs&);
};

// Kernels for halves of 16 bits where the machine multiplies bytes; null where the build has no support for it. Codes by a table
// have none.
const EncodedCore* avx512_vnni_encoded_core();

}  // namespace sinter::runtime::gemm_detail
