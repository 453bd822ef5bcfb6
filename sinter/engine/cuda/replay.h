#pragma once
// One call in flight of a plan as a CUDA graph: when it is recorded, what of the caller's it reads through the parameter
// block, and when it has to be recorded again.
//
// The first call runs step by step. The second is recorded: memory that lay at the same place in both calls (weights, a
// cache) is taken to stay there and its address is part of the graph; everything else, and every result, is reached through
// the block. A call in which such memory has moved after all records once more, with it in the block; after a few times the
// program runs step by step for good, and the log (cudagraphs) says why.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/function_ref.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

// What became of the programs of this process that were to run as graphs.
struct CudaReplayStats {
  int64_t recorded = 0, replayed = 0, given_up = 0;
  std::string why;  // the last one was given up
};
CudaReplayStats cuda_replay_stats();

class CudaReplay {
 public:
  // `moving`: by cell, those that are new in every call.
  CudaReplay(Device device, std::string program, std::vector<bool> moving);

  enum class Next : uint8_t { kRun, kRecord, kReplay };
  // What to do with a call whose cells hold these values. After kRecord: `record`, then `launch` if that went well.
  Next next(std::span<const int64_t> cells);
  bool is_moving(size_t cell) const { return moving_[cell]; }
  // Records what `queue` does under a CudaRecording. False when it cannot be: then calls run step by step from now on.
  bool record(FunctionRef<void()> queue);
  void launch(std::span<const int64_t> cells);

 private:
  void give_up(const std::string& why);

  Device device_;
  std::string program_;
  std::vector<bool> moving_;
  std::vector<int64_t> last_;
  BufferPtr block_;
  std::unique_ptr<runtime::CudaGraph> graph_;
  std::vector<BufferPtr> kept_;
  int recordings_ = 0;
  bool gave_up_ = false;
};

}  // namespace sinter
