#pragma once
// Skinny matrix products on a GPU: 1 to 64 rows of activations with matrices so large that reading them is what counts.
#include <cstdint>
#include <string>
#include <vector>

#include "sinter/tensor/dtype.h"

namespace sinter::codegen {

// Known when the text is written, or in a slot of the kernel.
struct GemvNumber {
  int64_t value = 0;
  int slot = -1;
};

// How the work is divided. gemv_candidates gives those that make sense.
struct GemvTuning {
  int blocks = 0;
  int warps = 8;          // of a block
  int split_k = 1;        // warps of a block that divide the inner dimension between them; divides `warps`
  int rows_per_warp = 1;  // of each part, in one stage; on tensor cores a multiple of 16
  int unroll = 1;         // 16-byte loads of a lane for one row in one stage; on tensor cores pieces of 128 bytes of a row
  int stages = 4;         // of a warp, on their way at the same time
  bool tensor_cores = false;
  int cluster = 1;        // on tensor cores: blocks that divide the inner dimension between them
  bool bulk = false;      // rows arrive by bulk copies, on GPUs that have them
  int lanes = 0;          // weights stored [k, n]: lanes side by side along n

  bool operator==(const GemvTuning&) const = default;
};
std::string to_string(const GemvTuning& tuning);  // "132x8 split 8 rows 4 unroll 1 stages 6"

// c = a·b for a of m×k and each part's b of k×n, in f32. Weights (b) must not be written by the kernel before this
// one: they are read before it ends.
struct GemvSpec {
  struct Part {
    int64_t n = 0;
    int b_slot = -1;
    bool k_contiguous = true;  // stored [n, k]; else [k, n]. The same for all parts
    GemvNumber b_stride = {};       // in elements: between rows of what is stored
    // Finishes one element; empty: it is stored to c as it is. Slot i of the epilogue is slot epilogue_slot + i of the
    // kernel. Of parts that advance together the first has the epilogue of all.
    std::string epilogue = {};
    int epilogue_slot = 0;
    int c_slot = -1;
    GemvNumber c_stride = {};       // between rows
  };
  std::string name = {};
  DType a = kBFloat16, b = kBFloat16, c = kBFloat16;  // each bf16, f16 or f32
  int m = 1;
  int64_t k = 0;
  int slots = 0;  // of the kernel
  std::vector<Part> parts = {};
  bool together = true;  // parts of one shape, of which an epilogue sees the same element of each
  int a_slot = -1;
  GemvNumber a_stride = {};
  // Computes the rows of a into memory of the block, as its slot prologue_output; empty: a is at a_slot.
  // Its other slot i is slot prologue_slot + i of the kernel.
  std::string prologue = {};
  int prologue_slot = 0, prologue_output = -1;
  int64_t prologue_range = 0;  // how many rows, or elements of a map without rows, it computes
  int64_t prologue_stride = 0;  // between the rows it computes, in elements
  GemvTuning tuning = {};

  int64_t columns() const;  // that are finished: n of parts that advance together, else their sum
};

struct GemvText {
  std::string text;
  unsigned blocks = 1, threads = 32;
  unsigned shared_bytes = 0;
};

// How far apart rows of k elements, computed by a prologue, are to lie for tensor cores to read them without conflicts.
int64_t gemv_prologue_stride(int64_t k);

// A device, as far as these kernels care.
struct GemvDevice {
  int multiprocessors = 132;
  bool clusters = true;  // blocks may read each other's shared memory
};
// Whether there is a kernel for these types and sizes that needs at most so much shared memory a block.
bool gemv_fits(const GemvSpec& spec, int64_t shared_bytes);
// Ways to divide the work, the first being the default. `spec.tuning` is not looked at.
std::vector<GemvTuning> gemv_candidates(const GemvSpec& spec, const GemvDevice& device);
// The kernel `extern "C" void name(const Args<slots> a)`, to stand behind the prelude of CUDA kernels, gemv_prelude()
// and the texts of its prologue and epilogues:
//   template <class X> __device__ void prologue(const X& a, i64 begin, i64 end)   rows [begin, end), by all threads
//   template <class X> __device__ void epilogue(const X& a, const float* tiles, i64 row, i64 column)
// It may start before the kernel in front of it has ended, and lets the next one start early.
GemvText emit_gemv(const GemvSpec& spec);
const std::string& gemv_prelude();

}  // namespace sinter::codegen
