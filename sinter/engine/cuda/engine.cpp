#include "sinter/engine/cuda/engine.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/attention_step.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/cuda/pooling.h"
#include "sinter/engine/cuda/product_step.h"
#include "sinter/engine/cuda/replay.h"
#include "sinter/engine/cuda/tile_convolution.h"
#include "sinter/ops/custom.h"
#include "sinter/ops/known_ops.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

// Of one kind or the other: both are problems of cuda_convolution_problem.
bool is_convolution(const Op& op) { return &op == &convolution_op() || &op == &convolution_weight_grad_op(); }

// Asking for cuDNN loads it: only where there may be a convolution to give to it, perhaps in a composite of the user's.
bool convolves(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](auto& node) {
    return is_convolution(*node.op) || (node.op->kind == OpKind::kComposite && find_registered_op(node.op->name));
  });
}

// The kernels of attention keep a row in registers: takes_cuda_attention.
constexpr Target kTarget = [] {
  Target target = codegen::kCudaTarget;
  target.products = {kFloat32, kFloat64, kBFloat16, kFloat16};
  target.most_finished_rows = kSkinnyRows;
  target.product_alignment = 16;
  target.attention = {.dtypes = {kFloat32, kBFloat16, kFloat16},
                      .masks = {kBool, kFloat32, kBFloat16, kFloat16},
                      .most_dimensions = 4,
                      .largest_row = 256,
                      .largest_row_backward = 128};
  return target;
}();

class CudaEngine final : public DeviceEngine {
 public:
  explicit CudaEngine(int index) : device_(cuda(index)) {}

  const Target& target() const override { return kTarget; }
  Target target_for(const Graph& graph) const override {
    Target out = kTarget;
    if (convolves(graph)) out.convolutions = cuda_convolutions();
    return out;
  }
  std::string kind(const Graph& graph) const override {
    return convolves(graph) && runtime::cudnn_problem().empty() ? "cuda with cuDNN" : "cuda";
  }
  std::string machine() const override { return runtime::cuda_device_info(device_.index()).name; }
  int64_t cache_bytes() const override { return runtime::cuda_device_info(device_.index()).l2_bytes; }
  bool queues() const override { return true; }

  std::shared_ptr<const DeviceKernel> compile_loops(const LoopNest& nest, const std::string& name,
                                                    const GpuFacts& facts) const override {
    return compile_cuda_loops(nest, name, device_, facts);
  }

  std::vector<OpKernel> op_kernels() const override {
    return joined({eager::product_kernels_of_cuda(), eager::attention_kernels_of_cuda(), eager::convolution_kernels_of_cuda(),
                   eager::pool_kernels_of_cuda(), eager::sort_kernels_of_cuda(), eager::linalg_kernels_of_cuda(),
                   eager::fourier_kernels_of_cuda()});
  }

  std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                          std::span<const TensorImpl* const> outputs) const override {
    return make_cuda_step(attrs, inputs, outputs, device_);
  }

  IntList result_strides(const Node& node, const IntList& sizes, const TensorImpl* x,
                         FunctionRef<const TensorImpl*()>) const override {
    if (is_convolution(*node.op) && has_cuda_convolution(*node.op, node.types[0].dtype, node.attrs))
      return format_strides("plan", sizes, cuda_convolution_format(node.types[0].dtype, sizes.size()));
    if (eager::gives_channels_last_pool(node, x))
      return format_strides("plan", sizes, MemoryFormat::kChannelsLast);
    return is_attention(*node.op) ? eager::attention_strides(sizes) : contiguous_strides(sizes);
  }

  void synchronize() const override { runtime::cuda_synchronize(device_.index()); }
  void* stream() const override { return runtime::cuda_stream(device_.index()); }
  void begin_program() const override { begin_cuda_program(); }
  void fill(void* memory, unsigned char value, size_t bytes) const override {
    runtime::cuda_fill(memory, device_.index(), value, bytes);
  }
  std::unique_ptr<Replay> make_replay(const std::string& program, std::vector<bool> moving) const override {
    return std::make_unique<CudaReplay>(device_, program, std::move(moving));
  }

  // Timed by the device, which is held up meanwhile, so that it never waits for the host between two launches.
  std::vector<double> time_each(size_t count, FunctionRef<void(size_t)> launch, size_t launches) const override {
    begin_cuda_program();
    for (size_t i = 0; i < count; ++i) launch(i);  // whatever the first launch of a kernel needs
    std::deque<runtime::CudaEvent> events;
    auto mark = [&] { events.emplace_back(device_.index()).record(runtime::cuda_stream(device_.index())); };
    hold_up_cuda(device_, 20e-6 * double(count * launches));
    begin_cuda_program();
    mark();
    for (size_t i = 0; i < count; ++i) {
      launch(i);
      mark();
    }
    events.back().wait();
    std::vector<double> seconds;
    for (size_t i = 0; i < count; ++i) seconds.push_back(events[i + 1].milliseconds_since(events[i]) * 1e-3);
    return seconds;
  }

 private:
  Device device_;
};

}  // namespace

const DeviceEngine& cuda_engine(Device device) {
  // One for each index there can be, made together: they are small, and a lookup takes no lock.
  static const auto engines = [] {
    std::deque<CudaEngine> all;
    for (int i = 0; i <= std::numeric_limits<decltype(device.index())>::max(); ++i) all.emplace_back(i);
    return all;
  }();
  return engines[size_t(device.index())];
}

}  // namespace sinter
