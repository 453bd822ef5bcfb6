// Whole kernels, and parts of other ones: the text around what the writer writes.
#include "sinter/codegen/gpu/emit.h"

#include <map>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/codegen/gpu/writer.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

std::string block_text(Spread spread) { return spread == Spread::kColumns ? "Columns" : "Rows"; }

namespace {

// It does not let the next kernel start early: behind a small kernel that would be one whose weights are then fetched while
// a large one before this still streams its own, and both lose (measured: 5 % of a decode step).
std::string kernel_text(const GpuKernelText& kernel, int bounds) {
  return format("namespace k {\nstruct {}_kernel : Vectors<{}> {\n{}};\n", kernel.name, kernel.lanes, kernel.members) +
         format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a_) {\n", bounds,
                kernel.name, kernel.slots) +
         format("  wait_for_previous();\n  {}_kernel::run_(a_, 0, a_.range, this_block<{}>());\n}\n", kernel.name,
                block_text(kernel.spread)) +
         "}  // namespace k\n";
}

std::string rows_text(const GpuKernelText& rows) {
  return format("namespace k {\nstruct {}_rows : Vectors<{}> {\n{}};\n", rows.name, rows.lanes, rows.members) +
         format("template <class A_>\n__device__ __forceinline__ void {}(const A_& a_, i64 begin_, i64 end_) {\n", rows.name) +
         format(
             "  {}_rows::run_(a_, begin_, end_, block_of<Rows>(0, 1, blockDim.x * blockDim.y));\n}\n}  // namespace k\n",
             rows.name);
}

}  // namespace

GpuKernelText GpuWriter::write(const std::string& name) {
  GpuKernelText out;
  out.name = name;
  out.lanes = schedule_.lanes;
  out.spread = schedule_.spread;
  out.along = schedule_.along;
  out.most = schedule_.most;
  out.warp = schedule_.warp;
  out.range = schedule_.points();
  out.work = schedule_.work;
  const bool element_only = schedule_.part == KernelPart::kElement || schedule_.part == KernelPart::kRun;
  if (element_only)
    element(name);
  else if (schedule_.spread == Spread::kElements)
    map();
  else if (schedule_.spread == Spread::kTiles)
    transposed_map();
  else if (schedule_.spread == Spread::kPoints)
    scatter();
  else if (!nest_.sweeps.empty() && nest_.sweeps[0].scans())
    scan();
  else if (schedule_.mode == VectorMode::kColumns)
    columns();
  else
    rows();
  out.slots = slots_;
  out.members = std::move(text_);
  if (element_only)
    out.text = "namespace k {\n" + out.members + "}  // namespace k\n";
  else
    out.text = schedule_.part == KernelPart::kRows ? rows_text(out) : kernel_text(out, schedule_.bounds);
  return out;
}

GpuKernelText emit_gpu(const LoopNest& nest, const Schedule& schedule, const std::string& name) {
  StageTimer timer(CompileStage::kEmit);
  return GpuWriter(nest, schedule).write(name);
}

GpuKernelText emit_gpu_siblings(const std::vector<GpuKernelText>& kernels, const std::string& name) {
  GpuKernelText out;
  out.name = name;
  out.spread = Spread::kPoints;
  std::string parts, calls;
  // Siblings are often alike but for their sizes, as the parameters of an optimiser are.
  std::map<std::string, size_t> known;
  for (auto& kernel : kernels) {
    SINTER_INTERNAL_ASSERT(kernel.spread != Spread::kTiles, "{} cannot share a launch", kernel.name);
    std::string part = format(" : Vectors<{}> {\n{}};\n", kernel.lanes, kernel.members);
    auto [at, is_new] = known.try_emplace(part, known.size());
    const size_t i = at->second;
    if (is_new) parts += format("struct Part{}_{}", i, part);
    int slot = out.slots;
    calls += format("  if (block_ < (u32)a_.number({}))\n", slot) +
             format("    return {}_parts::Part{}_::run_(SubArgs<Args<slots_>, {}>{a_}, 0, a_.number({}),\n", name, i,
                    slot + kSiblingSlots, slot + 1) +
             format("                            block_of<{}>(block_, (u32)a_.number({}), (u32)a_.number({})));\n",
                    block_text(kernel.spread), slot, slot + 2) +
             format("  block_ -= (u32)a_.number({});\n", slot);
    out.slots += kSiblingSlots + kernel.slots;
  }
  out.text = format("namespace k {\nnamespace {}_parts {\nconstexpr int slots_ = {};\n{}}\n", name, out.slots, parts) +
             format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Args<{}> a_) {\n",
                    kSiblingThreads, name, out.slots) +
             format("  using {}_parts::slots_;\n  wait_for_previous();\n  u32 block_ = blockIdx.x;\n", name) + calls +
             "}\n}  // namespace k\n";
  return out;
}

std::string gpu_prelude(const Target& target, std::string_view dialect) {
  return format("#define K_WARP {}\n#define K_BLOCK {}\n#define K_SQUARE {}\n#define K_SQUARE_ROWS {}\n", target.lane_width,
                target.block_threads, kSquare, kSquareRows) +
         std::string(dialect) + embedded::gpu_types + embedded::gpu_math + embedded::gpu_special + "namespace k {\n" +
         embedded::special + embedded::bessel + embedded::polynomials + "}\n" + embedded::gpu_kernel;
}

}  // namespace sinter::codegen
