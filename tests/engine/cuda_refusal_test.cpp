// What NVRTC or the driver refuses does not end a program on a GPU: plans are made of smaller kernels, library calls and single
// ops; on a stand-in for the driver, whose kernels do nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "sinter/engine/cuda/step.h"
#include "sinter/engine/executable/frame.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/runtime/refusal.h"
#include "tests/runtime/fake_cuda.h"

namespace sinter {
namespace {

using runtime::on_fake;
using runtime::RefuseTexts;
using CudaRefusal = runtime::FakeCudaTest;

// The steps of a program's plan by what they are: "fused(2) mm".
std::string steps_of(const char* text, bool strict = false) {
  Program program{.graph = group_kernels(Graph::parse(text)),
                  .symbols = {},
                  .writes = {},
                  .name = "test",
                  .strict = strict,
                  .grouped = true};
  auto plan = make_plan(program, {}, {});
  std::string out;
  for (auto& step : plan->steps) {
    if (step.kind == Step::Kind::kView) continue;
    int64_t ops = step.kind == Step::Kind::kFused ? int64_t(ops_in(*step.attrs.as<FusedAttrs>().body).size()) : 0;
    out += (out.empty() ? "" : " ") + std::string(step.op->name) + (ops ? format("({})", ops) : "");
  }
  return out;
}

constexpr const char* kChain = R"(%0 = input : f32[60, 70]@cuda:0
%1 = exp(%0) : f32[60, 70]@cuda:0
%2 = tanh(%1) : f32[60, 70]@cuda:0
%3 = mul(%2, %0) : f32[60, 70]@cuda:0
%4 = sqrt(%3) : f32[60, 70]@cuda:0
return %4)";

// Up to 16 rows a kernel of our own.
constexpr const char* kProduct = R"(%0 = input : bf16[4, 64]@cuda:0
%1 = input : bf16[64, 128]@cuda:0
%2 = input : bf16[128]@cuda:0
%3 = mm(%0, %1) : bf16[4, 128]@cuda:0
%4 = add(%3, %2) : bf16[4, 128]@cuda:0
%5 = gelu(%4) : bf16[4, 128]@cuda:0
return %5)";

void lenient() { unsetenv("SINTER_STRICT"); }

TEST_F(CudaRefusal, AGroupFallsApart) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    SINTER_REQUIRE(steps_of(kChain) == "fused(4)");
    {
      RefuseTexts refuse("k_exp_tanh_mul_sqrt");
      SINTER_REQUIRE(steps_of(kChain) == "fused(2) fused(2)");
      RefuseTexts more("k_exp_tanh");
      SINTER_REQUIRE(steps_of(kChain) == "exp tanh fused(2)");
    }
    SINTER_REQUIRE(steps_of(kChain) == "fused(4)");
  });
}

TEST_F(CudaRefusal, IsAnErrorWhereThatIsAskedFor) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    RefuseTexts refuse("k_exp_tanh");
    bool thrown = false;
    try {
      steps_of(kChain, true);
    } catch (const Error& error) {
      thrown = error.message().find("is refused") != std::string::npos;
    }
    SINTER_REQUIRE(thrown);
  });
}

TEST_F(CudaRefusal, ProductsGoToTheLibraryAndKeepTheRest) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    SINTER_REQUIRE(steps_of(kProduct) == "fused(3)");
    RefuseTexts refuse("gemv::");
    SINTER_REQUIRE(steps_of(kProduct) == "mm fused(2)");
    RefuseTexts more("gelu(");
    RefuseTexts most("k_add_gelu");
    SINTER_REQUIRE(steps_of(kProduct) == "mm add gelu");
  });
}

TEST_F(CudaRefusal, AttentionBecomesItsBody) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    constexpr const char* kAttention = R"(%0 = input : bf16[2, 40, 32]@cuda:0
                                          %1 = scaled_dot_product_attention(%0, %0, %0) : bf16[2, 40, 32]@cuda:0
                                          return %1)";
    {
      RefuseTexts refuse("sinter_attention");
      std::string apart = steps_of(kAttention);
      SINTER_REQUIRE(apart.find("bmm") != std::string::npos && apart.find("attention") == std::string::npos);
    }
    SINTER_REQUIRE(steps_of(kAttention) == "fused(1)");
  });
}

TEST_F(CudaRefusal, WhatTuningWouldTryIsLeftOut) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    Program program{
        .graph = group_kernels(Graph::parse(kProduct)), .symbols = {}, .writes = {}, .name = "test", .grouped = true};
    auto plan = make_plan(program, {}, {});
    std::deque<RefuseTexts> refused;
    for (auto& other : plan->steps[0].code->other_candidates())
      for (auto& kernel : static_cast<CudaStep&>(*other).kernels()) refused.emplace_back(kernel->source.name);
    SINTER_REQUIRE(!refused.empty());
    PlanOptions options;
    options.tune_seconds = 0.001;
    auto tuned = make_plan(program, {}, options);
    SINTER_REQUIRE(tuned->steps[0].candidate.empty());
    SINTER_REQUIRE(tuned->steps[0].code->candidate() == plan->steps[0].code->candidate());
  });
}

TEST_F(CudaRefusal, WhatTheDriverDoesNotLoadFallsApart) {
  setenv("FAKE_CUDA_VERSION", "99000", 1);  // newer than any NVRTC
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    setenv("FAKE_CUDA_REFUSED_LOADS", "1", 1);
    SINTER_REQUIRE(steps_of(kChain) == "fused(2) fused(2)");
  });
  unsetenv("FAKE_CUDA_VERSION");
}

TEST_F(CudaRefusal, AKernelThatWantsTooMuchWhenItRunsRunsOpByOp) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    setenv("FAKE_CUDA_REFUSED_LAUNCHES", "1", 1);
    Program program{
        .graph = group_kernels(Graph::parse(kChain)), .symbols = {}, .writes = {}, .name = "test", .grouped = true};
    auto executable = compile_program(std::move(program));
    TensorArg x(empty({60, 70}, TensorOptions(kFloat32).device(cuda(0))));
    Tensor out;
    for (int round = 0; round < 3; ++round) executable->run({&x, 1}, {}, {&out, 1});
    SINTER_REQUIRE(out.sizes() == Shape({60, 70}));
  });
}

TEST_F(CudaRefusal, ASingleOpIsComputedOnTheHost) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!runtime::nvrtc_problem().empty()) return;
    lenient();
    RefuseTexts refuse("sinh(");
    Tensor x = full({3, 4}, 0.5).to(cuda(0));
    // The stand-in's memory is the host's, and only the host computes there.
    Tensor y = sinh(x.t());
    SINTER_REQUIRE(y.device() == cuda(0) && y.sizes() == Shape({4, 3}));
    for (double value : y.to_vector<double>()) SINTER_REQUIRE(std::abs(value - std::sinh(0.5)) < 1e-6);
  });
}

}  // namespace
}  // namespace sinter
