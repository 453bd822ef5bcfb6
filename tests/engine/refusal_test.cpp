// What a toolchain refuses does not end a program: kernels fall apart, single ops are computed by the referee, with a warning
// each; where strictness is asked for it is an error.
#include "sinter/runtime/refusal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "sinter/capture/compile.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/executable.h"
#include "sinter/graph/interpreter.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

using runtime::RefuseTexts;

// All tests run strictly, but for those that look at what happens otherwise.
class Lenient {
 public:
  Lenient() { unsetenv("SINTER_STRICT"); }
  ~Lenient() { setenv("SINTER_STRICT", "1", 1); }
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

int count(const std::string& text, std::string_view part) {
  int n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

struct Outcome {
  std::string plan, warnings;
};

// The graph as compiled now, with its results compared with the referee's.
Outcome run(const std::string& text, const TensorList& inputs, double tolerance = 1e-4) {
  Graph graph = Graph::parse(text);
  std::vector<Array> arrays;
  std::vector<TensorArg> operands;
  for (auto& t : inputs) {
    arrays.push_back(to_array(t));
    operands.push_back(t);
  }
  auto want = interpret(graph, arrays);
  ::testing::internal::CaptureStderr();
  auto executable = compile_program({.graph = std::move(graph), .symbols = {}, .writes = {}, .name = "refusal_test"});
  TensorList got(want.size());
  executable->run(operands, {}, got);
  Outcome out{executable->text(), ::testing::internal::GetCapturedStderr()};
  for (size_t i = 0; i < want.size(); ++i) {
    Array array = to_array(got[i]);
    EXPECT_EQ(array.sizes, want[i].sizes);
    for (int64_t at = 0; at < want[i].numel(); ++at)
      EXPECT_NEAR(array.number(at), want[i].number(at), tolerance * std::max(1.0, std::abs(want[i].number(at))))
          << "result " << i;
  }
  return out;
}

Tensor numbers(const Shape& shape) {
  manual_seed(7);
  return rand(shape) + 0.25;
}

// --- kernels of several ops
// Each test has a chain of its own: what was said of a kernel before is not said again.
std::string chain(const char* first, int width = 21) {
  std::string type = format("f32[6, {}]", width);
  return format("%0 = input : {}\n%1 = {}(%0) : {}\n%2 = tanh(%1) : {}\n", type, first, type, type) +
         format("%3 = mul(%2, %0) : {}\n%4 = sqrt(%3) : {}\nreturn %4\n", type, type);
}

TEST(Refusal, AGroupBecomesSmallerGroups) {
  Lenient lenient;
  RefuseTexts refuse("k_exp_tanh_mul_sqrt(");
  auto [plan, warnings] = run(chain("exp"), {numbers({6, 21})});
  EXPECT_EQ(count(plan, "fused fused("), 2) << plan;
  EXPECT_EQ(count(warnings, "is refused"), 1) << warnings;
  for (auto* part : {"the kernel 'k_exp_tanh_mul_sqrt' is refused: error: a test refuses",
                     "its ops run as smaller kernels or one by one", "Please report it", "SINTER_DEBUG=<directory>",
                     "{\"strict\", 1}", "SINTER_STRICT=1"})
    EXPECT_TRUE(has(warnings, part)) << part << "\n" << warnings;
}

TEST(Refusal, ThenSingleOps) {
  Lenient lenient;
  RefuseTexts refuse("k_square_tanh");
  auto [plan, warnings] = run(chain("square"), {numbers({6, 21})});
  EXPECT_EQ(count(plan, "fused fused("), 1) << plan;  // the other half stays
  EXPECT_TRUE(has(plan, "pointwise square") && has(plan, "pointwise tanh")) << plan;
  EXPECT_EQ(count(warnings, "is refused"), 2) << warnings;
}

TEST(Refusal, ThenTheReferee) {
  Lenient lenient;
  RefuseTexts refuse("atan(");
  auto [plan, warnings] =
      run("%0 = input : f32[6, 23]\n%1 = exp(%0) : f32[6, 23]\n%2 = atan(%1) : f32[6, 23]\nreturn %2\n",
          {numbers({6, 23})});
  EXPECT_EQ(count(plan, "fused fused("), 0) << plan;
  EXPECT_TRUE(has(warnings, "atan f32[6, 23] is computed element by element on the host")) << warnings;
}

TEST(Refusal, IsSaidOnceAKernel) {
  Lenient lenient;
  RefuseTexts refuse("k_reciprocal_tanh_mul_sqrt(");
  EXPECT_EQ(count(run(chain("reciprocal"), {numbers({6, 21})}).warnings, "is refused"), 1);
  // The text is the same for other sizes.
  EXPECT_EQ(count(run(chain("reciprocal", 24), {numbers({6, 24})}).warnings, "is refused"), 0);
}

TEST(Refusal, ProductsKeepTheirLibraryAndLoseTheEpilogue) {
  Lenient lenient;
  RefuseTexts refuse("void* const* tiles_");
  std::string text =
      "%0 = input : f32[20, 8]\n%1 = input : f32[8, 24]\n%2 = input : f32[24]\n%3 = mm(%0, %1) : f32[20, 24]\n"
      "%4 = add(%3, %2) : f32[20, 24]\n%5 = gelu(%4) : f32[20, 24]\nreturn %5\n";
  auto [plan, warnings] = run(text, {numbers({20, 8}), numbers({8, 24}), numbers({24})});
  EXPECT_TRUE(has(plan, "mm")) << plan;
  EXPECT_EQ(count(plan, "fused fused("), 1) << plan;
  EXPECT_EQ(count(warnings, "is refused"), 1) << warnings;
  // Several products of one operand, of different widths.
  run("%0 = input : f32[20, 8]\n%1 = input : f32[8, 24]\n%2 = input : f32[8, 12]\n%3 = mm(%0, %1) : f32[20, 24]\n"
      "%4 = tanh(%3) : f32[20, 24]\n%5 = mm(%0, %2) : f32[20, 12]\n%6 = exp(%5) : f32[20, 12]\nreturn %4, %6\n",
      {numbers({20, 8}), numbers({8, 24}), numbers({8, 12})});
  // With the norm in front: prologue, product and epilogue in one kernel.
  run("%0 = input : f32[2, 8]\n%1 = input : f32[8, 24]\n%2 = sum(%0) {dims=[1], keepdim=true} : f32[2, 1]\n%3 = "
      "div(%0, %2) : f32[2, 8]\n"
      "%4 = mm(%3, %1) : f32[2, 24]\n%5 = tanh(%4) : f32[2, 24]\nreturn %5\n",
      {numbers({2, 8}), numbers({8, 24})});
}

TEST(Refusal, ConvolutionsLoseTheEpilogue) {
  Lenient lenient;
  RefuseTexts refuse("void* const* tiles_");
  auto [plan, warnings] =
      run("%0 = input : f32[1, 2, 7, 7]\n%1 = input : f32[3, 2, 3, 3]\n"
          "%2 = convolution(%0, %1) {stride=[1, 1], padding=[1, 1], dilation=[1, 1]} : f32[1, 3, 7, 7]\n"
          "%3 = relu(%2) : f32[1, 3, 7, 7]\n%4 = exp(%3) : f32[1, 3, 7, 7]\nreturn %4\n",
          {numbers({1, 2, 7, 7}), numbers({3, 2, 3, 3})}, 1e-3);
  EXPECT_TRUE(has(plan, "convolution")) << plan;
}

TEST(Refusal, CompiledFunctionsWarmUpsAndBackgroundGoOn) {
  Lenient lenient;
  RefuseTexts refuse("t4_ =");  // kernels of so many values
  auto f = [](const Tensor& x) { return (x.exp() + 1).sqrt().sin(); };
  Tensor x = numbers({9, 31}), want = f(x);
  auto near = [&](const Tensor& got) { return (got - want).abs().amax().item<double>() < 1e-5; };
  EXPECT_TRUE(near(compile(f)(x)));
  auto background = compile(f, {.options = {{"background", true}}});
  EXPECT_TRUE(near(background(x)));
  compiler::wait(background);
  EXPECT_TRUE(near(background(x)));
}

TEST(Refusal, IsAnErrorWhereThatIsAskedFor) {
  RefuseTexts refuse("t4_ =");
  auto f = [](const Tensor& x) { return (x.exp() + 1).sqrt().sin(); };
  std::string error = error_of([&] { compile(f)(numbers({9, 32})); });
  EXPECT_TRUE(has(error, "'k_exp_add_sqrt_sin' is refused")) << error;
  EXPECT_TRUE(has(error, "refusal_test.cpp")) << error;
  Lenient lenient;
  auto strict = compile(f, {.options = {{"strict", 1}}});
  EXPECT_TRUE(has(error_of([&] { strict(numbers({9, 33})); }), "is refused"));
  RefuseTexts single("cosh(");
  auto alone = compile([](const Tensor& x) { return cosh(x); }, {.options = {{"strict", 1}}});
  EXPECT_TRUE(has(error_of([&] { alone(numbers({9, 33})); }), "cosh f32[9, 33]"));
}

// --- single ops
template <class F>
void expect_same(const char* refused, F&& f, const char* warned) {
  Lenient lenient;
  ::testing::internal::CaptureStderr();
  Tensor got;
  {
    RefuseTexts refuse(refused);
    got = f();
  }
  std::string warnings = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(warnings, warned)) << warned << ": " << warnings;
  Tensor want = f();
  ASSERT_EQ(got.sizes(), want.sizes());
  ASSERT_EQ(got.dtype(), want.dtype());
  Array a = to_array(got), b = to_array(want);
  for (int64_t at = 0; at < b.numel(); ++at)
    EXPECT_NEAR(a.number(at), b.number(at), 1e-5 * std::max(1.0, std::abs(b.number(at))));
}

TEST(Refusal, SingleOpsAreComputedByTheReferee) {
  // What has been compiled is not refused any more: each case has kernels of its own.
  Tensor x = numbers({5, 7}), at = tensor(std::vector<int64_t>{4, 0});
  expect_same(
      "k_asinh_f32_f32(", [&] { return asinh(x.t()); }, "asinh f32[7, 5] is computed element by element");
  expect_same(
      "k_cumprod", [&] { return cumprod(x, 1); }, "cumprod f32[5, 7]");
  expect_same(
      "k_prod_", [&] { return prod(x, 1); }, "prod f32[5, 7]");
  expect_same(
      "k_index_copy", [&] { return index_copy(x, 0, at, x.slice(0, 0, 2) * 2); }, "index_copy f32[5, 7]");
  // Into memory that is there, of other strides and another type; what lies between stays.
  expect_same(
      "k::i16>(out1_",
      [&] {
        Tensor out = full({7, 10}, 3, kInt16);
        out.slice(1, 0, 10, 2).t().copy_(x * 100);
        return out;
      },
      "is computed element by element on the host");
  expect_same(
      "k_acosh_bf16_bf16(", [&] { return acosh((x + 2).to(kBFloat16)); }, "acosh bf16[5, 7]");
}

TEST(Refusal, ASingleOpIsAnErrorWhereThatIsAskedFor) {
  RefuseTexts refuse("k_log1p_");
  EXPECT_TRUE(has(error_of([] {
                    return log1p(numbers({5, 7}));
                  }),
                  "log1p f32[5, 7]: the kernel 'k_log1p_f32_f32' is refused"));
}

// --- toolchain
TEST(Refusal, WhatNoCompilerTakesIsRefusedAndNotTriedAgain) {
  runtime::Toolchain toolchain({runtime::host_target(), "", runtime::CpuCompiler::kAuto});
  std::string text = "extern \"C\" void k_broken() { undeclared = 1; }";
  for (int round = 0; round < 2; ++round) {
    try {
      toolchain.compile(text, "k_broken");
      FAIL() << "it compiles";
    } catch (const runtime::Refused& refusal) {
      EXPECT_EQ(refusal.kernel(), "k_broken");
      EXPECT_EQ(refusal.text(), text);
      EXPECT_TRUE(has(refusal.first_error(), "error")) << refusal.first_error();
      EXPECT_TRUE(has(refusal.first_error(), "undeclared")) << refusal.first_error();
    }
  }
  EXPECT_EQ(toolchain.stats().compiles, 0);
}

TEST(Refusal, TheTextIsWrittenWhereOneLooks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        OwnDirectory directory;
        setenv("SINTER_DEBUG", directory.path().c_str(), 1);
        unsetenv("SINTER_STRICT");
        runtime::warn_refused(runtime::Refused("message", "k_test", "note: at\nk.cpp:3: error: wrong", "the text"),
                              "it goes on");
        std::string names;
        for (auto& entry : std::filesystem::directory_iterator(directory.path()))
          names += entry.path().filename().string();
        std::exit(has(names, "k_test_") && has(names, ".refused.txt") ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "is refused: k.cpp:3: error: wrong\n.*with the file .*k_test_.*refused.txt");
}

}  // namespace
}  // namespace sinter
