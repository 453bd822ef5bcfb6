#include "sinter/runtime/cuda/graph.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <exception>

#include "sinter/base/stage_times.h"

namespace sinter::runtime {

namespace {

constinit thread_local bool capturing = false;
constinit thread_local std::vector<void*>* held = nullptr;

}  // namespace

bool is_capturing_cuda_graph() { return capturing; }
void hold_for_graph(void* data) { held->push_back(data); }

void check_not_capturing(const char* what) {
  if (capturing) [[unlikely]]
    throw_error(format("{} cannot be recorded into a CUDA graph", what));
}

std::unique_ptr<CudaGraph> CudaGraph::capture(int device, FunctionRef<void()> queue) {
  check_not_capturing("another CUDA graph");
  StageTimer timer(CompileStage::kRecording);
  auto& api = driver();
  CudaDeviceGuard guard(device);
  // A stream of its own: on the common one the work of other threads would be recorded too.
  OwnCudaStream own(device);
  CudaStreamGuard stream_guard(device, own.stream());
  check_driver(api.cuStreamBeginCapture(own.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "recording a CUDA graph");
  std::unique_ptr<CudaGraph> graph(new CudaGraph);
  graph->device_ = device;
  capturing = true;
  held = &graph->held_;
  std::exception_ptr failure;
  try {
    queue();
  } catch (...) {
    failure = std::current_exception();
  }
  capturing = false;
  held = nullptr;
  CUresult result = api.cuStreamEndCapture(own.stream(), &graph->graph_);
  if (failure) std::rethrow_exception(failure);
  check_driver(result, "ending the record of a CUDA graph");
  size_t nodes = 0;
  check_driver(api.cuGraphGetNodes(graph->graph_, nullptr, &nodes), "counting the nodes of a CUDA graph");
  graph->nodes_ = int(nodes);
  check_driver(api.cuGraphInstantiate(&graph->executable_, graph->graph_, 0),
               "making a recorded CUDA graph executable");
  // Otherwise the first launch pays for it.
  check_driver(api.cuGraphUpload(graph->executable_, own.stream()), "moving a CUDA graph to the device");
  return graph;
}

CudaGraph::~CudaGraph() {
  QuietDeviceGuard guard(device_);
  if (executable_) driver().cuGraphExecDestroy(executable_);
  if (graph_) driver().cuGraphDestroy(graph_);
  for (void* data : held_) let_go_of_graph_memory(device_, data);
}

void CudaGraph::launch(CudaStream stream) const {
  CudaDeviceGuard guard(device_);
  check_driver(driver().cuGraphLaunch(executable_, stream), "launching a CUDA graph");
}

}  // namespace sinter::runtime
#endif
