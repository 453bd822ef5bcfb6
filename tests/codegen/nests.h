#pragma once
// Nests to write kernels of: of any op's samples, and of a few fused programs.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "sinter/codegen/gpu/emit.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/step/kernel_parameters.h"
#include "sinter/graph/trace.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/passes/pipeline.h"
#include "tests/support/samples.h"

namespace sinter {

inline bool is_loops(const Op& op) {
  switch (op.kind) {
    case OpKind::kPointwise:
    case OpKind::kLoop:
    case OpKind::kReduce:
    case OpKind::kScatter:
    case OpKind::kScan:
      return true;
    case OpKind::kView:
      return !op.alias;
    default:
      return false;
  }
}

// The nest of a sample with row-major operands; nothing where it has no elements.
inline std::optional<LoopNest> nest_of(const testing::Sample& sample) {
  auto types = sample.types();
  OpCall call{*sample.op, types, sample.attrs};
  Type result = sample.op->infer(call)[0];
  std::vector<Layout> layouts;
  for (size_t i = 0; i < types.size(); ++i)
    layouts.push_back(sample.operands[i].scalar ? Layout{.scalar = true, .strides = {}}
                                                : contiguous_layout(types[i].shape));
  layouts.push_back(contiguous_layout(result.shape));
  LoopNest nest = lower(call, result, layouts);
  for (auto* axes : {&nest.rows, &nest.inner})
    for (auto& axis : *axes)
      if (axis.extent.same_as(0)) return std::nullopt;
  return nest;
}

inline LoopNest nest_of(std::string_view op, std::string_view text, DType dtype) {
  return *nest_of(testing::sample_from(*find_op(op), text, dtype));
}

// The nest of a program that fuses into one kernel, of its epilogue where that has one, with names for its sizes.
inline LoopNest fused_nest(const std::function<TensorList(const TensorList&)>& f, const std::vector<Type>& types) {
  FuseOptions options;
  options.target = cpu_engine().target();
  Graph graph = fuse(run_passes(trace(f, types), PipelineOptions()), options);
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    Attrs whole = node.attrs;
    for (auto& inner : whole.as<FusedAttrs>().body->nodes())
      if (is_fused(inner, FusedKind::kEpilogue)) whole = Attrs(inner.attrs);
    KernelParameters parameters;
    parameters.relate_products(*whole.as<FusedAttrs>().body);
    Attrs named = whole.map_dims([&](const Dim& d) { return parameters.size(d); });
    auto& attrs = named.as<FusedAttrs>();
    std::vector<Layout> layouts;
    for (size_t i = size_t(attrs.tiles); i < attrs.body->inputs().size(); ++i)
      layouts.push_back(contiguous_layout(attrs.body->inputs()[i].type().shape));
    for (auto& v : attrs.body->outputs()) layouts.push_back(contiguous_layout(v.type().shape));
    return lower_fused(attrs, layouts, parameters.names());
  }
  ADD_FAILURE() << "nothing was fused in\n" << graph.text();
  return {};
}

// A nest as text for a GPU.
inline codegen::GpuKernelText cuda_text(const LoopNest& nest, const std::string& name, const GpuFacts& facts = {}) {
  return codegen::emit_gpu(nest, schedule(nest, facts), name);
}

// A sum of a matrix and the transpose of another, which lanes and squares transpose.
inline LoopNest transposed_nest(DType dtype) {
  LoopNest nest = nest_of("add", "x[40, 50], x[40, 50]", dtype);
  nest.sweeps[0].body[1].offset = nest.rows[0].symbol + nest.inner[0].symbol * 40;
  return nest;
}

inline LoopNest softmax_nest(DType dtype) {
  return fused_nest([](const TensorList& x) { return TensorList{x[0].softmax(-1)}; }, {{dtype, {7, 264}, Device()}});
}
inline LoopNest rotary_nest(DType dtype) {
  auto program = [](const TensorList& x) {
    auto halves = x[0].chunk(2, -1);
    return TensorList{x[0] * x[1] + cat({-halves[1], halves[0]}, -1) * x[2]};
  };
  return fused_nest(program, std::vector<Type>(3, {dtype, {7, 64}, Device()}));
}
inline LoopNest padded_sum_nest() {
  auto program = [](const TensorList& x) {
    Tensor row = cat({x[0], x[1] * 2}, -1);
    return TensorList{row / row.sum({-1}, true)};
  };
  return fused_nest(program, std::vector<Type>(2, {kFloat32, {7, 61}, Device()}));
}
inline LoopNest epilogue_nest() {
  auto program = [](const TensorList& x) { return TensorList{gelu(matmul(x[0], x[1]) + x[2])}; };
  return fused_nest(program,
                    {{kBFloat16, {16, 64}, Device()}, {kBFloat16, {64, 48}, Device()}, {kBFloat16, {48}, Device()}});
}

}  // namespace sinter
