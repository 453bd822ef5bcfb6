#pragma once
// Kernels for GPUs: a scheduled LoopNest → text in the C++ of CUDA and HIP without headers, against the prelude beside it.
//
// A kernel is a struct in namespace k with one function, run, templated on the type A of its arguments: a[i] is slot i. Slots
// are those of the CPU dialect: one per operand (a pointer, or a number as the bits of a double or i64), one per parameter of
// the nest, and last a pointer to an error cell (1, the index, the extent where one is out of range). Around it stands
//   extern "C" __global__ void NAME(const __grid_constant__ Args<slots> a)
// whose parameter is k::Args of gpu_kernel.embed: u64 indirect[2]; const i64* block; i64 range; i64 slot[slots].
#include <string>
#include <vector>

#include "sinter/loops/schedule.h"

namespace sinter::codegen {

struct GpuKernelText {
  std::string name;
  std::string text;     // the kernel, to stand behind the prelude
  std::string members;  // what is inside its struct
  int slots = 0;
  // Of the schedule, for gpu_geometry.
  int lanes = 1;
  Spread spread = Spread::kElements;
  bool along = false;
  int most = 512;
  int warp = 32;
  // How many steps there are, and how many elements a step of kRows or kColumns (squares, of kTiles) has.
  Dim range = 1, work = 1;
};

// The part of a program that the schedule names:
//
// a kernel. A nest with `tiles` works on results in memory: behind the error cell there are two more slots a contraction, the
// address of its result, and how many elements its rows are apart. An output may lie where the result lies.
//
// rows of another kernel:
//   template <class A> __device__ void NAME(const A& a, i64 begin, i64 end)
// in which all threads of the block (whole warps) work on rows [begin, end) together, of a map without rows on these
// elements. It ends without waiting for the other threads.
//
// an element of a contraction (of a nest with `tiles`):
//   template <class A, class T> __device__ void NAME(const A& a, const T* tiles, i64 row, i64 col)
// finishes one element; tiles[i] is that of contraction i. All outputs go to memory.
//
// a run of neighbours, as many as `lanes` of the text says and the row has:
//   NAME_run::finish_(const A& a, const float* tiles, int apart, i64 row, i64 col)
// Their tiles lie side by side, 16-byte aligned, those of the next contraction `apart` behind; `col` is a multiple of `lanes`.
GpuKernelText emit_gpu(const LoopNest& nest, const Schedule& schedule, const std::string& name);

// Several kernels in one launch of blocks of kSiblingThreads threads. Slots, one kernel after the other: its blocks, its
// range, how many neighbouring threads are one row (threads[0] of its geometry), then its own. Of kTiles there may be none.
constexpr int kSiblingThreads = 256;
constexpr int kSiblingSlots = 3;
GpuKernelText emit_gpu_siblings(const std::vector<GpuKernelText>& kernels, const std::string& name);

// What every program of kernels starts with, around what the device's compiler spells its own way (see gpu_types.embed).
std::string gpu_prelude(const Target& target, std::string_view dialect);

}  // namespace sinter::codegen
