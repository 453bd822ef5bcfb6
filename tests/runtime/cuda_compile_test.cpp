// CUDA text to machine code, without a GPU.
#include "gtest/gtest.h"
#include "sinter/base/error.h"
#include "sinter/runtime/cuda/module.h"

namespace sinter::runtime {
namespace {

std::string fill_text(const std::string& name) {
  return format(
      "struct P { float* out; float value; int n; };\n"
      "extern \"C\" __global__ void {}(P p) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < p.n) p.out[i] = p.value;\n"
      "}\n",
      name);
}

class CudaCompile : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  }
};

TEST_F(CudaCompile, ForFourArchitecturesAndOnceOnly) {
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    std::string first = compile_cuda(fill_text("fill_test"), "fill_test", architecture);
    EXPECT_EQ(first.substr(1, 3), "ELF") << architecture;
    EXPECT_NE(first.find("fill_test"), std::string::npos);
    auto before = cuda_compile_stats();
    EXPECT_EQ(compile_cuda(fill_text("fill_test"), "fill_test", architecture), first);
    auto after = cuda_compile_stats();
    EXPECT_EQ(after.disk_hits, before.disk_hits + 1);
    EXPECT_EQ(after.compiles, before.compiles);
  }
  EXPECT_NE(compile_cuda(fill_text("fill_test"), "fill_test", "sm_80"),
            compile_cuda(fill_text("fill_test"), "fill_test", "sm_90"));
}

TEST_F(CudaCompile, DiagnosticsAreTheErrorsText) {
  try {
    compile_cuda("extern \"C\" __global__ void bad() { undeclared = 1; }", "k7_bad", "sm_80");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'k7_bad' does not compile for sm_80"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("identifier \"undeclared\" is undefined"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("kernel.cu(1)"), std::string::npos) << error.message();
  }
}

TEST_F(CudaCompile, AnUnknownArchitectureIsSaid) {
  try {
    compile_cuda(fill_text("fill_test"), "fill_test", "sm_12");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("for sm_12"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("newer"), std::string::npos) << error.message();
  }
}

// NVRTC is looked for once a process.
[[noreturn]] void report_nvrtc(const char* library) {
  setenv("SINTER_NVRTC", library, 1);
  try {
    compile_cuda(fill_text("fill_test"), "fill_test", "sm_80");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(nvrtc_problem().empty() ? 1 : 0);
  }
  std::exit(1);
}

TEST(CudaCompileWithout, NvrtcSaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report_nvrtc("/nonexistent/libnvrtc.so"), testing::ExitedWithCode(0),
              "'fill_test' cannot be compiled: NVRTC was not found: .*nonexistent.*Install CUDA's run-time compiler");
  EXPECT_EXIT(report_nvrtc("libc.so.6"), testing::ExitedWithCode(0), "libc.so.6 has no nvrtcGetErrorString");
}

}  // namespace
}  // namespace sinter::runtime
