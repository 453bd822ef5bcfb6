#pragma once
// What passes, schedules and writers of kernels may know of a kind of device: facts, and nothing that runs. What a device does
// (memory, steps, launches) is asked of its engine, engine/device/device_engine.h.
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "sinter/tensor/dtype.h"

namespace sinter {

class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) bits_ |= uint32_t(1) << int(d);
  }
  constexpr bool contains(DType d) const { return bits_ >> int(d) & 1; }
  bool operator==(const DTypeSet&) const = default;

 private:
  uint32_t bits_ = 0;
};

struct Target {
  bool gpu = false;       // kernels are spread over blocks of threads
  int lane_width = 1;     // of a GPU: threads that run in step and exchange registers, a warp (32) or a wavefront (64)
  int block_threads = 1;  // the most threads that a block may have; at most the square of lane_width

  // --- ops that kernels by hand, or libraries, take whole; passes/target_kernels.h asks for them
  // Products of these dtypes run pointwise ops on each finished piece of their result.
  DTypeSet products = {};
  // Unless they have more rows than this; such a product ends in memory, but for what a library adds on the way. 0: any number.
  int64_t most_finished_rows = 0;
  // Such products with the transpose of what `dequantize` gives read the codes themselves.
  DTypeSet encoded_products = {};
  // These convolutions run pointwise ops on finished pieces, too.
  struct Convolutions {
    DTypeSet dtypes = {};
    size_t least_spatial = 1, most_spatial = 3;  // dimensions
    bool transposed = false, grouped = false;
    bool operator==(const Convolutions&) const = default;
  };
  Convolutions convolutions = {};
  // Rows of half-precision matrices are multiplied fast where they begin at multiples of so many bytes; 0: anywhere.
  int64_t product_alignment = 0;
  struct Attention {
    DTypeSet dtypes = {};  // of query, key and value
    DTypeSet masks = {};
    int64_t most_dimensions = 0;
    // Of query, key and value; 0: any, and it need not be known.
    int64_t largest_row = 0, largest_row_backward = 0;
    bool paged = false;  // keys and values may lie in pages (paged_attention)
    bool operator==(const Attention&) const = default;
  };
  Attention attention = {};

  bool operator==(const Target&) const = default;
};

// A GPU with so many lanes.
constexpr Target gpu_target(int lane_width) { return {.gpu = true, .lane_width = lane_width, .block_threads = 1024}; }

}  // namespace sinter
