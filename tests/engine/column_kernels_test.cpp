// Sums of channels that lie side by side in memory, as kernels of a GPU.
#include <gtest/gtest.h>

#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {
namespace {

// The kernel of a body whose last `inner` dimensions are reduced, where what has all dimensions lies in this order, for a GPU
// with so many multiprocessors.
GpuNest kernel_of(Graph body, int inner, MemoryFormat order, int multiprocessors = 132) {
  Shape domain;
  for (auto& node : body.nodes())
    if (node.op->kind == OpKind::kReduce) domain = node.inputs[0].type().shape;
  TensorList geometries;
  std::vector<const TensorImpl*> inputs, outputs;
  auto add = [&](const Type& type) {
    const IntList sizes = type.shape.numbers();
    const bool full = type.shape.same_as(domain);
    geometries.push_back(
        geometry_of(type.dtype, sizes, full ? format_strides("test", sizes, order) : contiguous_strides(sizes), cpu()));
  };
  for (auto& v : body.inputs()) add(v.type());
  for (auto& v : body.outputs()) add(v.type());
  for (size_t i = 0; i < geometries.size(); ++i)
    (i < body.inputs().size() ? inputs : outputs).push_back(&geometries[i].impl());
  FusedAttrs attrs{.domain = domain, .inner = inner};
  attrs.body = SubGraph(std::move(body));
  return emit_gpu_nest(attrs, inputs, outputs, {gpu_target(32), [=] { return multiprocessors; }});
}

// The sums of an image and of its squares along its rows.
GpuNest sums(const IntList& sizes, DType dtype, MemoryFormat order, int multiprocessors) {
  const Shape shape{std::span<const int64_t>(sizes)};
  std::string type = format("{}{}", to_string(dtype), shape), row = format("f32{}", Shape(shape.begin(), shape.end() - 1));
  Graph body = Graph::parse("%0 = input : " + type + "\n%1 = _to_copy(%0) {dtype=f32} : f32" + to_string(shape) +
                            "\n%2 = mul(%1, %1) : f32" + to_string(shape) + "\n%3 = sum(%1) {dims=[3]} : " + row +
                            "\n%4 = sum(%2) {dims=[3]} : " + row + "\nreturn %3, %4");
  return kernel_of(std::move(body), 1, order, multiprocessors);
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(ColumnKernels, ManyChannelsAreTakenInVectors) {
  GpuNest nest = sums({64, 64, 56, 56}, kBFloat16, MemoryFormat::kChannelsLast, 132);
  EXPECT_EQ(nest.kernel.spread, Spread::kColumns);
  EXPECT_EQ(nest.kernel.lanes, 8);
  EXPECT_EQ(nest.range, 64 * 56 * 64 / 8);
  EXPECT_EQ(nest.work, 56);
  EXPECT_EQ(sums({64, 64, 56, 56}, kFloat32, MemoryFormat::kChannelsLast, 132).kernel.lanes, 4);
  // A last vector that is not whole is one more.
  EXPECT_EQ(sums({64, 66, 56, 56}, kBFloat16, MemoryFormat::kChannelsLast, 132).range, 64 * 56 * 9);
}

// What a product of one row computes before it starts, with its dimensions of one place left out, is all of the row.
TEST(Prologues, OfOneRowAreWhole) {
  Graph body = Graph::parse("%0 = input : f32[1, 1, 48]\n%1 = silu(%0) : f32[1, 1, 48]\nreturn %1");
  FusedAttrs attrs{.body = SubGraph(std::move(body)), .domain = {1, 1, 48}};
  // Half of a row of 96.
  Tensor half = geometry_of(kFloat32, {1, 1, 48}, {96, 96, 1}, cpu()), whole = geometry_of(kFloat32, {1, 1, 48}, {48, 48, 1}, cpu());
  const TensorImpl *in = &half.impl(), *out = &whole.impl();
  EXPECT_EQ(emit_gpu_prologue(attrs, {&in, 1}, {&out, 1}, "k_p", gpu_target(32)).range, 48);
}

TEST(ColumnKernels, FewAreTakenOneByOne) {
  GpuNest nest = sums({2, 64, 4, 1000}, kBFloat16, MemoryFormat::kChannelsLast, 132);
  EXPECT_EQ(nest.kernel.lanes, 1);
}

TEST(ColumnKernels, WhatIsSummedUpIsStoredOnTheWay) {
  // The gradient of a ReLU and its sums, as backward of a batch norm wants them: everything is read once.
  GpuNest nest = kernel_of(Graph::parse(R"(
%0 = input : bf16[64, 256, 14, 14]
%1 = input : bool[64, 256, 14, 14]
%2 = scalar : weak i64[]
%3 = where(%1, %0, %2) : bf16[64, 256, 14, 14]
%4 = _to_copy(%3) : f32[64, 256, 14, 14]
%5 = sum(%4) {dims=[2, 3]} : f32[64, 256]
%6 = input : bf16[64, 256, 14, 14]
%7 = mul(%4, %6) : f32[64, 256, 14, 14]
%8 = sum(%7) {dims=[2, 3]} : f32[64, 256]
return %3, %5, %8)"),
                           2, MemoryFormat::kChannelsLast);
  EXPECT_EQ(nest.kernel.spread, Spread::kColumns);
  EXPECT_EQ(nest.kernel.lanes, 8);
  EXPECT_EQ(nest.work, 14 * 14);
  EXPECT_EQ(count(nest.kernel.text, " load<k::bf16>("), 2) << nest.kernel.text;
  EXPECT_EQ(count(nest.kernel.text, " store<k::bf16>("), 1) << nest.kernel.text;
  // Height and width are one axis: a step is an addition.
  EXPECT_EQ(count(nest.kernel.text, "rest_of_place_"), 0) << nest.kernel.text;
}

TEST(ColumnKernels, WhatIsReducedIsWalkedAsItLies) {
  auto squares = [](const std::string& shape) {
    return kernel_of(Graph::parse("%0 = input : bf16" + shape + "\n%1 = _to_copy(%0) : f32" + shape +
                                  "\n%2 = square(%1) : f32" + shape + "\n%3 = sum(%2) {dims=[1, 2, 3]} : f32[512]\nreturn %3"),
                     3, MemoryFormat::kChannelsLast);
  };
  // Also where planes are of one place, which is no axis.
  for (std::string shape : {"[512, 256, 3, 3]", "[512, 256, 1, 1]"}) {
    GpuNest nest = squares(shape);
    EXPECT_EQ(nest.kernel.spread, Spread::kRows) << shape;
    EXPECT_EQ(nest.kernel.lanes, 8) << shape;
    EXPECT_EQ(count(nest.kernel.text, "for (i32"), 1) << nest.kernel.text;  // elements of the end: no axis around the vectors
  }
}

TEST(ColumnKernels, ThreadsShareShortPiecesOfARow) {
  // What sums of parts are added up by: a row is many pieces, none of which is work for a warp.
  GpuNest nest = kernel_of(Graph::parse(R"(
%0 = input : f32[256, 64, 56]
%1 = permute(%0) {dims=[1, 0, 2]} : f32[64, 256, 56]
%2 = sum(%1) {dims=[1, 2]} : f32[64]
return %2)"),
                           2, MemoryFormat::kContiguous);
  EXPECT_EQ(nest.kernel.lanes, 1);
  EXPECT_EQ(nest.work, 256 * 56);
}

TEST(ColumnKernels, RowsAlongMemoryStayRows) {
  EXPECT_EQ(sums({64, 64, 56, 56}, kBFloat16, MemoryFormat::kContiguous, 132).kernel.spread, Spread::kRows);
}

}  // namespace
}  // namespace sinter
