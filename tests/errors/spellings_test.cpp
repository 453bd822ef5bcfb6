// Spellings and helpers of LibTorch's C++ API, with the values that PyTorch gives.
#include <sstream>

#include "sinter/capture/compiler.h"
#include "sinter/io/safetensors.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

Tensor counted() { return arange(6, kFloat32).view({2, 3}); }

TEST(Spellings, WhatATensorIs) {
  Tensor x = counted();
  EXPECT_EQ(x.ndimension(), 2);
  EXPECT_EQ(x.ndim(), 2);
  EXPECT_EQ(x.nbytes(), 24);
  EXPECT_EQ(x.itemsize(), 4);
  EXPECT_TRUE(x.is_signed());
  EXPECT_FALSE(x.to(kUInt8).is_signed());
  EXPECT_TRUE(x.is_cpu());
  EXPECT_EQ(x.sizes().vec(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(x.strides().vec(), (std::vector<int64_t>{3, 1}));
  int64_t product = 1;
  for (int64_t size : x.sizes()) product *= size;
  EXPECT_EQ(product, 6);
  EXPECT_EQ(x.sum().item().to<int>(), 15);
  EXPECT_EQ(x.sum().item().toDouble(), 15.0);
  EXPECT_TRUE(x.sum().item().isFloatingPoint());
  x.reset();
  EXPECT_FALSE(x.defined());
}

TEST(Spellings, Memory) {
  Tensor x = counted();
  Tensor turned = x.transpose(0, 1);
  auto a = turned.accessor<float, 2>();
  EXPECT_EQ(a.size(0), 3);
  EXPECT_EQ(a[2][1], 5);
  a[0][1] = 9;
  EXPECT_EQ(x.const_data_ptr<float>()[3], 9);
  EXPECT_EQ(x.data<float>(), x.mutable_data_ptr<float>());
  EXPECT_TRUE(x.data().is_alias_of(x));
  EXPECT_ERROR_TEXT((x.accessor<float, 3>()), "accessor", "3 dimensions");
  EXPECT_ERROR_TEXT((x.accessor<double, 2>()), "accessor", "f64");

  float memory[] = {0, 1, 2, 3, 4, 5};
  EXPECT_TRUE(has_values(from_blob(memory, {2, 2}, {1, 3}), {0, 3, 1, 4}));
  int freed = 0;
  auto free = [&](void* data) { freed += data == memory; };
  EXPECT_TRUE(has_values(from_blob(memory, {3}, {2}, free), {0, 2, 4}));
  EXPECT_TRUE(has_values(from_blob(memory, {3}, free, kFloat32), {0, 1, 2}));
  EXPECT_EQ(freed, 2);
  EXPECT_ERROR_TEXT(from_blob(memory, {3}, {2, 1}), "from_blob", "2 strides");

  Tensor bits = tensor({1.0, -2.0}).view(kInt32);
  EXPECT_TRUE(has_values(bits, {0x3f800000, -1073741824}));
  EXPECT_TRUE(has_values(bits.view(kInt16), {0, 0x3f80, 0, -16384}));
  EXPECT_TRUE(has_values(bits.view(kInt16).view(kFloat32), {1, -2}));
  EXPECT_ERROR_TEXT(tensor({1, 2, 3}, kInt16).view(kInt32), "view", "multiple of 4 bytes");
}

TEST(Spellings, Conversions) {
  Tensor x = counted();
  EXPECT_EQ(x.toType(kLong).dtype(), kInt64);
  EXPECT_EQ(x.to(dtype(kDouble)).dtype(), kFloat64);
  EXPECT_TRUE(x.to(kFloat).is_same(x));
  EXPECT_FALSE(x.to(kFloat, false, true).is_alias_of(x));
  EXPECT_TRUE(x.to(TensorOptions()).is_same(x));
  EXPECT_EQ(x.to(tensor({1})).dtype(), kInt64);
  EXPECT_EQ(x.to(kCPU, kHalf, true).dtype(), kFloat16);
  EXPECT_EQ(zeros({2}, dtype(kFloat).device(kCPU).requires_grad(true)).requires_grad(), true);
  EXPECT_EQ(zeros_like(x, kInt64).dtype(), kInt64);
  EXPECT_EQ(zeros_like(x.to(kHalf), device(kCPU)).dtype(), kFloat16);
  EXPECT_EQ(finfo(kFloat).eps, 1.1920928955078125e-07);
  EXPECT_EQ(finfo(kHalf).max, 65504);
  EXPECT_EQ(finfo(kBFloat16).tiny, 1.1754943508222875e-38);
  EXPECT_EQ(finfo(kDouble).max, 1.7976931348623157e308);
  EXPECT_EQ(iinfo(kInt8).min, -128);
  EXPECT_EQ(iinfo(kInt64).max, INT64_MAX);
  EXPECT_EQ(iinfo(kUInt8).max, 255);
  EXPECT_ERROR_TEXT(finfo(kInt32), "finfo", "iinfo");
}

TEST(Spellings, NewTensors) {
  Tensor x = counted().to(kDouble);
  EXPECT_EQ(x.new_zeros({2}).dtype(), kFloat64);
  EXPECT_EQ(x.new_empty({2, 1}, kInt64).dtype(), kInt64);
  EXPECT_TRUE(has_values(x.new_full({2}, 3), {3, 3}));
  EXPECT_EQ(x.new_full({2}, 3).dtype(), kFloat64);
  EXPECT_TRUE(has_values(x.new_tensor(tensor({1, 2})), {1, 2}));
  EXPECT_EQ(tensor({{{1, 2}, {3, 4}}}).sizes(), Shape({1, 2, 2}));
  EXPECT_EQ(tensor({{{{1.0}}}}, kDouble).dtype(), kFloat64);
  EXPECT_EQ(tensor({{{{{true, false}}}}}).sizes(), Shape({1, 1, 1, 1, 2}));
  EXPECT_EQ(tensor({2.0}, requires_grad()).requires_grad(), true);
  EXPECT_EQ(arange(3, device(kCPU)).dtype(), kInt64);
  EXPECT_EQ(zeros({1}, device(kCPU)).dtype(), kFloat32);
  EXPECT_EQ(randint(3, {1}, device(kCPU)).dtype(), kInt64);
  EXPECT_ERROR_TEXT(tensor({{{1, 2}, {3, 4}}, {{1, 2}, {3}}}), "2 and 1");
}

TEST(Spellings, Reductions) {
  Tensor x = counted();
  EXPECT_EQ(x.sum(kDouble).dtype(), kFloat64);
  EXPECT_EQ(x.sum(1, true, kDouble).sizes(), Shape({2, 1}));
  EXPECT_EQ(arange(4).mean(kFloat).item<float>(), 1.5);
  EXPECT_TRUE(has_values(x.norm(1, 1, true), {3, 12}));
  EXPECT_EQ(x.norm(2, {0}, false, kDouble).dtype(), kFloat64);
  EXPECT_EQ(x.norm(2, kDouble).dtype(), kFloat64);
  EXPECT_FLOAT_EQ(x.var(false).item<float>(), 35.0f / 12);
  EXPECT_TRUE(has_values(x.var(0), {4.5, 4.5, 4.5}));
  EXPECT_TRUE(has_values(x.std(1, false), {std::sqrt(2.0f / 3), std::sqrt(2.0f / 3)}));
  auto at = where(x > 3);
  EXPECT_EQ(at.size(), 2u);
  EXPECT_TRUE(has_values(at[1], {1, 2}));
}

TEST(Spellings, Pieces) {
  Tensor x = arange(7);
  EXPECT_EQ(x.split({2, 5}).size(), 2u);
  EXPECT_TRUE(has_values(x.split({2, 5})[1], {2, 3, 4, 5, 6}));
  EXPECT_EQ(x.split(3).size(), 3u);
  EXPECT_EQ(x.split(std::vector<int64_t>{3, 4})[0].size(0), 3);
  auto thirds = x.tensor_split(3);
  EXPECT_TRUE(has_values(thirds[0], {0, 1, 2}));
  EXPECT_TRUE(has_values(thirds[2], {5, 6}));
  auto cut = x.tensor_split({2, 9});
  EXPECT_TRUE(has_values(cut[1], {2, 3, 4, 5, 6}));
  EXPECT_EQ(cut[2].numel(), 0);
  EXPECT_EQ(zeros({2, 3, 4}).moveaxis(0, 2).sizes(), Shape({3, 4, 2}));
  EXPECT_EQ(zeros({2, 3}).swapaxes(0, 1).sizes(), Shape({3, 2}));
}

TEST(Spellings, Indexing) {
  using namespace indexing;
  Tensor x = counted();
  EXPECT_TRUE(has_values(x.index({Slice(), std::vector<int64_t>{2, 0}}), {2, 0, 5, 3}));
  EXPECT_EQ(x.index({true}).sizes(), Shape({1, 2, 3}));
  EXPECT_EQ(x.index({false}).sizes(), Shape({0, 2, 3}));
  EXPECT_TRUE(has_values(x.where(x > 2, -x), {0, -1, -2, 3, 4, 5}));
  EXPECT_TRUE(has_values(x.put(tensor({1, 5}), tensor({8.0, 9.0})), {0, 8, 2, 3, 4, 9}));
  EXPECT_TRUE(has_values(x.clone().put_(tensor({0, 0}), tensor({1.0, 2.0}), true), {3, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(has_values(x.clone().scatter_(1, tensor({{0}, {0}}), 10, "add"), {10, 1, 2, 13, 4, 5}));
  EXPECT_TRUE(has_values(x.clone().masked_scatter_(x > 3, tensor({7.0, 8.0})), {0, 1, 2, 3, 7, 8}));
  EXPECT_TRUE(has_values(x.clamp(1, x.size(1)), {1, 1, 2, 3, 3, 3}));
  EXPECT_TRUE(has_values(zeros({5, 2}).fill_diagonal_(1, true), {1, 0, 0, 1, 0, 0, 1, 0, 0, 1}));
  EXPECT_TRUE(has_values(zeros({2, 2, 2}).fill_diagonal_(1), {1, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Spellings, Truth) {
  Tensor x = tensor({true, true, false}), y = tensor({true, false, false});
  EXPECT_TRUE(has_values(x && y, {1, 0, 0}));
  EXPECT_TRUE(has_values(x || y, {1, 1, 0}));
  EXPECT_TRUE(has_values(!x, {0, 0, 1}));
  EXPECT_TRUE(has_values(x && true, {1, 1, 0}));
  EXPECT_TRUE(has_values(0 || tensor({2.0, 0.0}), {1, 0}));
}

TEST(Spellings, ShapesInPlace) {
  Tensor x = counted(), same = x;
  x.unsqueeze_(0).transpose_(1, 2);
  EXPECT_EQ(same.sizes(), Shape({1, 3, 2}));
  EXPECT_TRUE(has_values(same, {0, 3, 1, 4, 2, 5}));
  x.squeeze_(0).t_();
  EXPECT_TRUE(has_values(same, {0, 1, 2, 3, 4, 5}));
  x.resize_({4});
  EXPECT_TRUE(has_values(same, {0, 1, 2, 3}));
  EXPECT_ERROR_TEXT(x.resize_({9}), "resize_", "empty([9])");
  EXPECT_ERROR_TEXT(ones({2}, requires_grad()).unsqueeze_(0), "unsqueeze_", "x = x.unsqueeze(dim)");
}

TEST(Spellings, ModesByName) {
  auto f = compile([](const Tensor& x) { return x.exp(); }, {.mode = "reduce-overhead"});
  EXPECT_EQ(f(zeros({2})).sum().item<float>(), 2);
  EXPECT_ERROR_TEXT(CompileOptions{.mode = "fast"}, "fast");
}

// An empty pair of braces is no dtype: it names no dimensions, or the shape of a number.
TEST(Spellings, EmptyListsAreLists) {
  Tensor x = ones({2, 3});
  EXPECT_EQ(x.sum({}).item<float>(), 6);
  EXPECT_EQ(x.sum({}).dtype(), kFloat32);
  EXPECT_EQ(x.mean({}).dtype(), kFloat32);
  EXPECT_EQ(sum(x, {}).dtype(), kFloat32);
  EXPECT_EQ(ones({1}).view({}).dim(), 0);
  EXPECT_EQ(view(ones({1, 1}), {}).dim(), 0);
  EXPECT_EQ(x.sum(kFloat64).dtype(), kFloat64);
  EXPECT_EQ(x.view(kInt32).dtype(), kInt32);
}

// What the lines of tests/idioms do not show: the errors, and what belongs to Sinter alone.
TEST(Spellings, DevicesFromTexts) {
  EXPECT_EQ(Device("cuda:1"), Device(kCUDA, 1));
  EXPECT_EQ(Device("hip").str(), "hip:0");
  EXPECT_ERROR_TEXT(Device("gpu"), "gpu", "write 'cpu'");
}

TEST(Spellings, ShapesAndListsAreOneAnother) {
  Shape shape = IntList{2, 3};
  IntList list = shape;
  EXPECT_TRUE(shape == list && shape == (std::vector<int64_t>{2, 3}) && list.slice(1) == IntList{3});
  EXPECT_EQ(shape.slice(0, 1), Shape({2}));
}

TEST(Spellings, ABoolInFrontOfADimensionAsksForAStableSort) {
  Tensor x = tensor({3.0, 1.0, 2.0});
  EXPECT_EQ(std::get<1>(x.sort(true, 0, true)).to_vector<int64_t>(), (Ints{0, 2, 1}));
  EXPECT_EQ(std::get<1>(x.sort(0, true)).to_vector<int64_t>(), (Ints{0, 2, 1}));
  EXPECT_EQ(argsort(x, false, -1).to_vector<int64_t>(), (Ints{1, 2, 0}));
}

TEST(Spellings, ErrorsOfNewNames) {
  EXPECT_ERROR(ones({3}).mT(), "mT", "[3]");
  EXPECT_ERROR(range(0, 1, 0), "range", "the step is zero");
  EXPECT_ERROR(range(1, 0), "range", "no steps of 1 lead from 1 to 0");
  NamedTensors named = {{"a", ones({1})}};
  EXPECT_ERROR_TEXT(named["b"], "no key 'b'");
  EXPECT_ERROR_TEXT(named.insert("a", ones({1})), "there already");
}

// A pointwise op that works in place has overwritten what its gradient would look at: the result tells the same.
TEST(Spellings, InPlaceActivationsHaveGradients) {
  Tensor x = tensor({-1.5, 0.5, 7.0}, requires_grad());
  auto grad_of = [&](auto f) { return autograd::grad({f(x * 2).sum()}, {x})[0].template to_vector<float>(); };
  EXPECT_EQ(grad_of([](Tensor y) { return y.leaky_relu_(0.1); }), grad_of([](Tensor y) { return leaky_relu(y, 0.1); }));
  EXPECT_EQ(grad_of([](Tensor y) { return y.leaky_relu_(0); }), grad_of([](Tensor y) { return leaky_relu(y, 0); }));
  EXPECT_EQ(grad_of([](Tensor y) { return y.elu_(); }), grad_of([](Tensor y) { return elu(y); }));
  EXPECT_EQ(grad_of([](Tensor y) { return y.celu_(-2); }), grad_of([](Tensor y) { return celu(y, -2); }));
  EXPECT_EQ(grad_of([](Tensor y) { return y.selu_(); }), grad_of([](Tensor y) { return selu(y); }));
  EXPECT_EQ(grad_of([](Tensor y) { return y.relu6_(); }), grad_of([](Tensor y) { return relu6(y); }));
}

}  // namespace
}  // namespace sinter
