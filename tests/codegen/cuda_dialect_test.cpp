// CUDA kernels as text: what some look like, that those of every op compile for every architecture, and how they are spread
// over a device.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "sinter/codegen/cuda/emit.h"
#include "sinter/codegen/cuda/geometry.h"
#include "sinter/engine/kernel_parameters.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/activation.h"
#include "sinter/ops/binary.h"
#include "sinter/ops/layout.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/passes/fuse.h"
#include "sinter/passes/pipeline.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using codegen::CudaEmitOptions;
using codegen::CudaGeometry;
using codegen::CudaKernelText;
using codegen::CudaLaunch;
using codegen::CudaSpread;
using testing::Sample;

bool is_loops(const Op& op) {
  switch (op.kind) {
    case OpKind::kPointwise:
    case OpKind::kLoop:
    case OpKind::kReduce:
    case OpKind::kScatter:
    case OpKind::kScan: return true;
    case OpKind::kView: return !op.alias;
    default: return false;
  }
}

// The nest of a sample with row-major operands; nothing where it has no elements.
std::optional<LoopNest> nest_of(const Sample& sample) {
  auto types = sample.types();
  OpCall call{*sample.op, types, sample.attrs};
  Type result = sample.op->infer(call)[0];
  std::vector<Layout> layouts;
  for (size_t i = 0; i < types.size(); ++i)
    layouts.push_back(sample.operands[i].scalar ? Layout{.scalar = true, .strides = {}} : contiguous_layout(types[i].shape));
  layouts.push_back(contiguous_layout(result.shape));
  LoopNest nest = lower(call, result, layouts);
  for (auto* axes : {&nest.parallel, &nest.sequential})
    for (auto& axis : *axes)
      if (axis.extent.same_as(0)) return std::nullopt;
  return nest;
}

LoopNest nest_of(std::string_view op, std::string_view text, DType dtype) {
  return *nest_of(testing::sample_from(*find_op(op), text, dtype));
}

// The nest of a program that fuses into one kernel, with names for its sizes.
FusedNest fused_nest(const std::function<TensorList(const TensorList&)>& f, const std::vector<Type>& types) {
  FuseOptions options;
  options.takes_epilogue = [](const Node& node) { return is_contraction(node); };
  Graph graph = fuse(run_passes(trace(f, types), PipelineOptions()), options);
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    KernelParameters parameters;
    Attrs named = node.attrs.map_dims([&](const Dim& d) { return parameters.size(d); });
    auto& attrs = named.as<FusedAttrs>();
    std::vector<Layout> layouts;
    for (auto& v : attrs.body->inputs()) layouts.push_back(contiguous_layout(v.type().shape));
    for (auto& v : attrs.body->outputs()) layouts.push_back(contiguous_layout(v.type().shape));
    return lower_fused(attrs, layouts);
  }
  ADD_FAILURE() << "nothing was fused in\n" << graph.text();
  return {};
}

FusedNest softmax_nest(DType dtype) {
  return fused_nest([](const TensorList& x) { return TensorList{x[0].softmax(-1)}; }, {{dtype, {7, 264}, Device()}});
}
FusedNest rotary_nest(DType dtype) {
  auto program = [](const TensorList& x) {
    auto halves = x[0].chunk(2, -1);
    return TensorList{x[0] * x[1] + cat({-halves[1], halves[0]}, -1) * x[2]};
  };
  return fused_nest(program, std::vector<Type>(3, {dtype, {7, 64}, Device()}));
}
FusedNest padded_sum_nest() {
  auto program = [](const TensorList& x) {
    Tensor row = cat({x[0], x[1] * 2}, -1);
    return TensorList{row / row.sum({-1}, true)};
  };
  return fused_nest(program, std::vector<Type>(2, {kFloat32, {7, 61}, Device()}));
}
FusedNest epilogue_nest() {
  auto program = [](const TensorList& x) { return TensorList{gelu(matmul(x[0], x[1]) + x[2])}; };
  return fused_nest(program, {{kBFloat16, {16, 64}, Device()}, {kBFloat16, {64, 48}, Device()}, {kBFloat16, {48}, Device()}});
}

// ---- texts ----
TEST(CudaDialect, MapInVectors) {
  auto kernel = codegen::emit_cuda(nest_of("add", "x[3, 10], x[3, 10]", kBFloat16), "add");
  EXPECT_EQ(kernel.lanes, 8);
  EXPECT_EQ(kernel.slots, 4);
  EXPECT_EQ(kernel.spread, CudaSpread::kElements);
  EXPECT_TRUE(kernel.range.same_as(30));
  EXPECT_EQ(kernel.text, R"(namespace k {
struct add_kernel : Vectors<8> {
template <class A>
static __device__ __forceinline__ void run(const A& a, i64 begin, i64 end, const Rows& b) {
  const void* in0 = (const void*)a[0];
  const void* in1 = (const void*)a[1];
  void* out2 = (void*)a[2];
  const i32 vectors = (10 + kLanes - 1) / kLanes;
  const i64 steps = (i64)(3) * (vectors);
  for (i64 step = first_step(b); step < steps; step += all_threads(b)) {
    const u32 at = (u32)step / (u32)(vectors);
    const i32 i1 = (i32)((u32)step - at * (u32)(vectors)) * kLanes;
    const i32 i0 = (i32)at;
    if (i1 + kLanes <= 10 && fits<k::bf16>(in0, 10*i0 + i1) && fits<k::bf16>(in1, 10*i0 + i1) && fits<k::bf16>(out2, 10*i0 + i1)) {
      const f32v t0 = load<k::bf16>(in0, 10*i0 + i1);
      const f32v t1 = load<k::bf16>(in1, 10*i0 + i1);
      const f32v t2 = t0 + t1;
      store<k::bf16>(out2, 10*i0 + i1, t2);
    }
    else {
      for (i32 tail = i1, last = minimum(i1 + (i32)kLanes, (i32)(10)); tail < last; ++tail) {
        const i32 i1 = tail;
        const float t0 = load1<k::bf16>(in0, 10*i0 + i1);
        const float t1 = load1<k::bf16>(in1, 10*i0 + i1);
        const float t2 = t0 + t1;
        store1<k::bf16>(out2, 10*i0 + i1, t2);
      }
    }
  }
}
};
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Args<4> a) {
  wait_for_previous();
  add_kernel::run(a, 0, a.range, this_block<Rows>());
}
}  // namespace k
)");
}

TEST(CudaDialect, RowReduction) {
  auto kernel = codegen::emit_cuda(nest_of("sum", "x[5, 9] | dims=[1]", kFloat32), "sum", {.wide = true});
  EXPECT_EQ(kernel.spread, CudaSpread::kRows);
  EXPECT_TRUE(kernel.along);
  EXPECT_EQ(kernel.members, R"(template <class A>
static __device__ __forceinline__ void run(const A& a, i64 begin, i64 end, const Rows& b) {
  const void* in0 = (const void*)a[0];
  void* out1 = (void*)a[1];
  float row0;
  for (i64 base = begin + (i64)b.index * b.rows; base < end; base += (i64)b.count * b.rows) {
    const bool valid = base + b.row < end;
    const i64 at = valid ? base + b.row : end - 1;
    const i64 i0 = (i64)at;
    {
      float tail0 = (float)(0.0);
      f32v acc0 = splat_f32((float)(0.0));
      const i64 stop = valid ? (i64)(9) : 0;
      i64 k0 = (i64)b.member * kLanes;
      const bool whole = true && fits<k::f32>(in0, 9*i0 + k0);
      #pragma unroll 2
      for (; whole && k0 + kLanes <= stop; k0 += (i64)b.members * kLanes) {
        const f32v t0 = load<k::f32>(in0, 9*i0 + k0);
        acc0 = acc0 + t0;
      }
      for (; k0 < stop; k0 += (i64)b.members * kLanes) {
        for (i64 tail = k0, last = minimum(k0 + (i64)kLanes, (i64)(stop)); tail < last; ++tail) {
          const i64 k0 = tail;
          const float t0 = load1<k::f32>(in0, 9*i0 + k0);
          tail0 = tail0 + t0;
        }
      }
      row0 = join<Sum>(b, Sum::join(join_lanes<Sum>(acc0), tail0), (float)(0.0));
    }
    {
      if (valid && b.member == 0) {
        const float t0 = row0;
        store1<k::f32>(out1, i0, t0);
      }
    }
  }
}
)");
}

TEST(CudaDialect, FusedSoftmax) {
  auto kernel = codegen::emit_cuda(softmax_nest(kFloat32), "softmax", {.lanes = false});
  EXPECT_EQ(kernel.spread, CudaSpread::kRows);
  EXPECT_EQ(to_string(kernel.range), "n0");
  EXPECT_EQ(to_string(kernel.work), "n1");
  EXPECT_NE(kernel.text.find("row0 = join<Max>(b, tail0,"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("row1 = join<Sum>(b, tail1,"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("for (i32 place = (i32)b.member; place < stop; place += (i32)b.members) {"), std::string::npos);
}

TEST(CudaDialect, RowsStayInRegisters) {
  auto kernel = codegen::emit_cuda(softmax_nest(kFloat32), "softmax", {.keep = 4});
  EXPECT_NE(kernel.text.find("Kept<k::f32> kept0[4];"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("kept0[turn] = keep<k::f32>(in0, "), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("const Kept<k::f32>& turned0 = kept0[turn];"), std::string::npos) << kernel.text;
}

// A vector that lies on one side of every cut is taken whole; the others element by element.
TEST(CudaDialect, VectorsBetweenCuts) {
  auto kernel = codegen::emit_cuda(rotary_nest(kBFloat16), "rope");
  EXPECT_EQ(kernel.lanes, 8);
  for (auto* part : {"&& alike(i1 - n1, n1) && alike(i1, n1) &&",
                     "(!((u64)(i1) < (u64)(n1)) || fits<k::bf16>(in0, i0*n1 + i1))",
                     "load_if<k::bf16>((u64)(i1) < (u64)(n1), "})
    EXPECT_NE(kernel.text.find(part), std::string::npos) << part << "\n" << kernel.text;
  // A sum over such a row.
  auto rows = codegen::emit_cuda(padded_sum_nest(), "rows", {.keep = 4});
  EXPECT_EQ(rows.lanes, 4);
  EXPECT_NE(rows.text.find("if (alike("), std::string::npos) << rows.text;
  EXPECT_EQ(rows.text.find("kept"), std::string::npos) << rows.text;
}

TEST(CudaDialect, SearchInVectors) {
  auto kernel = codegen::emit_cuda(nest_of("argmax", "x[5, 9] | dims=[1]", kFloat32), "f");
  EXPECT_EQ(kernel.lanes, 4);
  EXPECT_EQ(kernel.most, 1024);
  EXPECT_NE(kernel.text.find("__launch_bounds__(1024)"), std::string::npos);
  EXPECT_NE(kernel.text.find("const f32v t0 = load<k::f32>(in0, "), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("if (!may_beat<true>(values[u], best)) continue;"), std::string::npos) << kernel.text;
  EXPECT_EQ(codegen::emit_cuda(nest_of("argmax", "x[5, 9] | dims=[0]", kFloat32), "f").lanes, 1);
}

TEST(CudaDialect, WhatTurnsGoesThroughSquares) {
  LoopNest nest = nest_of("add", "x[40, 50], x[40, 50]", kFloat32);
  Dim i = nest.parallel[0].symbol, j = nest.parallel[1].symbol;
  nest.body[1].offset = i + j * 40;
  auto kernel = codegen::emit_cuda(nest, "turned");
  EXPECT_EQ(kernel.spread, CudaSpread::kTiles);
  EXPECT_TRUE(kernel.work.same_as(4));
  // A stride that the nest does not know.
  nest.body[1].offset = i * Dim::symbol("p") + j * 40;
  EXPECT_EQ(codegen::emit_cuda(nest, "turned").spread, CudaSpread::kElements);
  EXPECT_EQ(codegen::emit_cuda(nest, "turned", {.turn = 0}).spread, CudaSpread::kTiles);
}

TEST(CudaDialect, SpreadFollowsMemory) {
  EXPECT_EQ(codegen::emit_cuda(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32), "f").spread, CudaSpread::kColumns);
  EXPECT_EQ(codegen::emit_cuda(nest_of("argmax", "x[5, 9] | dims=[1]", kFloat32), "f").spread, CudaSpread::kRows);
  EXPECT_TRUE(codegen::emit_cuda(nest_of("cumsum", "x[5, 9] | dim=1", kFloat32), "f").along);
  EXPECT_FALSE(codegen::emit_cuda(nest_of("cumsum", "x[5, 9] | dim=0", kFloat32), "f").along);
}

// ---- compiling ----
// Kernels of several programs' worth, named apart.
class Kernels {
 public:
  void add(const LoopNest& nest, CudaEmitOptions options = {}) {
    add_as([&](const std::string& name) { return codegen::emit_cuda(nest, name, options); });
  }
  void add_as(const std::function<CudaKernelText(const std::string& name)>& emit) {
    if (seen_.insert(emit("same").text).second) texts_.push_back(emit(format("k{}", texts_.size())).text);
  }
  void compile(const std::string& architecture) const {
    const size_t at_once = 64;
    for (size_t from = 0; from < texts_.size(); from += at_once) {
      std::string program = codegen::cuda_prelude();
      for (size_t i = from; i < std::min(from + at_once, texts_.size()); ++i) program += texts_[i];
      EXPECT_NO_THROW(runtime::compile_cuda(program, format("kernels from {}", from), architecture));
    }
  }
  size_t size() const { return texts_.size(); }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> texts_;
};

TEST(CudaDialect, EveryOpCompiles) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  Kernels kernels;
  // One op of each kind in every dtype, the others in the first that they take.
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
        kernels.add(*nest);
        found = true;
        break;
      }
    }
  }
  EXPECT_GT(kernels.size(), 100u);
  kernels.compile("sm_90");
}

TEST(CudaDialect, EveryKindCompilesForEveryArchitecture) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  Kernels kernels;
  for (bool lanes : {true, false}) kernels.add(nest_of("add", "x[3, 10], x[3, 10]", kBFloat16), {.lanes = lanes});
  kernels.add(nest_of("sum", "x[5, 9] | dims=[1]", kFloat16), {.wide = true});
  kernels.add(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32));
  for (int dim : {0, 1}) kernels.add(nest_of("argmax", format("x[5, 9] | dims=[{}]", dim), kBFloat16));
  kernels.add(nest_of("cumsum", "x[5, 9] | dim=1", kFloat32));
  for (DType dtype : {kFloat32, kBFloat16, kInt64, kUInt8})
    for (Sample& sample : testing::samples_of(*find_op("scatter_add"), dtype))
      if (auto nest = nest_of(sample)) kernels.add(*nest);
  LoopNest turned = nest_of("add", "x[40, 50], x[40, 50]", kFloat16);
  turned.body[1].offset = turned.parallel[0].symbol + turned.parallel[1].symbol * 40;
  kernels.add(turned);
  const FusedNest softmax = softmax_nest(kBFloat16), epilogue = epilogue_nest();
  for (DType dtype : {kBFloat16, kFloat32})
    kernels.add_as([&](auto& name) { return codegen::emit_cuda(rotary_nest(dtype), name); });
  kernels.add_as([&](auto& name) { return codegen::emit_cuda(padded_sum_nest(), name); });
  for (int keep : {0, 2}) kernels.add_as([&](auto& name) { return codegen::emit_cuda(softmax, name, {.keep = keep}); });
  kernels.add_as([&](auto& name) {
    auto columns = codegen::emit_cuda(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32), "b");
    return codegen::emit_cuda_siblings({codegen::emit_cuda(softmax, "a"), columns}, name);
  });
  kernels.add_as([&](auto& name) { return codegen::emit_cuda_epilogue(epilogue, kBFloat16, name); });
  // Parts of other kernels, called by one.
  kernels.add_as([&](auto& name) {
    auto rows = codegen::emit_cuda_rows(softmax, name + "_rows");
    auto element = codegen::emit_cuda_epilogue(epilogue, name + "_element");
    CudaKernelText out;
    auto run = codegen::emit_cuda_epilogue_run(epilogue, name + "_neighbours");
    EXPECT_EQ(run.lanes, 8);
    EXPECT_EQ(run.slots, element.slots);
    out.text = rows.text + element.text + run.text +
               format("namespace k {\nextern \"C\" __global__ void {}(const __grid_constant__ Args<32> a) {\n", name) +
               format("  {}_rows(a, 0, a.range);\n  const float tiles[] = {1.0f};\n", name) +
               format("  {}_element(SubArgs<Args<32>, {}>{a}, tiles, threadIdx.x, 3);\n", name, rows.slots) +
               format("  {}_neighbours_run::finish(SubArgs<Args<32>, {}>{a}, (const float*)a[0], 64, threadIdx.x, 8);\n}\n}\n", name, rows.slots);
    return out;
  });
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90"}) kernels.compile(architecture);
}

// ---- geometry ----
TEST(CudaGeometry, ElementsGetAThreadAVector) {
  const CudaLaunch map{CudaSpread::kElements, 8, false};
  EXPECT_EQ(codegen::cuda_geometry(map, 8 << 20, 1, 132), (CudaGeometry{4096, {256, 1}, 0}));
  EXPECT_EQ(codegen::cuda_geometry(map, int64_t(1) << 40, 1, 132), (CudaGeometry{132 * 64, {256, 1}, 0}));
  // Few elements: smaller blocks on more multiprocessors.
  EXPECT_EQ(codegen::cuda_geometry(map, 8192, 1, 132), (CudaGeometry{16, {64, 1}, 0}));
  EXPECT_EQ(codegen::cuda_geometry(map, 0, 1, 132), (CudaGeometry{1, {64, 1}, 0}));
}

TEST(CudaGeometry, RowsAreSharedAsTheyAreLong) {
  const CudaLaunch rows{CudaSpread::kRows, 4, true};
  EXPECT_EQ(codegen::cuda_geometry(rows, 100000, 64, 132), (CudaGeometry{6250, {16, 16}, 0}));
  EXPECT_EQ(codegen::cuda_geometry(rows, 8192, 4096, 132), (CudaGeometry{8192, {256, 1}, 0}));
  EXPECT_EQ(codegen::cuda_geometry(rows, 1, 1 << 20, 132), (CudaGeometry{1, {512, 1}, 0}));
  const CudaLaunch strided{CudaSpread::kRows, 1, false};
  EXPECT_EQ(codegen::cuda_geometry(strided, 1 << 20, 64, 132), (CudaGeometry{4096, {1, 256}, 0}));
  // A search takes more threads.
  EXPECT_EQ(codegen::cuda_geometry({CudaSpread::kRows, 4, true, 1024}, 1, 128256, 132), (CudaGeometry{1, {1024, 1}, 0}));
  for (int64_t range : {1, 3, 100, 5000, 1000000})
    for (int64_t work : {1, 5, 100, 3000, 100000}) {
      auto g = codegen::cuda_geometry(rows, range, work, 132);
      EXPECT_EQ(g.threads[0] * g.threads[1] % 32, 0u);
      EXPECT_LE(g.threads[0] * g.threads[1], 512u);
      EXPECT_EQ(g.threads[0] & (g.threads[0] - 1), 0u);
    }
}

TEST(CudaGeometry, SiblingsHaveOneSizeOfBlock) {
  for (CudaSpread spread : {CudaSpread::kElements, CudaSpread::kPoints, CudaSpread::kRows, CudaSpread::kColumns})
    for (int64_t range : {1, 77, 100000}) {
      auto g = codegen::cuda_sibling_geometry({spread, 4, true}, range, 3000, 132);
      EXPECT_EQ(g.threads[0] * g.threads[1], unsigned(codegen::kSiblingThreads));
    }
}

}  // namespace
}  // namespace sinter
