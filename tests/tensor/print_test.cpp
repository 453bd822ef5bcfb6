// Expected texts are PyTorch's, but for the names of types and the `shape=` of long tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "sinter/tensor/tensor.h"

namespace sinter {
namespace {

Tensor counting(const Shape& shape, double shift = 0, double scale = 1, DType dtype = kFloat32) {
  Tensor t = empty(shape, dtype);
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.numel().number(); ++i)
      static_cast<T*>(t.data_ptr())[i] = T(float(double(i) * scale + shift));
  });
  return t;
}

TEST(Print, SmallTensors) {
  EXPECT_EQ(to_string(tensor({{1.0, 2.0}, {3.0, 4.0}})), "tensor([[1., 2.],\n        [3., 4.]])");
  EXPECT_EQ(to_string(tensor({1, -20, 300})), "tensor([  1, -20, 300])");
  EXPECT_EQ(to_string(tensor(3.0)), "tensor(3.)");
  EXPECT_EQ(to_string(tensor(2.5)), "tensor(2.5000)");
  EXPECT_EQ(to_string(tensor(7)), "tensor(7)");
  EXPECT_EQ(to_string(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(to_string(tensor({0.0, 0.0})), "tensor([0., 0.])");
  EXPECT_EQ(to_string(tensor({-1.5, 2.25})), "tensor([-1.5000,  2.2500])");
  EXPECT_EQ(to_string(counting({2, 2, 2})),
            "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])");
}

TEST(Print, NonFinite) {
  double nan = NAN, inf = INFINITY;
  EXPECT_EQ(to_string(tensor({nan, inf, -inf, 1.5})), "tensor([   nan,    inf,   -inf, 1.5000])");
  EXPECT_EQ(to_string(tensor({-nan, 2.0})), "tensor([nan, 2.])");
  EXPECT_EQ(to_string(tensor({0.0, inf})), "tensor([0., inf])");
}

TEST(Print, ScientificNotation) {
  EXPECT_EQ(to_string(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(to_string(tensor({1.0, 2000.0})), "tensor([1.0000e+00, 2.0000e+03])");
  EXPECT_EQ(to_string(tensor({1.5, 2000.0})), "tensor([1.5000e+00, 2.0000e+03])");
  EXPECT_EQ(to_string(tensor({1e9, 2e9})), "tensor([1.0000e+09, 2.0000e+09])");
  EXPECT_EQ(to_string(tensor({1e-8, -3.25e4})), "tensor([ 1.0000e-08, -3.2500e+04])");
  EXPECT_EQ(to_string(tensor({1.0, 1000.0})), "tensor([   1., 1000.])");
}

TEST(Print, Empty) {
  EXPECT_EQ(to_string(empty({0})), "tensor([])");
  EXPECT_EQ(to_string(empty({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(to_string(empty({0}, kInt64)), "tensor([], dtype=i64)");
}

TEST(Print, WrapsLines) {
  EXPECT_EQ(to_string(counting({24}, -0.5)),
            "tensor([-0.5000,  0.5000,  1.5000,  2.5000,  3.5000,  4.5000,  5.5000,  6.5000,\n"
            "         7.5000,  8.5000,  9.5000, 10.5000, 11.5000, 12.5000, 13.5000, 14.5000,\n"
            "        15.5000, 16.5000, 17.5000, 18.5000, 19.5000, 20.5000, 21.5000, 22.5000])");
  EXPECT_EQ(to_string(counting({30}, 0, 1000, kInt64)),
            "tensor([    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,  9000,\n"
            "        10000, 11000, 12000, 13000, 14000, 15000, 16000, 17000, 18000, 19000,\n"
            "        20000, 21000, 22000, 23000, 24000, 25000, 26000, 27000, 28000, 29000])");
}

TEST(Print, CutsLongTensors) {
  EXPECT_EQ(to_string(counting({2000})),
            "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n"
            "        1.9990e+03], dtype=f32, shape=[2000])");
  EXPECT_EQ(to_string(counting({30, 40}, 0, 1, kInt64)),
            "tensor([[   0,    1,    2,  ...,   37,   38,   39],\n"
            "        [  40,   41,   42,  ...,   77,   78,   79],\n"
            "        [  80,   81,   82,  ...,  117,  118,  119],\n"
            "        ...,\n"
            "        [1080, 1081, 1082,  ..., 1117, 1118, 1119],\n"
            "        [1120, 1121, 1122,  ..., 1157, 1158, 1159],\n"
            "        [1160, 1161, 1162,  ..., 1197, 1198, 1199]], dtype=i64, shape=[30, 40])");
  EXPECT_EQ(to_string(counting({9}), {.edge_items = 1, .threshold = 5, .precision = 2, .line_width = 80}),
            "tensor([0.,  ..., 8.], dtype=f32, shape=[9])");
  EXPECT_EQ(to_string(counting({9, 2}), {.edge_items = 0, .threshold = 5, .precision = 2, .line_width = 80}),
            "tensor([...], dtype=f32, shape=[9, 2])");
}

TEST(Print, NamesUnusualTypes) {
  EXPECT_EQ(to_string(tensor({{1, 2}, {3, 4}}, kBFloat16)),
            "tensor([[1., 2.],\n        [3., 4.]], dtype=bf16, shape=[2, 2])");
  EXPECT_EQ(to_string(tensor(1, kInt8)), "tensor(1, dtype=i8)");
  EXPECT_EQ(to_string(tensor({0.5}, kFloat64)), "tensor([0.5000], dtype=f64, shape=[1])");
  EXPECT_EQ(to_string(counting({2, 12}, 0.5, 1, kFloat16)),
            "tensor([[ 0.5000,  1.5000,  2.5000,  3.5000,  4.5000,  5.5000,  6.5000,  7.5000,\n"
            "          8.5000,  9.5000, 10.5000, 11.5000],\n"
            "        [12.5000, 13.5000, 14.5000, 15.5000, 16.5000, 17.5000, 18.5000, 19.5000,\n"
            "         20.5000, 21.5000, 22.5000, 23.5000]], dtype=f16, shape=[2, 12])");
}

TEST(Print, FollowsStrides) {
  Tensor t = make_view(tensor({0, 1, 2, 3, 4, 5}), {3, 2}, {1, 3}, 0);
  EXPECT_EQ(to_string(t), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
  std::ostringstream out;
  out << make_view(t, {2}, {2}, 1);
  EXPECT_EQ(out.str(), "tensor([1, 3])");
}

TEST(Print, WithoutValues) {
  EXPECT_EQ(to_string(Tensor()), "Tensor(undefined)");
  auto impl = make_intrusive<TensorImpl>();
  impl->traced = make_intrusive<TracedValue>();
  impl->traced_shape = {2, Dim::symbol("s0")};
  EXPECT_EQ(to_string(Tensor(impl)), "Tensor(f32[2, s0], traced)");
}

}  // namespace
}  // namespace sinter
