#pragma once
// Recordings as CUDA graphs.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/engine/device/recording.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

// What became of the programs of this process that were to run as graphs.
struct CudaReplayStats {
  int64_t recorded = 0, replayed = 0, given_up = 0;
  std::string why;  // the last one was given up
};
CudaReplayStats cuda_replay_stats();

class CudaReplay final : public Replay {
 public:
  CudaReplay(Device device, std::string program, std::vector<bool> moving);

  bool record(FunctionRef<void()> queue) override;
  void launch(std::span<const int64_t> cells) override;

 private:
  bool is_recorded() const override { return bool(graph_); }
  void give_up(const std::string& why) override;

  Device device_;
  std::string program_;
  BufferPtr block_;
  std::unique_ptr<runtime::CudaGraph> graph_;
  std::vector<BufferPtr> kept_;
};

}  // namespace sinter
