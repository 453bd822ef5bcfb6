// CUDA text to machine code, without a GPU.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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
    compile_cuda(fill_text("never_compiled"), "fill_test", "sm_80");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(nvrtc_problem().empty() ? 1 : 0);
  }
  std::exit(1);
}

bool is_mapped(const char* library) {
  std::ifstream maps("/proc/self/maps");
  std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find(library) != std::string::npos;
}

// In a process of its own, which has loaded nothing yet. 3: there is no NVRTC.
[[noreturn]] void compile_with_store(const char* folder, const char* nvrtc, bool expect_nvrtc) {
  setenv("SINTER_CACHE_DIR", folder, 1);
  if (nvrtc) setenv("SINTER_NVRTC", nvrtc, 1);
  try {
    std::string code = compile_cuda(fill_text("fill_stored"), "fill_stored", "sm_90");
    std::exit(code.substr(1, 3) == "ELF" && is_mapped("libnvrtc") == expect_nvrtc ? 0 : 1);
  } catch (const Error&) {
    std::exit(3);
  }
}

TEST(CudaCompileStored, IsFoundWithoutLoadingNvrtc) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // Children run this function again, up to their own statement.
  if (!std::getenv("SINTER_TEST_STORE")) {
    char made[] = "/tmp/sinter_nvrtc_XXXXXX";
    ASSERT_NE(mkdtemp(made), nullptr);
    setenv("SINTER_TEST_STORE", made, 1);
  }
  std::string folder = std::getenv("SINTER_TEST_STORE");
  EXPECT_EXIT(compile_with_store(folder.c_str(), nullptr, true),
              [](int status) { return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3); }, "");
  if (!std::filesystem::is_empty(folder)) {
    EXPECT_EXIT(compile_with_store(folder.c_str(), nullptr, false), testing::ExitedWithCode(0), "");
    // Nor where there is none any more.
    EXPECT_EXIT(compile_with_store(folder.c_str(), "/nonexistent/libnvrtc.so", false), testing::ExitedWithCode(0), "");
  }
  std::filesystem::remove_all(folder);
  unsetenv("SINTER_TEST_STORE");
}

TEST(CudaCompileWithout, NvrtcSaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report_nvrtc("/nonexistent/libnvrtc.so"), testing::ExitedWithCode(0),
              "'fill_test' cannot be compiled: NVRTC was not found: .*nonexistent.*Install CUDA's run-time compiler");
  EXPECT_EXIT(report_nvrtc("libc.so.6"), testing::ExitedWithCode(0), "libc.so.6 has no nvrtcGetErrorString");
}

}  // namespace
}  // namespace sinter::runtime
