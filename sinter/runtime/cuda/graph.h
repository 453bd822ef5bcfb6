#pragma once
// CUDA graphs: what a function queues, as one thing to launch.
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/function_ref.h"
#include "sinter/runtime/cuda/stream.h"

struct CUgraph_st;
struct CUgraphExec_st;

namespace sinter::runtime {

class CudaGraph {
 public:
  // Runs `queue` while the device's work of this thread is recorded instead of done. Where something in it cannot be
  // recorded: an Error that says what, and the stream works as before. Memory that is taken inside stays with the graph.
  static std::unique_ptr<CudaGraph> capture(int device, FunctionRef<void()> queue);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  void launch(CudaStream stream) const;
  int nodes() const { return nodes_; }

 private:
  CudaGraph() = default;
  int device_ = 0, nodes_ = 0;
  std::vector<void*> held_;
  CUgraph_st* graph_ = nullptr;
  CUgraphExec_st* executable_ = nullptr;
};

// Whether this thread is inside CudaGraph::capture.
bool is_capturing_cuda_graph();

}  // namespace sinter::runtime
