// Products that read the codes of a quantised weight: when they do, and that they compute the same.
#include <gtest/gtest.h>

#include "sinter/nn/quantize.h"
#include "tests/passes/fuse_traced.h"

namespace sinter {
namespace {

Tensor codes_of(const Shape& sizes, DType dtype) {
  return randint(dtype == kInt8 ? -127 : 0, dtype == kInt8 ? 128 : 256, sizes, dtype);
}

DequantizeOptions uint4(int64_t group, DType dtype = kFloat32) {
  return DequantizeOptions().encoding(Encoding::kUInt4).group_size(group).dtype(dtype);
}

// x, codes, scale, zero.
TensorList operands(int64_t rows, int64_t in, int64_t out, int64_t group) {
  const int64_t groups = (in + group - 1) / group;
  return {normal({rows, in}), codes_of({out, in / 2}, kUInt8), rand({out, groups}) + 0.1,
          randint(0, 16, {out, groups}, kUInt8)};
}

TEST(EncodedWeights, AProductReadsThem) {
  auto f = [](const TensorList& x) { return TensorList{linear(x[0], dequantize(x[1], x[2], x[3], uint4(16)))}; };
  for (int64_t rows : {1, 5, 40}) {
    auto fused = fuse_traced(f, operands(rows, 48, 33, 16), 1e-3);
    EXPECT_EQ(fused.kernels, 1) << fused.graph.text();
  }
}

TEST(EncodedWeights, WithPrologueEpilogueAndSiblings) {
  auto f = [](const TensorList& x) {
    Tensor h = x[0] * (x[0].square().mean({-1}, true) + 1e-5).rsqrt();
    Tensor gate = linear(h, dequantize(x[1], x[2], x[3], uint4(16))), up = linear(h, dequantize(x[4], x[5]));
    return TensorList{silu(gate) * up};
  };
  for (int64_t rows : {1, 3, 70}) {
    TensorList given = operands(rows, 48, 33, 16);
    given.push_back(codes_of({33, 48}, kInt8));
    given.push_back(rand({33, 1}) * 0.01);
    auto fused = fuse_traced(f, given, 1e-2, /*nest=*/true);
    EXPECT_EQ(fused.kernels, rows <= 8 ? 1 : 2) << fused.graph.text();
  }
}

TEST(EncodedWeights, BesideAPlainWeightTheyHaveAKernelOfTheirOwn) {
  auto f = [](const TensorList& x) {
    return TensorList{linear(x[0], dequantize(x[1], x[2], x[3], uint4(16))), linear(x[0], x[4])};
  };
  TensorList given = operands(2, 48, 33, 16);
  given.push_back(normal({33, 48}));
  EXPECT_EQ(fuse_traced(f, given, 1e-3).kernels, 2);
}

// Where they stay a kernel: somebody else reads the matrix, it is multiplied from the other side, or it is computed.
TEST(EncodedWeights, SometimesAreDecodedInMemory) {
  const TensorList given = operands(2, 48, 48, 16);
  auto weight = [](const TensorList& x) { return dequantize(x[1], x[2], x[3], uint4(16)); };
  auto read_twice = [&](const TensorList& x) { return TensorList{linear(x[0], weight(x)), weight(x).sum({-1})}; };
  auto turned = [&](const TensorList& x) { return TensorList{mm(x[0], weight(x))}; };
  auto computed = [&](const TensorList& x) {
    return TensorList{linear(x[0], dequantize(x[1], x[2].square(), x[3], uint4(16)))};
  };
  auto uneven = [&](const TensorList& x) {
    return TensorList{linear(x[0], dequantize(x[1], x[2].repeat({1, 4}).narrow(1, 0, 12), {}, uint4(4)))};
  };
  for (auto& f : {Function(read_twice), Function(turned), Function(computed), Function(uneven)}) {
    auto fused = fuse_traced(f, given, 1e-2);
    EXPECT_GE(fused.kernels, 2) << fused.graph.text();
  }
}

TEST(EncodedWeights, Offsets) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    auto f = [&](const TensorList& x) {
      return TensorList{linear(x[0], dequantize(x[1], x[2], {}, uint4(16, dtype).offset(x[3])))};
    };
    for (int64_t rows : {1, 5, 40}) {
      TensorList given = operands(rows, 48, 33, 16);
      given[0] = given[0].to(dtype);
      given[3] = normal({33, 3});
      given[2].select(1, 1).zero_();  // all that is left of a group is its offset
      EXPECT_EQ(fuse_traced(f, given, dtype == kFloat32 ? 1e-3 : 5e-2).kernels, 1);
    }
  }
}

TEST(EncodedWeights, Tables) {
  auto nibbles = [](const TensorList& x) {
    return TensorList{linear(
        x[0], dequantize(x[1], x[2], {}, DequantizeOptions().encoding(Encoding::kTable4).group_size(16).table(x[3])))};
  };
  auto bytes = [](const TensorList& x) {
    return TensorList{
        linear(x[0], dequantize(x[1], x[2], {}, DequantizeOptions().encoding(Encoding::kTable8).table(x[3])))};
  };
  for (int64_t rows : {1, 20}) {
    EXPECT_EQ(fuse_traced(nibbles, {normal({rows, 48}), codes_of({33, 24}, kUInt8), rand({33, 3}), normal({16})}, 1e-3)
                  .kernels,
              1);
    EXPECT_EQ(fuse_traced(bytes, {normal({rows, 48}), codes_of({33, 48}, kUInt8), rand({33, 1}), normal({256})}, 1e-3)
                  .kernels,
              1);
  }
}

}  // namespace
}  // namespace sinter
