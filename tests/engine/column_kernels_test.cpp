// Sums of channels that lie side by side in memory, as kernels of a GPU.
#include <gtest/gtest.h>

#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {
namespace {

// The sums of an image and of its squares along its rows, of channels-last memory, for a GPU with so many multiprocessors.
GpuNest sums(const IntList& sizes, DType dtype, MemoryFormat order, int multiprocessors) {
  const Shape shape{std::span<const int64_t>(sizes)};
  std::string type = format("{}{}", to_string(dtype), shape), row = format("f32{}", Shape(shape.begin(), shape.end() - 1));
  Graph body = Graph::parse("%0 = input : " + type + "\n%1 = _to_copy(%0) {dtype=f32} : f32" + to_string(shape) +
                            "\n%2 = mul(%1, %1) : f32" + to_string(shape) + "\n%3 = sum(%1) {dims=[3]} : " + row +
                            "\n%4 = sum(%2) {dims=[3]} : " + row + "\nreturn %3, %4");
  FusedAttrs attrs{.domain = shape, .inner = 1};
  attrs.body = SubGraph(std::move(body));
  IntList rows(sizes.begin(), sizes.end() - 1);
  Tensor in = geometry_of(dtype, sizes, format_strides("test", sizes, order), cpu()),
         out = geometry_of(kFloat32, rows, contiguous_strides(rows), cpu());
  const TensorImpl *inputs[] = {&in.impl()}, *outputs[] = {&out.impl(), &out.impl()};
  return emit_gpu_nest(attrs, inputs, outputs, {gpu_target(32), [=] { return multiprocessors; }});
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

TEST(ColumnKernels, FewAreTakenOneByOne) {
  GpuNest nest = sums({2, 64, 4, 1000}, kBFloat16, MemoryFormat::kChannelsLast, 132);
  EXPECT_EQ(nest.kernel.lanes, 1);
}

TEST(ColumnKernels, RowsAlongMemoryStayRows) {
  EXPECT_EQ(sums({64, 64, 56, 56}, kBFloat16, MemoryFormat::kContiguous, 132).kernel.spread, Spread::kRows);
}

}  // namespace
}  // namespace sinter
