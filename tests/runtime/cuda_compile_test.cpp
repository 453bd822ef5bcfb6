// CUDA text to machine code, without a GPU.
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"
#include "sinter/base/error.h"
#include "sinter/runtime/cuda/compile_channel.h"
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

// Several at once in a process of its own with an empty store, which tells whether workers did some of them and whether
// all are what one alone gives. Without workers: those that start do not find the library any more.
[[noreturn]] void compile_at_once(bool with_workers) {
  namespace fs = std::filesystem;
  char made[] = "/tmp/sinter_nvrtc_XXXXXX";
  fs::path folder = mkdtemp(made), link = folder / "toolkit";
  setenv("SINTER_CACHE_DIR", (folder / "store").c_str(), 1);
  setenv("SINTER_CUDA_WORKERS", "3", 1);
  if (!with_workers) {
    fs::path library = std::getenv("SINTER_TEST_NVRTC");
    fs::create_directory_symlink(library.parent_path(), link);
    setenv("SINTER_NVRTC", (link / library.filename()).c_str(), 1);
  }
  int failures = 0;
  try {
    compile_cuda(fill_text("alone"), "alone", "sm_90");
    fs::remove(link);
    auto name = [](size_t i) { return format("kernel{}", i); };
    std::vector<std::string> codes(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < codes.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          codes[i] = compile_cuda(fill_text(name(i)), name(i), "sm_90");
        } catch (const Error& error) {
          std::fprintf(stderr, "%s\n", error.what());
        }
      });
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < codes.size(); ++i)
      failures += codes[i].substr(0, 4) != "\177ELF" || codes[i].find(name(i)) == std::string::npos;
    auto stats = cuda_compile_stats();
    failures += stats.compiles != 9 || (stats.by_workers > 0) != with_workers;
    // What is wrong with a text is told as ever, whoever reads it.
    std::vector<std::string> messages(6);
    threads.clear();
    for (auto& message : messages)
      threads.emplace_back([&message, i = &message - messages.data()] {
        try {
          compile_cuda(format("extern \"C\" __global__ void bad() {{ undeclared{} = 1; }}", i), "bad", "sm_90");
        } catch (const Error& error) {
          message = error.message();
        }
      });
    for (auto& thread : threads) thread.join();
    for (auto& message : messages) failures += message.find("is undefined") == std::string::npos;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ++failures;
  }
  fs::remove_all(folder);
  std::exit(failures ? 1 : 0);
}

// The child must load its NVRTC itself, so only the parent looks for one here.
bool there_is_nvrtc() {
  if (!std::getenv("SINTER_TEST_NVRTC")) setenv("SINTER_TEST_NVRTC", nvrtc_file().c_str(), 1);
  return *std::getenv("SINTER_TEST_NVRTC") != 0;
}

TEST(CudaCompileAtOnce, WorkersDoAllButOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!there_is_nvrtc()) GTEST_SKIP() << nvrtc_problem();
  EXPECT_EXIT(compile_at_once(true), testing::ExitedWithCode(0), "");
}

TEST(CudaCompileAtOnce, ThreadsDoAllWhereWorkersDoNotStart) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!there_is_nvrtc()) GTEST_SKIP() << nvrtc_problem();
  EXPECT_EXIT(compile_at_once(false), testing::ExitedWithCode(0), "");
}

TEST(CompileChannel, CarriesBytesUntilTheOtherEndIsGone) {
  using namespace std::chrono_literals;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  CompileChannel here(ends[0]);
  {
    CompileChannel there(ends[1]);
    const std::string long_text(3 << 20, 'x');
    std::thread writer([&] {
      EXPECT_TRUE(there.send(""));
      EXPECT_TRUE(there.send(long_text));
    });
    EXPECT_EQ(here.receive(60s), "");
    EXPECT_EQ(here.receive(60s), long_text);
    writer.join();
    EXPECT_EQ(here.receive(1ms), std::nullopt);  // silence
    const char lie[8] = {-1, -1, -1, -1, -1, -1, -1, 127};
    ASSERT_EQ(::send(ends[1], lie, sizeof lie, 0), ssize_t(sizeof lie));
    EXPECT_EQ(here.receive(60s), std::nullopt);
  }
  EXPECT_FALSE(here.send("anybody?") && here.send("no"));
  EXPECT_EQ(here.receive(60s), std::nullopt);
}

TEST(CudaCompileWithout, NvrtcSaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report_nvrtc("/nonexistent/libnvrtc.so"), testing::ExitedWithCode(0),
              "'fill_test' cannot be compiled: NVRTC was not found: .*nonexistent.*Install CUDA's run-time compiler");
  EXPECT_EXIT(report_nvrtc("libc.so.6"), testing::ExitedWithCode(0), "libc.so.6 has no nvrtcGetErrorString");
}

}  // namespace
}  // namespace sinter::runtime
