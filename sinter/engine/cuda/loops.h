#pragma once
// A loop nest compiled for a GPU.
#include <memory>

#include "sinter/codegen/gpu/geometry.h"
#include "sinter/engine/cuda/arguments.h"

namespace sinter {

struct CudaLoopKernel {
  runtime::CudaFunction function;
  codegen::GpuLaunch spread;
  Dim range, work;                  // of params
  std::vector<Parameter> parameters;  // their values follow the operands
  std::vector<bool> is_address;     // by operand
  Device device;
};

std::shared_ptr<const CudaLoopKernel> compile_cuda_loops(const LoopNest& nest, const std::string& name, Device device,
                                                         const GpuFacts& facts);
// `args` as a CPU kernel takes them: operands, params, the error cell.
void launch(const CudaLoopKernel& kernel, const int64_t* args);

// A name that no other text has.
std::string cuda_name(const std::string& name, const std::string& text, const GpuFacts& facts);
runtime::CudaGrid grid_of(const codegen::GpuGeometry& geometry);
}  // namespace sinter
