#pragma once
// CUDA text → kernels on a GPU: from memory, else from disk, else from NVRTC, which is loaded when it is first needed.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct CUfunc_st;

namespace sinter::runtime {

// Machine code (a cubin) of a text without includes for an architecture such as "sm_90" (or "sm_90a"). Needs no GPU.
// What does not compile is Refused, with NVRTC's diagnostics; `label` names the text in messages. Compiled code is kept
// on disk (CodeStore), where it is found without NVRTC. Any number of threads may compile at once.
std::string compile_cuda(const std::string& text, const std::string& label, const std::string& architecture);
// Why compile_cuda cannot work on this machine and what to install; empty when it can.
const std::string& nvrtc_problem();
// "13.0"; empty where there is none.
const std::string& nvrtc_version();
// The library that was found.
const std::string& nvrtc_file();

struct CudaCompileStats {
  int64_t compiles = 0, disk_hits = 0, memory_hits = 0;
  int64_t by_workers = 0;  // of the compiles
  double seconds = 0;      // in NVRTC, summed over threads
  // memory_hits counts kernels, the others programs.
};
CudaCompileStats cuda_compile_stats();

// A kernel that is loaded on a device, and keeps its code there.
class CudaFunction {
 public:
  CudaFunction() = default;
  CudaFunction(CUfunc_st* handle, std::shared_ptr<const void> code) : handle_(handle), code_(std::move(code)) {}
  explicit operator bool() const { return handle_ != nullptr; }
  CUfunc_st* handle() const { return handle_; }
  int registers() const;
  // Blocks of so many threads and bytes of dynamic shared memory that one multiprocessor holds at a time.
  int blocks_per_multiprocessor(int threads, int shared_bytes) const;

 private:
  CUfunc_st* handle_ = nullptr;
  std::shared_ptr<const void> code_;
};

// One kernel of a program: an extern "C" __global__ function and what only it needs. `shared_bytes`: the most dynamic
// shared memory it is launched with.
struct CudaSource {
  std::string name, text;
  int shared_bytes = 0;
};

// The kernels, in order. Those not loaded yet are compiled behind `prelude`, each as a program of its own and on all
// threads of the pool; kernels of the same name must have the same text. Refused where NVRTC does not compile one, or
// the driver does not load its code or give it the memory that it wants.
std::vector<CudaFunction> load_cuda(std::span<const CudaSource> sources, std::string_view prelude, int device);

struct CudaGrid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  // The kernel waits by itself for the one before it (griddepcontrol.wait), and may start while that still runs.
  bool overlaps_previous = false;
};

// Queues the kernel on this thread's stream; Refused where it wants more than a multiprocessor has. With
// SINTER_CUDA_SYNC=1 it also waits, so that a fault of the kernel is an Error that names it. `params` are the bytes of
// its one parameter, a struct by value (4 KB at most).
void cuda_launch(const CudaFunction& function, int device, const CudaGrid& grid, const void* params, size_t bytes);

}  // namespace sinter::runtime
