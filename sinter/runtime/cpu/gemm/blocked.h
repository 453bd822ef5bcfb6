#pragma once
// The driver above the cores: chooses a path by shape and layout, blocks for the caches, splits among threads. Internal
// to gemm/.
#include <cstdint>

#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime::gemm_detail {

struct View {
  const void* data;
  int64_t row_stride, col_stride;
  Storage storage;
};

// One multiplication of a batch. `swapped`: C stands transposed to the caller's, which an epilogue must not see.
template <class T>
struct Problem {
  const GemmCore<T>* core;
  int64_t m, n, k;
  View a, b;           // b is not read when `packed` is given
  const void* packed;  // B in the layout of pack_b, elements of b.storage
  void* c;
  int64_t c_row_stride, c_col_stride;
  Storage c_storage;
  T alpha;
  bool accumulate;
  const Epilogue* epilogue;
  int64_t first_row;  // of this problem, as the epilogue counts rows
  bool swapped;
};

// Splits the work in up to `threads` at a time; m, n >= 1.
template <class T>
void multiply(Problem<T> problem, int threads);

// Packed B is a sequence of k blocks, each a sequence of panels of `core.panel` columns, each k-major and padded with
// zeros. The depth of a block follows from k alone.
template <class T>
int64_t packed_elements(const GemmCore<T>& core, int64_t k, int64_t n);
// Keeps b's element type.
template <class T>
void pack_whole(const GemmCore<T>& core, int64_t k, int64_t n, const View& b, void* dst);

// Memory of a thread, kept from call to call.
class Scratch {
 public:
  ~Scratch();
  void* reserve(int64_t bytes);  // aligned to 64; what was there before is lost

 private:
  void* data_ = nullptr;
  int64_t size_ = 0;
};

void* allocate_aligned(int64_t bytes);  // throws OutOfMemoryError; release with std::free

}  // namespace sinter::runtime::gemm_detail
