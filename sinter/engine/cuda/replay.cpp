#include "sinter/engine/cuda/replay.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/own_kernel.h"
#include "sinter/runtime/cuda/module.h"

namespace sinter {

namespace {

// The block is refreshed by a kernel that carries the values as its parameter: nothing on the host has to stay in place
// until it has run.
constexpr size_t kCellsPerLaunch = 120;
struct Cells {
  int64_t block, count;
  struct {
    int64_t cell, value;
  } set[kCellsPerLaunch];
};
constexpr const char* kSetCells = R"(
struct CellValues { long long *block, count; struct { long long cell, value; } set[120]; };
extern "C" __global__ void sinter_set_cells(const __grid_constant__ CellValues c) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (threadIdx.x < c.count) c.block[c.set[threadIdx.x].cell] = c.set[threadIdx.x].value;
}
)";

OwnKernel& set_cells() {
  static auto& kernel = *new OwnKernel("sinter_set_cells", kSetCells);
  return kernel;
}

// CudaReplayStats; only its text needs the lock.
std::atomic<int64_t> recorded{0}, replayed{0}, given_up{0};
std::mutex why_mutex;
std::string last_why;

}  // namespace

CudaReplayStats cuda_replay_stats() {
  std::lock_guard lock(why_mutex);
  return {.recorded = recorded, .replayed = replayed, .given_up = given_up, .why = last_why};
}

CudaReplay::CudaReplay(Device device, std::string program, std::vector<bool> moving)
    : Replay(std::move(moving)), device_(device), program_(std::move(program)) {
  block_ = allocate_buffer(std::max<size_t>(moving_.size(), 1) * sizeof(int64_t), device);
}

bool CudaReplay::record(FunctionRef<void()> queue) {
  ++recordings_;
  graph_.reset();
  try {
    set_cells().on(device_.index());  // a launch needs it, and it may be refused
    CudaRecording recording(int64_t(reinterpret_cast<uintptr_t>(block_->data())));
    graph_ = runtime::CudaGraph::capture(device_.index(), queue);
    kept_ = recording.take_kept();
  } catch (const Error& error) {
    give_up(error.message());
    return false;
  }
  ++recorded;
  log(LogTopic::kCudagraphs, "{}: recorded as a graph of {} nodes (time {}); {} of {} places are read from its block", program_,
      graph_->nodes(), recordings_, std::count(moving_.begin(), moving_.end(), true), moving_.size());
  return true;
}

void CudaReplay::launch(std::span<const int64_t> cells) {
  Cells update{.block = int64_t(reinterpret_cast<uintptr_t>(block_->data())), .count = 0, .set = {}};
  auto send = [&] {
    runtime::CudaGrid grid;
    grid.threads[0] = 128;
    if (update.count) runtime::cuda_launch(set_cells().on(device_.index()), device_.index(), grid, &update, sizeof update);
    update.count = 0;
  };
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!moving_[i]) continue;
    update.set[update.count++] = {int64_t(i), cells[i]};
    if (size_t(update.count) == kCellsPerLaunch) send();
  }
  send();
  graph_->launch(runtime::cuda_stream(device_.index()));
  replayed.fetch_add(1, std::memory_order_relaxed);
}

void CudaReplay::give_up(const std::string& why) {
  gave_up_ = true;
  graph_.reset();
  ++given_up;
  {
    std::lock_guard lock(why_mutex);
    last_why = format("{}: {}", program_, why);
  }
  log(LogTopic::kCudagraphs, "{}: runs step by step, not as a graph: {}", program_, why);
}

}  // namespace sinter
