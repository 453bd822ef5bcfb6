#pragma once
// A whole program as a GPU's kernels: the graph after the passes, node by node, as an engine without templates and libraries
// runs it. Its values lie in memory of the host, where the kernels can run (tests/support/gpu_on_host.h).
#include "sinter/graph/graph.h"
#include "tests/support/gpu_on_host.h"

namespace sinter::testing {

class GpuProgram {
 public:
  // `inputs`: as the graph takes them. The sizes of the graph are numbers.
  GpuProgram(const Graph& graph, const TensorList& inputs, const Target& target);

  // Each once.
  const std::vector<codegen::GpuKernelText>& kernels() const { return kernels_; }
  int launches() const { return int(steps_.size()); }
  // Runs them on the host; gives what went wrong.
  std::string run() const;
  const TensorList& results() const { return results_; }

 private:
  struct Step {
    size_t kernel = 0;
    codegen::GpuGeometry geometry;
    int64_t range = 0;
    std::vector<int64_t> slots;
    // To and from: copied before, where the kernel changes what is there.
    std::vector<std::pair<Tensor, Tensor>> copies;
  };
  void add_fused(const Node& node, const std::vector<TensorArg>& operands, const TensorList& made);
  void add_loops(const Node& node, const std::vector<TensorArg>& operands, const Tensor& made);
  void add(const codegen::GpuKernelText& kernel, int64_t range, int64_t work, Step step);
  size_t known(const codegen::GpuKernelText& kernel);

  Target target_;
  std::vector<codegen::GpuKernelText> kernels_;
  std::vector<Step> steps_;
  std::vector<TensorList> values_;  // by node
  TensorList results_;
};

}  // namespace sinter::testing
