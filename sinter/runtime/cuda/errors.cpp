#include "sinter/runtime/cuda/errors.h"

#include "sinter/base/fault.h"
#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace sinter::runtime {

namespace {

// Four words, so that no cell crosses a line of memory; ops beyond the number of cells share the last.
constexpr int kCells = 2048, kWords = 4;

struct Cells {
  std::mutex mutex;
  int64_t* host = nullptr;
  CUdeviceptr device = 0;
  std::map<std::string, int> by_ops;
  std::atomic<int> count{0};
  const std::string* ops[kCells] = {};  // keys of by_ops
};

Cells& cells_of(int device) {
  static auto* all = new Cells[64];
  return all[cuda_device(device).index];
}

void make_cells(Cells& cells, int device) {
  CudaDeviceGuard guard(device);
  RelaxedCapture relaxed;
  void* host = nullptr;
  check_driver(driver().cuMemHostAlloc(&host, sizeof(int64_t) * kWords * kCells,
                                       CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
               "page-locked memory for the reports of kernels");
  check_driver(driver().cuMemHostGetDevicePointer(&cells.device, host, 0), "the device's address of host memory");
  cells.host = static_cast<int64_t*>(host);
  std::fill_n(cells.host, kWords * kCells, 0);
}

}  // namespace

int64_t cuda_error_cell(int device, const std::string& ops) {
  Cells& cells = cells_of(device);
  std::lock_guard lock(cells.mutex);
  if (!cells.host) make_cells(cells, device);
  int next = std::min(cells.count.load(), kCells - 1);
  auto [found, fresh] = cells.by_ops.try_emplace(ops, next);
  static const std::string& kSeveral = *new std::string("one of many ops");
  if (fresh) {
    cells.ops[next] = cells.count < kCells ? &found->first : &kSeveral;
    cells.count = next + 1;
  }
  return int64_t(cells.device) + found->second * kWords * int64_t(sizeof(int64_t));
}

void check_cuda_errors(int device) {
  Cells& cells = cells_of(device);
  int count = cells.count.load(std::memory_order_acquire);
  int first = 0;
  while (first < count && !std::atomic_ref(cells.host[first * kWords]).load(std::memory_order_acquire)) ++first;
  if (first == count) return;
  std::lock_guard lock(cells.mutex);
  int64_t* cell = cells.host + first * kWords;
  std::string message = fault_text(*cells.ops[first], cell[1], cell[2]);
  std::fill_n(cells.host, kWords * count, 0);
  throw_error(message);
}

}  // namespace sinter::runtime
#endif
