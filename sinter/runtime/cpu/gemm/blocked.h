#pragma once
// The driver above the cores: chooses a path by shape and layout, blocks for the caches, splits among threads. Internal
// to gemm/ and conv/.
#include <cstdint>
#include <span>

#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/runtime/cpu/gemm/scratch.h"

namespace sinter::runtime::gemm_detail {

struct View {
  const void* data;
  int64_t row_stride, col_stride;
  Storage storage;
};

// A B that is nowhere in memory. `pack` writes rows [row, row + rows) of its columns [col, col + cols) to dst, as
// pack_panel makes a panel; called from many threads at once.
struct PanelMaker {
  void (*pack)(const void* context, int64_t row, int64_t rows, int64_t col, int64_t cols, void* dst);
  const void* context;
};

// Where the kernels read B from: panels packed before the call, or by the call for all threads, or by each task just
// before their use; the operand itself, its columns adjacent; or the operand itself along k, by dot products.
enum class Supply : uint8_t { kPacked, kChunked, kFresh, kDirect, kDots };

// How a product is computed. Its depth, and whether it is by dots, by pairs or by tiles, decide the result's bits; the
// rest only the speed.
struct Plan {
  Supply supply = Supply::kDirect;
  bool direct_a = false;
  bool bf16 = false;     // both operands in pairs, by the kernels of Bf16Core
  bool tiles = false;    // and of these, by tile
  int width = 1;         // log2 of the vectors a micro kernel is wide
  int64_t max_rows = 1;  // of a micro kernel
  int64_t depth = 1;     // of a k block
  int64_t step = 1;      // columns of a unit of work

  bool operator==(const Plan&) const = default;
};

// What the kernels read in place of B: columns [begin, end), the first of them at `data`.
struct Source {
  const char* data = nullptr;
  Storage storage = kNative;
  int64_t begin = 0, end = 0;
  int64_t stride = 0;  // packed: panels in a k block; direct: elements between rows of B
};

// One product of a launch. `swapped`: C stands transposed to the caller's, which an epilogue must not see.
template <class T>
struct Problem {
  const GemmCore<T>* core;
  const Bf16Core* bf16;  // for products of two bf16; null where the machine has no such instructions
  int64_t m, n, k;
  View a, b;           // b is not read when `packed` is given
  const void* packed;  // B in the layout of pack_b, elements of b.storage
  void* c;             // null: not stored
  int64_t c_row_stride, c_col_stride;
  Storage c_storage;
  T alpha;
  bool accumulate;
  bool swapped;
  const PanelMaker* maker = nullptr;  // in place of b.data; b then is native with unit column stride
  // Filled in by the driver.
  Plan plan = {};
  Source source = {};
};

// The products of one A, which is equal in all of them.
template <class T>
struct Launch {
  std::span<Problem<T>> parts;
  bool together;  // parts walk in step; all of one n
  const JointEpilogue* epilogue;
  int64_t first_row;  // of the products, as the epilogue counts rows
};

// An epilogue of one product, as launches take it; the given one must outlive it.
inline JointEpilogue as_joint(const Epilogue& epilogue) {
  return {[](void* context, void* const* tiles, int64_t, int64_t row, int64_t col, int64_t rows, int64_t cols,
             int64_t stride) {
            const Epilogue& single = *static_cast<const Epilogue*>(context);
            single.function(single.context, tiles[0], row, col, rows, cols, stride);
          },
          const_cast<Epilogue*>(&epilogue)};
}

// Splits the work in up to `threads` at a time; m, n >= 1. The problems are left in an unspecified state.
template <class T>
void multiply(const Launch<T>& launch, int threads);

// Packed B is a sequence of k blocks, each a sequence of panels of `core.panel` columns, each k-major and padded with
// zeros. The depth of a block follows from k alone. Elements keep b's type, those of bf16 in pairs.
inline Storage packed_as(Storage b) { return b == kBFloat16 ? kPairs : b; }
template <class T>
int64_t packed_elements(const GemmCore<T>& core, int64_t k, int64_t n, Storage b);
template <class T>
void pack_whole(const GemmCore<T>& core, int64_t k, int64_t n, const View& b, void* dst);

}  // namespace sinter::runtime::gemm_detail
