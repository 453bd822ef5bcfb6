// What a target takes, by its facts.
#include "sinter/passes/target_kernels.h"

#include <gtest/gtest.h>

#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/cuda/engine.h"
#include "sinter/graph/verify.h"
#include "sinter/passes/fuse.h"

namespace sinter {
namespace {

constexpr Target kTarget = {
    .attention = {.dtypes = {kFloat32, kBFloat16}, .masks = {kBool}, .most_dimensions = 4, .largest_row = 64}};

// Of the last node of a graph.
bool takes(const Target& target, const std::string& text) {
  Graph graph = Graph::parse(text);
  const Node& node = *graph.outputs()[0].node;
  if (node.op->kind != OpKind::kComposite) return takes_contraction(target, node);
  return takes_whole(target, OpCall{*node.op, types_of(node.inputs), node.attrs});
}

// All operands of one type, and perhaps a mask.
std::string attention(const std::string& dtype, const std::string& shape, const std::string& mask = "") {
  std::string type = " : " + dtype + "[" + shape + "]\n";
  std::string text = "%0 = input" + type;
  if (!mask.empty()) text += "%1 = input : " + mask + "\n";
  return text +
         (mask.empty() ? "%1 = scaled_dot_product_attention(%0, %0, %0)"
                       : "%2 = scaled_dot_product_attention(%0, %0, %0, %1)") +
         type + (mask.empty() ? "return %1" : "return %2");
}

TEST(TargetKernels, Attention) {
  EXPECT_TRUE(takes(kTarget, attention("f32", "2, 3, 5, 64")));
  EXPECT_TRUE(takes(kTarget, attention("bf16", "5, 64")));
  EXPECT_TRUE(takes(kTarget, attention("f32", "2, 3, s0, 64")));
  EXPECT_FALSE(takes(kTarget, attention("f64", "2, 3, 5, 64")));
  EXPECT_FALSE(takes(kTarget, attention("f32", "2, 3, 5, 65")));
  EXPECT_FALSE(takes(kTarget, attention("f32", "2, 3, 5, s0")));
  EXPECT_FALSE(takes(kTarget, attention("f32", "2, 2, 3, 5, 64")));
  EXPECT_FALSE(takes(kTarget, attention("f32", "2, 3, 0, 64")));
  EXPECT_TRUE(takes(kTarget, attention("f32", "2, 3, 500, 64", "bool[500, 500]")));
  EXPECT_FALSE(takes(kTarget, attention("f32", "2, 3, 5, 64", "f32[5, 5]")));
  // Rows of any size, known or not.
  Target any = kTarget;
  any.attention.largest_row = 0;
  EXPECT_TRUE(takes(any, attention("f32", "2, 3, 5, 1000")));
  EXPECT_TRUE(takes(any, attention("f32", "2, 3, 5, s0")));
  EXPECT_FALSE(takes(Target(), attention("f32", "2, 3, 5, 64")));
}

// A product of so many rows, and what follows it. Whether its kernel does that: fusion puts it there.
bool finishes_in_kernel(const std::string& rows, const std::string& follow) {
  FuseOptions options;
  options.target = {.products = {kBFloat16}, .most_finished_rows = 16};
  std::string text = "%0 = input : bf16[" + rows + ", 64]\n%1 = input : bf16[64, 32]\n%2 = input : bf16[32]\n" +
                     "%3 = input : f32[" + rows + ", 32]\n%4 = mm(%0, %1) : bf16[" + rows + ", 32]\n";
  std::string type = follow.starts_with("add(%4, %3") || follow.starts_with("_to") ? "f32" : "bf16";
  text += "%5 = " + follow + " : " + type + "[" + rows + ", 32]\nreturn %5";
  return fuse(Graph::parse(text), options).text().find("kind=epilogue") != std::string::npos;
}

TEST(TargetKernels, ProductsOfManyRowsEndInMemory) {
  for (auto* follow : {"add(%4, %2)", "relu(%4)", "tanh(%4)", "_to_copy(%4) {dtype=f32}", "add(%4, %3)"})
    for (auto* rows : {"1", "16", "s0"}) EXPECT_TRUE(finishes_in_kernel(rows, follow)) << follow << " " << rows;
  // The library adds what has its own dtype.
  EXPECT_TRUE(finishes_in_kernel("17", "add(%4, %2)"));
  EXPECT_TRUE(finishes_in_kernel("17", "relu(%4)"));
  for (auto* follow : {"tanh(%4)", "_to_copy(%4) {dtype=f32}", "add(%4, %3)"})
    EXPECT_FALSE(finishes_in_kernel("17", follow)) << follow;
}

TEST(TargetKernels, Products) {
  auto product = [](const std::string& dtype) {
    return "%0 = input : " + dtype + "[3, 3]\n%1 = mm(%0, %0) : " + dtype + "[3, 3]\nreturn %1";
  };
  Target target{.products = {kBFloat16}};
  EXPECT_TRUE(takes(target, product("bf16")));
  EXPECT_FALSE(takes(target, product("f32")));
  EXPECT_FALSE(takes(target, "%0 = input : bf16[3, 3]\n%1 = exp(%0) : bf16[3, 3]\nreturn %1"));
  EXPECT_FALSE(takes(cpu_engine().target(), product("i32")));
}

TEST(TargetKernels, Convolutions) {
  auto convolution = [](int spatial, bool transposed = false, int groups = 1, int taps = 3) {
    std::string ones, zeros, sizes, kernel, results;
    for (int d = 0; d < spatial; ++d) {
      ones += d ? ", 1" : "1";
      zeros += d ? ", 0" : "0";
      sizes += ", 3";
      kernel += format(", {}", taps);
      results += transposed ? ", 5" : taps ? ", 1" : ", 4";
    }
    return format("%0 = input : f32[2, 4{}]\n%1 = input : f32[4, {}{}]\n%2 = convolution(%0, %1) ", sizes, 4 / groups,
                  kernel) +
           "{" +
           format("stride=[{}], padding=[{}], dilation=[{}], transposed={}, output_padding=[{}], groups={}", ones,
                  zeros, ones, transposed ? "true" : "false", transposed ? zeros : "", groups) +
           "}" + format(" : f32[2, 4{}]\nreturn %2", results);
  };
  Target target{.convolutions = {.dtypes = {kFloat32}, .least_spatial = 2, .most_spatial = 2}};
  EXPECT_TRUE(takes(target, convolution(2)));
  EXPECT_FALSE(takes(target, convolution(1)));
  EXPECT_FALSE(takes(target, convolution(3)));
  EXPECT_FALSE(takes(target, convolution(2, true)));
  EXPECT_FALSE(takes(target, convolution(2, false, 2)));
  for (int spatial : {1, 2, 3})
    for (bool transposed : {false, true})
      for (int groups : {1, 2}) EXPECT_TRUE(takes(cpu_engine().target(), convolution(spatial, transposed, groups)));
  // Nothing to multiply.
  EXPECT_FALSE(takes(cpu_engine().target(), convolution(2, false, 1, 0)));
  target.convolutions.dtypes = {kBFloat16};
  EXPECT_FALSE(takes(target, convolution(2)));
}

// Which convolutions there are kernels for depends on a library: it is asked for graphs that have some.
TEST(TargetKernels, OfAGpuAreAskedForByTheGraph) {
  const DeviceEngine& engine = cuda_engine(cuda(0));
  EXPECT_EQ(engine.target_for(Graph::parse("%0 = input : f32[3]@cuda:0\n%1 = exp(%0) : f32[3]@cuda:0\nreturn %1")),
            engine.target());
  Target asked = engine.target_for(
      Graph::parse("%0 = input : bf16[1, 1, 3, 3]@cuda:0\n"
                   "%1 = convolution(%0, %0) {stride=[1, 1], padding=[0, 0], dilation=[1, 1]} : bf16[1, 1, 1, 1]@cuda:0\n"
                   "return %1"));
  EXPECT_TRUE(asked.convolutions.dtypes.contains(kBFloat16));
  EXPECT_EQ(asked.attention, engine.target().attention);
}

}  // namespace
}  // namespace sinter
