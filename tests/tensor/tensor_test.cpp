#include "sinter/tensor/tensor.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/tracer.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

#define EXPECT_ERROR(statement, text) EXPECT_PRED2(contains, message_of([&] { statement; }), text)
bool contains(const std::string& whole, const std::string& part) { return whole.find(part) != std::string::npos; }

struct SomeValue : TracedValue {};

Tensor traced(const Shape& shape) {
  auto impl = make_intrusive<TensorImpl>();
  impl->traced = make_intrusive<SomeValue>();
  impl->traced_shape = shape;
  return Tensor(impl);
}

TEST(Tensor, EmptyHasTheShapeAskedFor) {
  Tensor t = empty({2, 3, 4}, kInt16);
  EXPECT_EQ(t.dim(), 3);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.size(0), 2);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_TRUE(t.sizes().same_as({2, 3, 4}));
  EXPECT_EQ(t.strides(), (IntList{12, 4, 1}));
  EXPECT_EQ(t.stride(-2), 4);
  EXPECT_EQ(t.dtype(), kInt16);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(uintptr_t(t.data_ptr()) % 64, 0u);
  EXPECT_EQ(t.impl().buffer->bytes(), 48u);
  EXPECT_EQ(empty({}).numel(), 1);
  EXPECT_EQ(empty({0, 5}).numel(), 0);
  EXPECT_TRUE(empty({3}, TensorOptions().requires_grad(true)).impl().requires_grad);
}

TEST(Tensor, EmptyRefusesImpossibleShapes) {
  EXPECT_ERROR(empty({-1, 2}), "empty: a size is negative: [-1, 2]");
  EXPECT_ERROR(empty({1ll << 40, 1ll << 40}), "empty: the sizes [1099511627776, 1099511627776] overflow");
  EXPECT_EQ(empty({1ll << 40, 0, 1ll << 40}).numel(), 0);
  EXPECT_THROW(empty({1ll << 55}), OutOfMemoryError);
  EXPECT_ERROR(empty({1ll << 55}, kFloat64), "empty: no memory for a tensor f64[36028797018963968]: out of memory");
  EXPECT_ERROR(empty({2}, cuda(1)), "device cuda:1 is not available");
  EXPECT_ERROR(empty({2}, TensorOptions(kInt64).requires_grad(true)), "i64 cannot require a gradient");
}

TEST(Tensor, UndefinedIsAnError) {
  Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_ERROR(t.dtype(), "undefined");
  EXPECT_ERROR(t.size(0), "undefined");
}

TEST(Tensor, SizeNamesTheRankAndTheCallersLine) {
  Tensor t = empty({2, 3});
  EXPECT_ERROR(t.size(2), "size: dimension 2 is out of range for a tensor of 2 dimensions");
  EXPECT_ERROR(t.size(-3), "dimension -3");
  EXPECT_ERROR(empty({}).size(0), "0 dimensions");
  EXPECT_ERROR(empty({}).stride(0), "0 dimensions");
  try {
    t.size(7);
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(contains(e.where(), "tensor_test.cpp:")) << e.where();
  }
  EXPECT_EQ(UserPosition::current(), nullptr);
}

TEST(Tensor, ChannelsLast) {
  Tensor t = empty({2, 3, 4, 5}, {}, kChannelsLast);
  EXPECT_EQ(t.strides(), (IntList{60, 1, 15, 3}));
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_contiguous(kChannelsLast));
  EXPECT_FALSE(t.is_contiguous(kChannelsLast3d));
  EXPECT_EQ(empty({2, 3, 4, 5, 6}, {}, kChannelsLast3d).strides(), (IntList{360, 1, 90, 18, 3}));
  Tensor both = empty({2, 1, 4, 5}, {}, kChannelsLast);
  EXPECT_TRUE(both.is_contiguous());
  EXPECT_TRUE(empty({2, 1, 4, 5}).is_contiguous(kChannelsLast));
  EXPECT_FALSE(empty({2, 3, 4, 5}).is_contiguous(kChannelsLast));
  EXPECT_FALSE(empty({3}).is_contiguous(kChannelsLast));
  EXPECT_ERROR(empty({2, 3}, {}, kChannelsLast), "empty: the memory format channels_last needs 4 dimensions");
  EXPECT_ERROR(empty({2}).is_contiguous(kPreserve), "preserve");
}

TEST(Tensor, EmptyStrided) {
  Tensor t = empty_strided({2, 3}, {1, 2});
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.impl().buffer->bytes(), 24u);
  EXPECT_EQ(empty_strided({4, 3}, {0, 1}).impl().buffer->bytes(), 12u);
  EXPECT_EQ(empty_strided({0, 3}, {100, 1}).impl().buffer->bytes(), 0u);
  EXPECT_TRUE(empty_strided({1, 3}, {77, 1}).is_contiguous());
  EXPECT_ERROR(empty_strided({2, 3}, {1}), "1 strides for the shape [2, 3]");
  EXPECT_ERROR(empty_strided({2}, {-1}), "negative");
  EXPECT_ERROR(empty_strided({1 << 30, 2}, {1ll << 40, 1}), "overflows");
}

TEST(Tensor, FromDataCopiesAndChecks) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  Tensor t = from_data(values, {2, 3});
  values[0] = 9;
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(t.data_ptr<float>()[5], 6);
  EXPECT_ERROR(from_data(values, {4, 2}), "from_data: 6 values do not fill the shape [4, 2], which has 8 elements");
  EXPECT_ERROR(t.data_ptr<double>(), "data_ptr: asked for elements of f64, the tensor holds f32");
  Tensor flags = from_data(std::vector<bool>{true, false, true}, {3});
  EXPECT_EQ(flags.dtype(), kBool);
  EXPECT_EQ(flags.to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(flags.to_vector<int>(), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(from_data(std::vector<float>(), {0, 2}).numel(), 0);
}

TEST(Tensor, FromBlobBorrowsAndTellsWhenDone) {
  int released = 0;
  alignas(8) double memory[4] = {1, 2, 3, 4};
  {
    Tensor view;
    {
      Tensor t = from_blob(memory, {2, 2}, kFloat64, [&] { ++released; });
      EXPECT_EQ(t.data_ptr(), memory);
      view = make_view(t, {2}, {2}, 1);
      EXPECT_TRUE(view.is_alias_of(t));
      EXPECT_FALSE(view.is_same(t));
    }
    EXPECT_EQ(released, 0);
    memory[3] = 7;
    EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{2, 7}));
  }
  EXPECT_EQ(released, 1);
  EXPECT_ERROR(from_blob(nullptr, {2}), "null");
  EXPECT_ERROR(from_blob(reinterpret_cast<char*>(memory) + 1, {2}), "not aligned to the 4 bytes of f32");
}

TEST(Tensor, ViewsReadThroughTheirStrides) {
  Tensor t = tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Tensor transposed = make_view(t, {4, 3}, {1, 4}, 0);
  EXPECT_FALSE(transposed.is_contiguous());
  EXPECT_EQ(transposed.to_vector<int>(), (std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  Tensor inner = make_view(t, {2, 1, 2}, {6, 99, 2}, 1);
  EXPECT_EQ(inner.to_vector<float>(), (std::vector<float>{1, 3, 7, 9}));
  EXPECT_EQ(inner.storage_offset(), 1);
  Tensor one = make_view(t, {}, {}, 5);
  EXPECT_TRUE(one.is_contiguous());
  EXPECT_EQ(one.item<int>(), 5);
  EXPECT_EQ(make_view(t, {3, 0}, {7, 7}, 3).to_vector<int>().size(), 0u);
  Tensor repeated = make_view(t, {3}, {0}, 2);
  EXPECT_EQ(repeated.to_vector<int64_t>(), (std::vector<int64_t>{2, 2, 2}));
}

TEST(Tensor, LiteralsTakePyTorchsTypes) {
  EXPECT_EQ(tensor({1, 2}).dtype(), kInt64);
  EXPECT_EQ(tensor({1.5, 2.0}).dtype(), kFloat32);
  EXPECT_EQ(tensor({1.5f}).dtype(), kFloat32);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor({uint8_t(200)}).item<int>(), 200);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(tensor(2.5).item<double>(), 2.5);
  EXPECT_EQ(tensor({1.1}, kFloat64).item<double>(), 1.1);
  EXPECT_EQ(tensor({1, 0, 2}, kBool).to_vector<int>(), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(tensor({1.0, 257.0}, kBFloat16).to_vector<float>(), (std::vector<float>{1, 256}));
  Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_TRUE(m.sizes().same_as({2, 3}));
  EXPECT_EQ(m.to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_ERROR(tensor({{1, 2}, {3}}), "rows of 2 and 1 values");
  EXPECT_EQ(scalar_tensor(2).dtype(), kInt64);
  EXPECT_EQ(scalar_tensor(2.0).dtype(), kFloat32);
  EXPECT_EQ(scalar_tensor(true).dtype(), kBool);
  EXPECT_EQ(scalar_tensor(2, kFloat16).item<double>(), 2);
}

TEST(Tensor, ItemReadsEveryType) {
  for (int d = 0; d < kDTypeCount; ++d) {
    Tensor t = scalar_tensor(1, DType(d));
    EXPECT_EQ(t.dtype(), DType(d));
    EXPECT_EQ(t.item<double>(), 1);
    EXPECT_EQ(t.item().is_floating(), is_floating(DType(d)));
    EXPECT_EQ(t.to_vector<Half>()[0].bits, 0x3c00);
    EXPECT_EQ(t.to_vector<BFloat16>()[0].bits, 0x3f80);
    EXPECT_EQ(t.to_vector<uint8_t>()[0], 1);
  }
  EXPECT_EQ(scalar_tensor(int64_t(1) << 60).item<int64_t>(), int64_t(1) << 60);
  EXPECT_ERROR(empty({2, 3}).item(), "item: the tensor of shape [2, 3] has 6 elements");
  EXPECT_EQ(tensor({{5}}).item<int>(), 5);
}

TEST(Tensor, TracedHasSizesButNoMemory) {
  Dim s0 = Dim::symbol("s0");
  Tensor t = traced({2, s0});
  EXPECT_EQ(t.dim(), 2);
  EXPECT_TRUE(t.size(1).same_as(s0));
  EXPECT_TRUE(t.numel().same_as(2 * s0));
  EXPECT_TRUE(t.sizes().same_as({2, s0}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.is_contiguous(kChannelsLast));
  EXPECT_ERROR(t.strides(), "strides: the tensor is a value of a graph that was being captured and has no memory");
  EXPECT_ERROR(t.stride(0), "no memory");
  EXPECT_ERROR(t.storage_offset(), "no memory");
  EXPECT_ERROR(t.data_ptr(), "no memory");
  EXPECT_ERROR(t.data_ptr<float>(), "no memory");
  EXPECT_ERROR(t.item(), "no memory");
  EXPECT_ERROR(t.to_vector<float>(), "no memory");
  EXPECT_TRUE(t.is_alias_of(t));
  EXPECT_FALSE(t.is_alias_of(empty({1})));
}

// Answers every question about a size with 3.
struct ThreeTracer : Tracer {
  std::vector<Tensor> record(const Op&, std::span<const TensorArg>, const Attrs&) override { return {}; }
  bool decide(DimCompare, const Dim&, const Dim&) override { return true; }
  int64_t specialize(const Dim&, const std::source_location*, const void*) override { return ++asked, 3; }
  int asked = 0;
};

TEST(Tensor, RealMemorySpecialisesSymbolicSizes) {
  ThreeTracer tracer;
  TracerScope scope(&tracer);
  EXPECT_EQ(empty({2, Dim::symbol("s0")}).strides(), (IntList{3, 1}));
  EXPECT_EQ(tracer.asked, 1);
}

}  // namespace
}  // namespace sinter
