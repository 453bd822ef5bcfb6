#include "tests/codegen/kernels.h"

namespace sinter {

using codegen::GpuKernelText;
using testing::Sample;

void Kernels::add_every_op() {
  const std::set<std::string_view> thorough = {"add", "sum", "scatter_add"};
  for (auto* op : all_ops()) {
    if (!is_loops(*op)) continue;
    bool found = false;
    for (DType dtype : {kFloat32, kBFloat16, kFloat16, kFloat64, kInt64, kInt32, kInt16, kInt8, kUInt8, kBool}) {
      if (found && !thorough.contains(op->name)) break;
      for (Sample& sample : testing::samples_of(*op, dtype)) {
        if (!sample.accepted()) continue;
        auto nest = nest_of(sample);
        if (!nest) continue;
        add(*nest);
        found = true;
        break;
      }
    }
  }
}

void Kernels::add_every_kind() {
  for (bool lanes : {true, false}) add(nest_of("add", "x[3, 10], x[3, 10]", kBFloat16), {.lanes = lanes});
  add(nest_of("sum", "x[5, 9] | dims=[1]", kFloat16), {.wide = true});
  add(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32));
  for (int dim : {0, 1}) add(nest_of("argmax", format("x[5, 9] | dims=[{}]", dim), kBFloat16));
  add(nest_of("cumsum", "x[5, 9] | dim=1", kFloat32));
  for (DType dtype : {kFloat32, kBFloat16, kInt64, kUInt8})
    for (Sample& sample : testing::samples_of(*find_op("scatter_add"), dtype))
      if (auto nest = nest_of(sample)) add(*nest);
  add(transposed_nest(kFloat16));
  const LoopNest softmax = softmax_nest(kBFloat16), epilogue = epilogue_nest();
  for (DType dtype : {kBFloat16, kFloat32}) add(rotary_nest(dtype));
  add(padded_sum_nest());
  for (int vectors : {0, 2}) add(softmax, {.held_vectors = vectors});
  add_as([&](auto& name) {
    auto columns = cuda_text(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32), "b", {.target = target_});
    return codegen::emit_gpu_siblings({cuda_text(softmax, "a", {.target = target_}), columns}, name);
  });
  add(epilogue, {.memory = kBFloat16});
  // Parts of other kernels, called by one.
  add_as([&](auto& name) {
    auto rows = cuda_text(softmax, name + "_rows", {.target = target_, .part = KernelPart::kRows});
    auto element = cuda_text(epilogue, name + "_element", {.target = target_, .part = KernelPart::kElement});
    auto run = cuda_text(epilogue, name + "_neighbours", {.target = target_, .part = KernelPart::kRun});
    EXPECT_EQ(run.lanes, 8);
    EXPECT_EQ(run.slots, element.slots);
    GpuKernelText out;
    out.text =
        rows.text + element.text + run.text +
        format("namespace k {\nextern \"C\" __global__ void {}(const __grid_constant__ Args<32> a) {\n", name) +
        format("  {}_rows(a, 0, a.range);\n  const float tiles[] = {1.0f};\n", name) +
        format("  {}_element(SubArgs<Args<32>, {}>{a}, tiles, threadIdx.x, 3);\n", name, rows.slots) +
        format(
            "  {}_neighbours_run::finish_(SubArgs<Args<32>, {}>{a}, (const float*)a[0], 64, threadIdx.x, 8);\n}\n}\n",
            name, rows.slots);
    return out;
  });
}

}  // namespace sinter
