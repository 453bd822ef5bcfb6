#pragma once
// Matrix products of many rows on the tensor cores of a GPU, finished by generated code while the sums are in registers.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sinter/tensor/dtype.h"

namespace sinter::codegen {

// How the work is divided. tile_candidates gives those that make sense.
struct TileTuning {
  bool hopper = false;  // warpgroups that multiply straight from shared memory
  int columns = 128;    // of a tile, which has 128 rows; of all parts that advance together
  int split = 1;        // blocks of a cluster that divide the inner dimension between them
  int stages = 3;       // of 64 elements of the inner dimension, on their way at the same time

  bool operator==(const TileTuning&) const = default;
};
std::string to_string(const TileTuning& tuning);  // "wgmma 128x224 stages 4"

// A device, as far as tiles care.
struct TileDevice {
  int major = 8, multiprocessors = 108;
  int64_t shared_bytes = 99 * 1024;  // that a block may have
};

// An image [batch, height, width, channels] and the filters [n, filter_height, filter_width, channels] over it: the left
// operand has a row for each place of the result and is never made. The inner dimension is that of a filter.
struct TileImage {
  int64_t channels = 0, height = 0, width = 0, result_height = 0, result_width = 0;
  int64_t filter_height = 1, filter_width = 1;
  int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
};

// c = a·b for a of m×k with contiguous rows and each part's b of k×n, summed up in f32. Everything but m is part of the text.
struct TileSpec {
  struct Part {
    int64_t n = 0;
    int b_slot = -1;
    int64_t b_stride = 0;  // in elements: between rows of what is stored
    // Finishes runs of `lanes` neighbours (KernelPart::kRun); empty: they are stored to c. Slot i of the epilogue is
    // slot epilogue_slot + i of the kernel. Of parts that advance together the first has the epilogue of all.
    std::string epilogue = {};
    int epilogue_slot = 0, lanes = 8;
    int c_slot = -1;
    int64_t c_stride = 0;  // between rows
  };
  std::string name = {};
  DType dtype = kBFloat16, c = kBFloat16;  // of both operands: bf16 or f16; of results: these or f32
  int64_t k = 0;
  int slots = 0;    // of the kernel
  int m_slot = -1;  // a number
  std::vector<Part> parts = {};
  bool together = false;     // parts of one shape, of which an epilogue sees the same element of each
  bool k_contiguous = true;  // b is stored [n, k]; else [k, n]
  int a_slot = -1;
  int64_t a_stride = 0;
  std::optional<TileImage> image = {};
  TileTuning tuning = {};
};

struct TileText {
  std::string text;
  unsigned threads = 256, shared_bytes = 0;
};

// Whether there is a kernel for these types and sizes. Operands at odd addresses are taken, only slower.
bool tile_fits(const TileSpec& spec, const TileDevice& device);
// Ways to divide the work of m rows, the one that should be the fastest first. `spec.tuning` is not looked at.
std::vector<TileTuning> tile_candidates(const TileSpec& spec, int64_t m, const TileDevice& device);
// Blocks to launch for m rows.
unsigned tile_blocks(const TileSpec& spec, int64_t m, const TileDevice& device);
// The kernel `extern "C" void name(const Args<slots> a)`, to stand behind the prelude of CUDA kernels and the texts of its
// epilogues. It waits for the kernel before it, and lets the next one start early.
TileText emit_tile(const TileSpec& spec);

// An epilogue, to be named in a part: c = relu(sums + residual + bias), each as far as there is one. c and the residual are
// row-major, all of one type.
struct TileChannels {
  DType dtype = kBFloat16;
  int64_t n = 0;
  int c_slot = -1, bias_slot = -1, residual_slot = -1;
  bool relu = false;
};
std::string emit_tile_channels(const TileChannels& channels, const std::string& name);

}  // namespace sinter::codegen
