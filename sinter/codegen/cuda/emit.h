#pragma once
// The CUDA dialect: LoopNest and FusedNest → CUDA text without headers, against the prelude in this folder.
//
// A kernel is a struct in namespace k with one function, run, templated on the type A of its arguments: a[i] is slot i. Slots
// are those of the CPU dialect: one per operand (a pointer, or a number as the bits of a double or i64), one per params(),
// and last a pointer to an error cell (1, the index, the extent where one is out of range). Around it stands
//   extern "C" __global__ void NAME(const __grid_constant__ Args<slots> a)
// whose parameter is k::Args of cuda_kernel.embed: u64 indirect[2]; const i64* block; i64 range; i64 slot[slots].
#include <string>
#include <vector>

#include "sinter/loops/fused.h"
#include "sinter/loops/loop_nest.h"

namespace sinter::codegen {

// How a kernel's work is spread over the device; geometry.h turns it into blocks and threads.
enum class CudaSpread : uint8_t {
  kElements,  // a thread takes `lanes` neighbours of the range at a time
  kPoints,    // a thread takes a point of the range at a time, all of its work
  kRows,      // neighbouring threads share a point of the range (a row)
  kColumns,   // neighbouring threads have neighbouring points; threads above each other share one
  kTiles      // a block of 32 × 8 takes a square of 32 × 32 elements at a time, and turns what does not lie along the last axis
};

struct CudaKernelText {
  std::string name;
  std::string text;     // the kernel, to stand behind cuda_prelude()
  std::string members;  // what is inside its struct
  int slots = 0;
  int lanes = 1;        // elements that a thread takes at a time
  CudaSpread spread = CudaSpread::kElements;
  // Of kRows: memory runs along the row, so that several threads should share it even if there are many rows.
  bool along = false;
  int most = 512;       // threads of a block
  // How many steps there are, and how many elements a step of kRows or kColumns (squares, of kTiles) has.
  Dim range = 1, work = 1;
};

struct CudaEmitOptions {
  bool lanes = true;  // vectors of neighbours where they fit; better without when there are few elements
  bool wide = false;  // positions need 64 bits: some operand, or the range, reaches 2^30 elements
  // Of a map: an axis (counted as they are nested) along which operands lie that stride along the last one, although the
  // nest does not say so. Where a stride is known to be 1 the axis is found without.
  int turn = -1;
  // Of rows with several sweeps: so many vectors of what more than one of them loads stay in a thread's registers; the rest
  // of a longer row is loaded again. cuda_geometry tells how many a thread gets.
  int keep = 0;
};

CudaKernelText emit_cuda(const LoopNest& nest, const std::string& name, CudaEmitOptions options = {});
// Without `tiles`.
CudaKernelText emit_cuda(const FusedNest& nest, const std::string& name, CudaEmitOptions options = {});

// A kernel's rows as part of another one:
//   template <class A> __device__ void NAME(const A& a, i64 begin, i64 end)
// in which all threads of the block (a multiple of 32) work on rows [begin, end) together, of a map without rows on these
// elements. It ends without waiting for the other threads.
CudaKernelText emit_cuda_rows(const FusedNest& nest, const std::string& name, CudaEmitOptions options = {});

// An epilogue (a nest with `tiles`) as part of a contraction:
//   template <class A, class T> __device__ void NAME(const A& a, const T* tiles, i64 row, i64 col)
// finishes one element; tiles[i] is that of contraction i. All outputs go to memory.
CudaKernelText emit_cuda_epilogue(const FusedNest& nest, const std::string& name, CudaEmitOptions options = {});
// The same of a run of neighbours, as many as `lanes` of the text says and the row has:
//   NAME_run::finish_(const A& a, const float* tiles, int apart, i64 row, i64 col)
// Their tiles lie side by side, 16-byte aligned, those of the next contraction `apart` behind; `col` is a multiple of `lanes`.
CudaKernelText emit_cuda_epilogue_run(const FusedNest& nest, const std::string& name, CudaEmitOptions options = {});
// The same on results in memory, as a kernel by itself. Behind the error cell there are two more slots a contraction: the
// address of its result, and how many elements its rows are apart. An output may lie where the result lies.
CudaKernelText emit_cuda_epilogue(const FusedNest& nest, DType memory, const std::string& name, CudaEmitOptions options = {});

// Several kernels in one launch of blocks of kSiblingThreads threads. Slots, one kernel after the other: its blocks, its
// range, how many neighbouring threads are one row (threads[0] of its geometry), then its own. Of kTiles there may be none.
constexpr int kSiblingThreads = 256;
constexpr int kSiblingSlots = 3;
CudaKernelText emit_cuda_siblings(const std::vector<CudaKernelText>& kernels, const std::string& name);

// The text that every program of kernels starts with.
const std::string& cuda_prelude();

}  // namespace sinter::codegen
