#pragma once
// A loop nest compiled for a GPU.
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/gpu/loops.h"
#include "sinter/engine/kernel.h"

namespace sinter {

std::shared_ptr<const DeviceKernel> compile_cuda_loops(const LoopNest& nest, const std::string& name, Device device,
                                                       const GpuFacts& facts);

runtime::CudaGrid grid_of(const codegen::GpuGeometry& geometry);
}  // namespace sinter
