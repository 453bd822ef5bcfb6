// Convolutions and what follows them as one kernel; eager convolutions, gradients and pools over every kind of memory.
#include "sinter/ops/conv.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/base/thread_pool.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/executable.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/engine/report.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/passes/fuse.h"
#include "sinter/passes/pipeline.h"
#include "tests/engine/programs.h"

namespace sinter {
namespace {

using Function = std::function<TensorList(const TensorList&)>;

Tensor numbers(const Shape& shape) {
  static int draws = 0;
  return testing::values(shape, ++draws) * 2;
}

void expect_close(const Tensor& result, const Array& want, double tolerance) {
  Array got = to_array(result);
  ASSERT_EQ(got.sizes, want.sizes);
  for (int64_t at = 0; at < want.numel(); ++at)
    ASSERT_NEAR(got.number(at), want.number(at), tolerance * std::max(1.0, std::abs(want.number(at)))) << "at " << at;
}

// The kernels that a function becomes; its compiled results are compared with the referee's on the way.
int kernels(const Function& f, const TensorList& inputs, double tolerance = 1e-4) {
  std::vector<Type> types;
  std::vector<Array> arrays;
  std::vector<TensorArg> operands;
  for (auto& t : inputs) {
    types.push_back({t.dtype(), t.sizes(), t.device()});
    arrays.push_back(to_array(t));
    operands.push_back(t);
  }
  Graph simplified = run_passes(trace(f, types));
  FuseOptions options;
  options.target = cpu_engine().target();
  Graph fused = fuse(simplified, options);
  fused.verify();
  int count = 0;
  for (auto& node : fused.nodes()) {
    auto kind = node.op->kind;
    count += kind != OpKind::kInput && kind != OpKind::kScalar && kind != OpKind::kView;
  }
  auto expected = interpret(simplified, arrays);
  TensorList results(expected.size());
  compile_program({.graph = std::move(simplified), .symbols = {}, .writes = {}, .name = "test"})
      ->run(operands, {}, results);
  for (size_t i = 0; i < expected.size(); ++i) expect_close(results[i], expected[i], tolerance);
  return count;
}

Tensor batch_norm_of(const Tensor& y, const TensorList& x, size_t first) {
  return batch_norm(y, x[first], x[first + 1], x[first + 2], x[first + 3], false, 0.1, 1e-5);
}
// An input, a weight, and a batch norm's four numbers a channel.
TensorList operands(const Shape& x, const Shape& weight, int64_t channels) {
  return {numbers(x),          numbers(weight),    numbers({channels}), numbers({channels}).abs() + 0.5,
          numbers({channels}), numbers({channels})};
}

TEST(FusedConvolution, BatchNormAndReluAreItsEpilogue) {
  auto f = [](const TensorList& x) { return TensorList{relu(batch_norm_of(conv2d(x[0], x[1], {}, 1, 1), x, 2))}; };
  EXPECT_EQ(kernels(f, operands({2, 5, 9, 11}, {7, 5, 3, 3}, 7)), 1);
  auto strided = [](const TensorList& x) {
    return TensorList{relu(batch_norm_of(conv2d(x[0], x[1], {}, 2, 1), x, 2))};
  };
  EXPECT_EQ(kernels(strided, operands({1, 16, 20, 20}, {200, 16, 3, 3}, 200)), 1);
}

TEST(FusedConvolution, BiasResidualAndReluAreItsEpilogue) {
  auto f = [](const TensorList& x) {
    return TensorList{relu(batch_norm_of(conv2d(x[0], x[1], x[6], 1, 1), x, 2) + x[7])};
  };
  TensorList in = operands({2, 6, 10, 8}, {6, 6, 3, 3}, 6);
  in.push_back(numbers({6}));
  in.push_back(numbers({2, 6, 10, 8}));
  EXPECT_EQ(kernels(f, in), 1);
  // A residual that lies in another order.
  in.back() = numbers({2, 10, 8, 6}).permute({0, 3, 1, 2});
  EXPECT_EQ(kernels(f, in), 1);
  // Whose lines are repeated.
  in.back() = numbers({2, 6, 1, 8}).expand({2, 6, 10, 8});
  EXPECT_EQ(kernels(f, in), 1);
}

TEST(FusedConvolution, PreActivationIsTwoKernels) {
  auto f = [](const TensorList& x) { return TensorList{conv2d(relu(batch_norm_of(x[0], x, 2)), x[1], {}, 1, 1)}; };
  EXPECT_EQ(kernels(f, operands({2, 5, 9, 11}, {7, 5, 3, 3}, 5)), 2);
}

TEST(FusedConvolution, EveryKindTakesAnEpilogue) {
  auto act = [](const Tensor& y) { return TensorList{gelu(y) * 2 + y}; };
  auto depthwise = [&](const TensorList& x) { return act(conv2d(x[0], x[1], {}, 1, 1, 1, 6)); };
  EXPECT_EQ(kernels(depthwise, {numbers({2, 6, 12, 9}), numbers({6, 1, 3, 3})}), 1);
  auto plain = [&](const TensorList& x) { return act(conv2d(x[0], x[1])); };
  EXPECT_EQ(kernels(plain, {numbers({2, 6, 12, 9}), numbers({10, 6, 1, 1})}), 1);
  EXPECT_EQ(kernels(plain, {numbers({2, 6, 3, 9}), numbers({10, 6, 3, 3})}), 1);  // one line a plane
  EXPECT_EQ(kernels(plain, {numbers({2, 6, 3, 3}), numbers({10, 6, 3, 3})}), 1);  // one position
  auto transposed = [&](const TensorList& x) { return act(conv_transpose2d(x[0], x[1], {}, 2, 1, 1)); };
  EXPECT_EQ(kernels(transposed, {numbers({2, 6, 5, 7}), numbers({6, 4, 3, 3})}), 1);
  auto line = [&](const TensorList& x) { return act(conv1d(x[0], x[1], {}, 2, 2)); };
  EXPECT_EQ(kernels(line, {numbers({2, 3, 50}), numbers({8, 3, 5})}), 1);
  auto volume = [&](const TensorList& x) { return act(conv3d(x[0], x[1], {}, 1, 1)); };
  EXPECT_EQ(kernels(volume, {numbers({1, 3, 4, 5, 6}), numbers({8, 3, 3, 3, 3})}), 1);
  auto wide = [&](const TensorList& x) { return act(conv2d(x[0], x[1])); };
  EXPECT_EQ(kernels(wide, {numbers({1, 3, 6, 6}).to(kFloat64), numbers({4, 3, 3, 3}).to(kFloat64)}), 1);
  EXPECT_EQ(kernels(wide, {numbers({1, 3, 6, 6}).to(kBFloat16), numbers({4, 3, 3, 3}).to(kBFloat16)}, 2e-2), 1);
  // A weight that is not row-major.
  EXPECT_EQ(kernels(plain, {numbers({1, 3, 6, 6}), numbers({3, 4, 3, 3}).transpose(0, 1)}), 1);
}

TEST(FusedConvolution, ResultsThatOthersReadAreStored) {
  auto f = [](const TensorList& x) {
    Tensor y = conv2d(x[0], x[1], {}, 1, 1);
    return TensorList{relu(y), y, y.flatten(2).transpose(1, 2) * 2};
  };
  kernels(f, {numbers({2, 5, 9, 11}), numbers({7, 5, 3, 3})});
  auto patches = [](const TensorList& x) {
    return TensorList{conv2d(x[0], x[1], x[2], 4).flatten(2).transpose(1, 2) + x[3]};
  };
  kernels(patches, {numbers({2, 3, 16, 16}), numbers({12, 3, 4, 4}), numbers({12}), numbers({16, 12})});
  // A scale that is a result of its own.
  auto scale = [](const TensorList& x) {
    Tensor s = rsqrt(x[2] + 1);
    return TensorList{conv2d(x[0], x[1]) * s.view({7, 1, 1}), s};
  };
  kernels(scale, {numbers({2, 5, 9, 11}), numbers({7, 5, 3, 3}), numbers({7}).abs()});
}

TEST(FusedConvolution, ConvolutionsOfOneInputAreNotJoined) {
  auto f = [](const TensorList& x) { return TensorList{relu(conv2d(x[0], x[1])), relu(conv2d(x[0], x[2]))}; };
  EXPECT_EQ(kernels(f, {numbers({1, 4, 8, 8}), numbers({6, 4, 3, 3}), numbers({6, 4, 3, 3})}), 2);
}

TEST(FusedConvolution, AScaleIsComputedWhereItIsReadOnlyOnce) {
  auto once = [](const TensorList& x) { return TensorList{x[0] * rsqrt(x[1] + 1).view({5, 1})}; };
  EXPECT_EQ(kernels(once, {numbers({3, 5, 9}), numbers({5}).abs()}), 1);
  // Along the lanes it would be computed for every element.
  auto along = [](const TensorList& x) { return TensorList{x[0] * rsqrt(x[1] + 1)}; };
  EXPECT_EQ(kernels(along, {numbers({3, 5, 9}), numbers({9}).abs()}), 2);
}

// The group that a function of one result becomes; it reads the inputs as they are.
struct Compiled {
  std::shared_ptr<CompiledStep> step;
  TensorList tensors;  // operands, then results
  StepArguments arguments;
};
Compiled compile_group(const Function& f, const TensorList& inputs) {
  std::vector<Type> types;
  for (auto& t : inputs) types.push_back({t.dtype(), t.sizes(), t.device()});
  FuseOptions options;
  options.target = cpu_engine().target();
  Graph fused = fuse(run_passes(trace(f, types)), options);
  const Node& node = *fused.outputs()[0].node;
  Compiled out;
  std::vector<const TensorImpl*> from, to;
  for (auto& v : node.inputs)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (fused.inputs()[i] == v) out.tensors.push_back(inputs[i]);
  for (auto& t : out.tensors) from.push_back(&t.impl());
  out.tensors.push_back(empty(node.types[0].shape));
  to.push_back(&out.tensors.back().impl());
  out.step = make_step(node.attrs.as<FusedAttrs>(), from, to, Device());
  out.step->load();
  for (auto& t : out.tensors) out.arguments.add_address(int64_t(reinterpret_cast<uintptr_t>(t.data_ptr())));
  return out;
}

TEST(FusedConvolution, AnyCandidateComputesTheSame) {
  auto f = [](const TensorList& x) { return TensorList{relu(conv2d(x[0], x[1], {}, 2, 1) + x[2])}; };
  Compiled c = compile_group(f, {numbers({2, 16, 15, 13}), numbers({24, 16, 3, 3}), numbers({24, 1, 1})});
  EXPECT_EQ(c.step->made_by(), "convolution");
  auto candidates = c.step->other_candidates();
  if (candidates.empty()) GTEST_SKIP() << "no library to compare with";
  c.step->launch(c.arguments);
  Array expected = to_array(c.tensors.back());
  for (auto& other : candidates) {
    c.tensors.back().zero_();
    other->launch(c.arguments);
    expect_close(c.tensors.back(), expected, 1e-4);
  }
}

// Once for all calls, where somebody keeps what the step makes of it.
TEST(FusedConvolution, AWeightInAnotherOrderIsLaidOutAnew) {
  auto f = [](const TensorList& x) { return TensorList{relu(conv2d(x[0], x[1], {}, 1, 1))}; };
  Tensor x = numbers({2, 4, 7, 6}), weight = numbers({5, 4, 3, 3});
  Compiled rows = compile_group(f, {x, weight});
  Compiled last = compile_group(f, {x, weight.contiguous(MemoryFormat::kChannelsLast)});
  Compiled turned = compile_group(f, {x, weight.permute({1, 0, 2, 3}).contiguous().permute({1, 0, 2, 3})});
  EXPECT_EQ(rows.step->rearranged_bytes(), 0);
  EXPECT_EQ(last.step->rearranged_bytes(), 0);  // is read as it lies
  last.step->launch(last.arguments);
  ASSERT_EQ(turned.step->rearranged_bytes(), weight.numel() * 4);
  rows.step->launch(rows.arguments);
  turned.step->launch(turned.arguments);
  expect_close(turned.tensors.back(), to_array(rows.tensors.back()), 1e-6);
  expect_close(last.tensors.back(), to_array(rows.tensors.back()), 1e-4);  // sums in another order
  std::vector<float> kept(size_t(weight.numel()));
  turned.step->rearrange(turned.arguments, kept.data());
  EXPECT_EQ(kept, weight.view({-1}).to_vector<float>());
  // It is read in place of the operand.
  for (float& w : kept) w *= -1;
  turned.arguments.add_address(int64_t(reinterpret_cast<uintptr_t>(kept.data())));
  turned.step->launch(turned.arguments);
  expect_close(turned.tensors.back(), to_array(relu(conv2d(x, -weight, {}, 1, 1))), 1e-4);
}

TEST(FusedConvolution, TheReportSaysSo) {
  auto f = [](const TensorList& x) { return TensorList{relu(conv2d(x[0], x[1]))}; };
  TensorList in{numbers({1, 4, 8, 8}), numbers({6, 4, 3, 3})}, out(1);
  std::vector<TensorArg> operands{in[0], in[1]};
  std::vector<Type> types;
  for (auto& t : in) types.push_back({t.dtype(), t.sizes(), t.device()});
  Graph graph = run_passes(trace(f, types));
  auto program = compile_program({.graph = std::move(graph), .symbols = {}, .writes = {}, .name = "test"});
  program->run(operands, {}, out);
  auto report = program->report();
  ASSERT_EQ(report->kernels.size(), 1u);
  EXPECT_EQ(report->kernels[0].by, "convolution");
  EXPECT_GE(report->kernels[0].cost.flops, 2.0 * 6 * 6 * 6 * 4 * 9);
}

// --- eager

std::vector<Array> by_the_referee(const Function& f, const TensorList& inputs) {
  std::vector<Type> types;
  std::vector<Array> arrays;
  for (auto& t : inputs) {
    types.push_back({t.dtype(), t.sizes(), t.device()});
    arrays.push_back(to_array(t));
  }
  return interpret(trace(f, types), arrays);
}

void compare(const Function& f, const TensorList& inputs, double tolerance = 1e-4) {
  TensorList got = f(inputs);
  auto want = by_the_referee(f, inputs);
  for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], tolerance);
}

TEST(EagerConvolution, ReadsChannelsLastAndOtherViewsWhereTheyLie) {
  auto f = [](const TensorList& x) {
    auto [dx, dw, db] = convolution_backward(x[2], x[0], x[1], 1, 1, 1, false, 0, 1);
    return TensorList{conv2d(x[0], x[1], {}, 1, 1), dx, dw, db};
  };
  Tensor last = numbers({2, 9, 8, 6}).permute({0, 3, 1, 2}), grad = numbers({2, 9, 8, 5}).permute({0, 3, 1, 2});
  compare(f, {last, numbers({5, 6, 3, 3}), grad});
  Tensor narrow = numbers({2, 6, 12, 20}).slice(2, 1, 10).slice(3, 2, 18, 2);
  compare(f, {narrow, numbers({5, 6, 3, 3}), numbers({2, 5, 18, 8}).slice(2, 0, 18, 2)});
  auto plain = [](const TensorList& x) { return TensorList{conv2d(x[0], x[1])}; };
  compare(plain, {last, numbers({5, 6, 1, 1})});
  compare(plain, {narrow, numbers({5, 6, 1, 1})});
}

TEST(EagerConvolution, PoolsAndTheirGradients) {
  auto f = [](const TensorList& x) {
    auto [y, indices] = max_pool2d_with_indices(x[0], 3, 2, 1);
    Tensor mean = avg_pool2d(x[0], 3, 2, 1, true, false);
    return TensorList{y, indices, max_pool2d_with_indices_backward(y, x[0], indices), mean,
                      avg_pool2d_backward(mean, x[0], 3, 2, 1, true, false)};
  };
  compare(f, {numbers({2, 3, 20, 37})});
  compare(f, {numbers({2, 20, 37, 3}).permute({0, 3, 1, 2})});
  compare(f, {numbers({2, 3, 20, 37}).to(kBFloat16)}, 2e-2);
}

TEST(EagerConvolution, GradientsOfMaxima) {
  auto f = [](const TensorList& x) {
    Tensor leaf = x[0].detach().requires_grad_();
    Tensor y = max_pool2d(leaf, {3, 2}, {2, 3}, {1, 0}, {2, 1}, true);
    return autograd::grad({(y * x[1].slice(2, 0, y.size(2)).slice(3, 0, y.size(3))).sum()}, {leaf});
  };
  compare(f, {numbers({2, 3, 20, 37}), numbers({2, 3, 20, 37})});
  compare(f, {numbers({2, 20, 37, 3}).permute({0, 3, 1, 2}), numbers({2, 3, 20, 37})});
  compare(f, {numbers({2, 3, 20, 37}).to(kBFloat16), numbers({2, 3, 20, 37}).to(kBFloat16)}, 2e-2);
}

// An index that its window cannot have chosen counts nowhere, as in the op's definition.
TEST(EagerConvolution, IndicesOutsideOfTheirWindows) {
  auto f = [](const TensorList& x) {
    MaxPoolGradAttrs attrs{.reach = {3, 3}, .stride = {2, 1}, .padding = {1, 0}, .size = {7, 9}};
    return TensorList{call_op(*find_op("max_pool_grad"), std::vector<TensorArg>{x[0], x[1]}, attrs, Where::current())};
  };
  for (DType dtype : {kFloat32, kFloat64, kBFloat16})
    compare(f, {numbers({2, 3, 4, 7}).to(dtype), randint(-3, 70, {2, 3, 4, 7})}, 1e-2);
}

// So that an update reads weight, gradient and state side by side.
TEST(CompiledConvolution, TheGradientOfAWeightLiesAsTheWeight) {
  for (bool channels_last : {false, true}) {
    Tensor x = numbers({2, 6, 9, 8}), grad = numbers({2, 5, 9, 8}), weight = numbers({5, 6, 3, 3});
    if (channels_last) weight = weight.contiguous(MemoryFormat::kChannelsLast);
    Graph graph = Graph::parse(R"(%0 = input : f32[2, 6, 9, 8] "x"
      %1 = input : f32[2, 5, 9, 8] "grad"
      %2 = input : f32[5, 6, 3, 3] "weight"
      %3 = convolution_weight_grad(%0, %1) {stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1, kernel=[3, 3]} : f32[5, 6, 3, 3]
      %4 = mul(%3, %3) : f32[5, 6, 3, 3]
      %5 = add(%2, %4) : f32[5, 6, 3, 3]
      return %5)");
    auto want = interpret(graph, std::vector<Array>{to_array(x), to_array(grad), to_array(weight)});
    auto program = compile_program({.graph = std::move(graph), .symbols = {}, .writes = {}, .name = "test"});
    TensorList out(1);
    program->run(std::vector<TensorArg>{x, grad, weight}, {}, out);
    expect_close(out[0], want[0], 1e-4);
    EXPECT_EQ(out[0].strides(), weight.strides());
  }
}

// Weights in other orders, laid out at each launch since they change.
TEST(CompiledConvolution, WeightsOfAnyOrder) {
  auto f = [](const TensorList& x) { return TensorList{relu(conv2d(x[0], x[1], {}, 1, 1))}; };
  Tensor image = numbers({2, 6, 9, 8});
  const std::vector<Tensor> weights = {numbers({5, 3, 3, 6}).permute({0, 3, 1, 2}), numbers({6, 5, 3, 3}).transpose(0, 1),
                                       numbers({5, 6, 3, 3}).transpose(2, 3), numbers({5, 6, 3, 6}).slice(3, 0, 6, 2),
                                       numbers({3, 3, 6, 5}).permute({3, 2, 0, 1})};
  for (auto& weight : weights) {
    auto compiled = compile([f](const Tensor& x, const Tensor& w) { return f({x, w})[0]; });
    auto want = by_the_referee(f, {image, weight});
    for (int i = 0; i < 2; ++i) expect_close(compiled(image, weight), want[0], 1e-4);
  }
}

}  // namespace
}  // namespace sinter
