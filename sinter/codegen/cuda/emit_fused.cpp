// What is made of fused nests: kernels, and parts of other kernels.
#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/codegen/cuda/fused_writer.h"

namespace sinter::codegen {

namespace {

// Whether threads side by side read side by side when they share a row, or when each has a row of its own.
CudaSpread reduction_spread(const LoopNest& nest, bool& along) {
  bool by_row = false, by_column = false;
  for (auto& instr : nest.body) {
    if (instr.kind != InstrKind::kLoad) continue;
    by_row = by_row || (!nest.sequential.empty() && movement(instr.offset, nest.sequential.back().symbol) == Movement::kUnit);
    by_column = by_column || (!nest.parallel.empty() && movement(instr.offset, nest.parallel.back().symbol) == Movement::kUnit);
  }
  along = by_row;
  return by_column && !by_row ? CudaSpread::kColumns : CudaSpread::kRows;
}

// The same of a nest of several ops. Where rows are walked more than once, or elements stored, threads share them.
CudaSpread reduction_spread(const FusedNest& nest) {
  bool by_row = false, by_column = false;
  int walks = 0;
  for (auto& sweep : nest.sweeps) {
    if (sweep.once) continue;
    if (sweep.reductions.empty() || ++walks > 1 || nest.inner.empty() || nest.rows.empty()) return CudaSpread::kRows;
    for (auto& instr : sweep.body) {
      if (instr.kind != InstrKind::kLoad) continue;
      by_row = by_row || movement(instr.offset, nest.inner.back().symbol) == Movement::kUnit;
      by_column = by_column || movement(instr.offset, nest.rows.back().symbol) == Movement::kUnit;
    }
  }
  return by_column && !by_row ? CudaSpread::kColumns : CudaSpread::kRows;
}

}  // namespace

FusedNest fused_of(const LoopNest& nest) {
  FusedNest out;
  out.name = nest.name;
  out.operands = nest.operands;
  Sweep sweep;
  sweep.body = nest.body;
  out.rows = nest.parallel;
  if (nest.kind == NestKind::kMap) {
    sweep.stores.push_back({nest.output, nest.offset, nest.value});
    if (out.rows.empty()) {
      sweep.once = true;
    } else {
      out.inner.push_back(out.rows.back());
      out.rows.pop_back();
    }
    out.sweeps.push_back(std::move(sweep));
    return out;
  }
  out.inner = nest.sequential;
  DType dtype = nest.operands[size_t(nest.output)].dtype;
  sweep.reductions.push_back({0, nest.value, nest.combine, nest.accumulator, dtype});
  out.sweeps.push_back(std::move(sweep));
  Sweep once;
  once.once = true;
  once.body.push_back({.kind = InstrKind::kOuter, .dtype = dtype, .operand = 0});
  once.stores.push_back({nest.output, nest.offset, 0});
  out.sweeps.push_back(std::move(once));
  return out;
}

CudaKernelText emit_map_or_reduction(const LoopNest& nest, const std::string& name, CudaEmitOptions options) {
  const FusedNest fused = fused_of(nest);
  bool along = true;
  CudaSpread spread = nest.kind == NestKind::kReduce ? reduction_spread(nest, along) : CudaSpread::kRows;
  auto out = FusedCudaWriter(fused, options, spread).write(name, Role::kKernel);
  out.along = out.along && along;
  return out;
}

CudaKernelText emit_cuda(const FusedNest& nest, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  SINTER_INTERNAL_ASSERT(!nest.tiles, "{} works on the result of a contraction", nest.name);
  return FusedCudaWriter(nest, options, reduction_spread(nest)).write(name, Role::kKernel);
}

CudaKernelText emit_cuda_rows(const FusedNest& nest, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  auto out = FusedCudaWriter(nest, options, CudaSpread::kRows).write(name, Role::kPart);
  out.text =
      format("namespace k {\nstruct {}_rows : Vectors<{}> {\n{}};\n", name, out.lanes, out.members) +
      format("template <class A_>\n__device__ __forceinline__ void {}(const A_& a_, i64 begin_, i64 end_) {\n", name) +
      format(
          "  {}_rows::run_(a_, begin_, end_, block_of<Rows>(0, 1, blockDim.x * blockDim.y));\n}\n}  // namespace k\n",
          name);
  return out;
}

CudaKernelText emit_cuda_epilogue(const FusedNest& nest, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  return FusedCudaWriter(nest, options, CudaSpread::kRows).write(name, Role::kEpilogue);
}

CudaKernelText emit_cuda_epilogue_run(const FusedNest& nest, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  return FusedCudaWriter(nest, options, CudaSpread::kRows).write(name, Role::kEpilogueRun);
}

CudaKernelText emit_cuda_epilogue(const FusedNest& nest, DType memory, const std::string& name, CudaEmitOptions options) {
  StageTimer timer(CompileStage::kEmit);
  return FusedCudaWriter(nest, options, CudaSpread::kRows).write(name, Role::kKernel, memory);
}

}  // namespace sinter::codegen
