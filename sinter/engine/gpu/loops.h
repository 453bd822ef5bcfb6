#pragma once
// The nest of one op on any GPU, for all sizes of a class: what its kernel is, and what a launch takes.
#include "sinter/codegen/gpu/geometry.h"
#include "sinter/engine/step/arguments.h"

namespace sinter {

struct GpuLoops {
  codegen::GpuLaunch spread;
  Dim range, work;                    // of parameters
  std::vector<Parameter> parameters;  // their values follow the operands
  std::vector<bool> is_address;       // by operand

  // `args` as a CPU kernel takes them: operands, parameters, the error cell.
  struct Launch {
    codegen::GpuGeometry geometry;
    int64_t range = 0;
    StepArguments slots;
  };
  Launch launch(const int64_t* args, int multiprocessors) const;
};

// The text, to be compiled, and what is kept of it.
struct WrittenLoops {
  std::string name, text;
  GpuLoops loops;
};
WrittenLoops write_gpu_loops(const LoopNest& nest, const std::string& name, const GpuFacts& facts);

}  // namespace sinter
