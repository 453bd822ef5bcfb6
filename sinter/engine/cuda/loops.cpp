#include "sinter/engine/cuda/loops.h"

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {

namespace {

class CudaLoopKernel final : public DeviceKernel {
 public:
  CudaLoopKernel(WrittenLoops written, Device device) : loops_(std::move(written.loops)), device_(device) {
    std::vector<runtime::CudaSource> sources{{written.name, written.text, 0}};
    function_ = runtime::load_cuda(sources, codegen::cuda_prelude(), device.index())[0];
  }

  void launch(const int64_t* args) const override {
    auto start = loops_.launch(args, runtime::cuda_device_info(device_.index()).multiprocessors);
    cuda_launch(function_, device_, grid_of(start.geometry), start.range, start.slots);
  }

 private:
  GpuLoops loops_;
  Device device_;
  runtime::CudaFunction function_;
};

}  // namespace

runtime::CudaGrid grid_of(const codegen::GpuGeometry& geometry) {
  runtime::CudaGrid grid;
  grid.blocks[0] = geometry.blocks;
  grid.threads[0] = geometry.threads[0];
  grid.threads[1] = geometry.threads[1];
  grid.shared_bytes = geometry.shared_bytes;
  grid.overlaps_previous = true;
  return grid;
}

std::shared_ptr<const DeviceKernel> compile_cuda_loops(const LoopNest& nest, const std::string& name, Device device,
                                                       const GpuFacts& facts) {
  return std::make_shared<CudaLoopKernel>(write_gpu_loops(nest, name, facts), device);
}

}  // namespace sinter
