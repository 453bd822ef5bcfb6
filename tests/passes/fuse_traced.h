#pragma once
// What a traced program becomes: its fused graph, how many kernels that has, and a comparison of its results.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/loops/fused.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

using Function = std::function<TensorList(const TensorList&)>;

struct Fused {
  Graph graph;
  int kernels = 0;  // everything that computes: views and numbers are free
  std::string list; // their names
};

inline Fused fuse_traced(const Function& f, const TensorList& inputs, double tolerance = 1e-4, bool nest = false,
                         const NestOptions& nesting = {}) {
  std::vector<Type> types;
  for (auto& t : inputs) types.push_back({t.dtype(), t.sizes(), t.device()});
  Fused out;
  PipelineOptions pipeline = planning_pipeline(cpu_engine().target());
  pipeline.skip = {"fuse", "nest"};
  Graph simplified = run_passes(trace(f, types), pipeline);
  out.graph = fuse(simplified, pipeline.fuse);
  if (nest) out.graph = nest_kernels(out.graph, nesting);
  out.graph.verify();
  verify_fused(out.graph);
  for (auto& node : out.graph.nodes()) {
    auto kind = node.op->kind;
    if (kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView) continue;
    ++out.kernels;
    out.list += std::string(node.op->name) + " ";
  }
  // The fused graph, by the referee and by its kernels, against the graph before.
  std::vector<Array> arrays;
  std::vector<TensorArg> operands;
  for (auto& t : inputs) {
    arrays.push_back(to_array(t));
    operands.push_back(t);
  }
  auto expected = interpret(simplified, arrays), referee = interpret(out.graph, arrays);
  TensorList results(expected.size());
  compile_program({.graph = std::move(simplified), .symbols = {}, .writes = {}, .name = "test"})->run(operands, {}, results);
  for (size_t i = 0; i < expected.size(); ++i) {
    Array got = to_array(results[i]);
    EXPECT_EQ(got.sizes, expected[i].sizes);
    for (int64_t at = 0; at < expected[i].numel(); ++at) {
      double want = expected[i].number(at);
      EXPECT_EQ(referee[i].number(at), want);
      EXPECT_NEAR(got.number(at), want, tolerance * std::max(1.0, std::abs(want))) << "result " << i << " at " << at;
    }
  }
  return out;
}

inline Tensor normal(const Shape& shape) {
  static int draws = 0;
  manual_seed(uint64_t(++draws));
  return randn(shape);
}

// With prologues and siblings.
inline Fused nest_traced(const Function& f, const TensorList& inputs) { return fuse_traced(f, inputs, 1e-4, true); }

}  // namespace sinter
