// Kernel text → callable code: both compilers, both caches, and what happens when something is broken.
#include "sinter/runtime/cpu/toolchain.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "sinter/base/error.h"
#include "tests/support/error_of.h"

namespace sinter::runtime {
namespace {

namespace fs = std::filesystem;

// A toolchain with a cache directory of its own for each test.
class ToolchainTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "sinter-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  ToolchainOptions options(CpuCompiler compiler = CpuCompiler::kAuto) const {
    return {host_target(), directory_ / "cache", compiler};
  }
  // Ends a process that a death test started.
  [[noreturn]] void leave(int status) {
    fs::remove_all(directory_);
    std::exit(status);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (auto& entry : fs::directory_iterator(directory_ / "cache"))
      if (entry.path().extension() == ".code") out.push_back(entry.path());
    return out;
  }

  fs::path directory_;
};

constexpr const char* kAxpy = R"(
extern "C" void axpy(float a, const float* x, float* y, long begin, long end) {
  for (long i = begin; i < end; ++i) y[i] += a * x[i];
})";
using Axpy = void (*)(float, const float*, float*, long, long);

// Constants of every kind, several kernels, an inline template, calls into libm, and writable data.
constexpr const char* kMixed = R"(
typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x16u __attribute__((vector_size(64), aligned(4)));
extern "C" float tanhf(float);
extern "C" float expf(float);
extern "C" void* memcpy(void*, const void*, unsigned long);
static const f32x16 kRamp = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
template <class T> inline T poly(T x) { return (x * 3.25f + 0.5f) * x - 1.75f; }
extern "C" void ramp(const float* x, float* y) { *(f32x16u*)y = poly(*(const f32x16u*)x) + kRamp; }
extern "C" void libm(const float* x, float* y) { for (int i = 0; i < 16; ++i) y[i] = tanhf(x[i]) + expf(x[i]); }
extern "C" float (*libm_pointer())(float) { return expf; }
extern "C" void copy(const float* x, float* y, long n) { memcpy(y, x, n * sizeof(float)); }
extern "C" const char* name(int op) {
  switch (op) {
    case 0: return "add"; case 1: return "mul"; case 2: return "tanh"; case 3: return "exp";
    case 4: return "log"; case 5: return "sqrt"; case 6: return "where"; default: return "?";
  }
}
extern "C" int apply(int op, int a, int b) {
  switch (op) {
    case 0: return a + b; case 1: return a * b; case 2: return a - b * 7; case 3: return (a << 3) ^ b;
    case 4: return a & b; case 5: return a | (b + 3); case 6: return a / (b + 1); case 7: return ~a; default: return -1;
  }
}
extern "C" int counter() { static int calls = 40; return ++calls; }
static int zeroed[64];
extern "C" int bump(int i) { return ++zeroed[i]; }
extern "C" const char* table[3] = {"zero", "one", "two"};
)";

void exercise_mixed(const CpuCode& code) {
  using Unary = void (*)(const float*, float*);
  std::vector<float> x(16), y(16), z(16);
  for (int i = 0; i < 16; ++i) x[i] = 0.25f * float(i) - 2;
  code.function<Unary>("ramp")(x.data(), y.data());
  code.function<Unary>("libm")(x.data(), z.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(y[i], (x[i] * 3.25 + 0.5) * x[i] - 1.75 + i, 1e-5) << i;
    EXPECT_NEAR(z[i], std::tanh(x[i]) + std::exp(x[i]), 1e-5) << i;
  }
  EXPECT_NEAR(code.function<float (*(*)())(float)>("libm_pointer")()(1.0f), 2.71828f, 1e-4);
  code.function<void (*)(const float*, float*, long)>("copy")(x.data(), y.data(), 16);
  EXPECT_EQ(x, y);
  auto name = code.function<const char* (*)(int)>("name");
  EXPECT_STREQ(name(2), "tanh");
  EXPECT_STREQ(name(6), "where");
  EXPECT_STREQ(name(99), "?");
  auto apply = code.function<int (*)(int, int, int)>("apply");
  const int expected[] = {13, 30, -11, 83, 2, 14, 2, -11, -1};
  for (int op = 0; op < 9; ++op) EXPECT_EQ(apply(op, 10, 3), expected[op]) << op;
  EXPECT_EQ(code.function<int (*)()>("counter")(), 41);
  EXPECT_EQ(code.function<int (*)(int)>("bump")(7), 1);
  EXPECT_EQ(code.function<int (*)(int)>("bump")(7), 2);
  EXPECT_STREQ(static_cast<const char**>(code.symbol("table"))[1], "one");
}

TEST_F(ToolchainTest, ClangCompilesAndCalls) {
  Toolchain toolchain(options(CpuCompiler::kClang));
  auto code = toolchain.compile(kAxpy, "axpy");
  std::vector<float> x = {1, 2, 3, 4, 5}, y = {10, 20, 30, 40, 50};
  code->function<Axpy>("axpy")(2, x.data(), y.data(), 1, 4);
  EXPECT_EQ(y, (std::vector<float>{10, 24, 36, 48, 50}));
  EXPECT_EQ(code->find_symbol("absent"), nullptr);
  EXPECT_NE(error_of([&] { code->symbol("absent"); }).find("'absent'"), std::string::npos);
}

TEST_F(ToolchainTest, ClangLoadsConstantsTablesAndLibraryCalls) {
  Toolchain toolchain(options(CpuCompiler::kClang));
  exercise_mixed(*toolchain.compile(kMixed, "mixed"));
}

TEST_F(ToolchainTest, GxxGivesTheSameResults) {
  {
    Toolchain toolchain(options(CpuCompiler::kGxx));
    exercise_mixed(*toolchain.compile(kMixed, "mixed"));
    EXPECT_EQ(toolchain.stats().compiles, 1);
  }
  Toolchain again(options(CpuCompiler::kGxx));
  exercise_mixed(*again.compile(kMixed, "mixed"));
  EXPECT_EQ(again.stats().disk_hits, 1);
  EXPECT_EQ(again.stats().compiles, 0);
}

TEST_F(ToolchainTest, EveryIsaLimitRuns) {
  for (auto limit : {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    auto with_limit = options(CpuCompiler::kClang);
    with_limit.target = detect_cpu(limit);
    EXPECT_LE(with_limit.target.isa, limit);
    Toolchain toolchain(with_limit);
    exercise_mixed(*toolchain.compile(kMixed, "mixed"));
    EXPECT_EQ(toolchain.stats().disk_hits, 0) << "code of another target was used";
  }
}

TEST_F(ToolchainTest, DiagnosticsNameTheLabelAndTheLine) {
  for (auto compiler : {CpuCompiler::kClang, CpuCompiler::kGxx}) {
    Toolchain toolchain(options(compiler));
    auto text = error_of([&] { toolchain.compile("int a;\nextern \"C\" int f() { return nonsense; }", "k7_broken"); });
    EXPECT_NE(text.find("k7_broken:2"), std::string::npos) << text;
    EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
    EXPECT_EQ(toolchain.stats().compiles, 0);
    EXPECT_TRUE(entries().empty());
  }
}

TEST_F(ToolchainTest, UndefinedSymbolIsNamed) {
  for (auto compiler : {CpuCompiler::kClang, CpuCompiler::kGxx}) {
    Toolchain toolchain(options(compiler));
    auto text = error_of([&] {
      toolchain.compile("extern \"C\" { int no_such_function(); int f() { return no_such_function(); } }", "k");
    });
    EXPECT_NE(text.find("no_such_function"), std::string::npos) << text;
  }
}

// Text on which clang ends the process or crashes; g++ does not know these pragmas.
std::string deadly(const std::string& pragma) {
  return "#pragma clang __debug " + pragma + "\nextern \"C\" int f() { return 7; }";
}

TEST_F(ToolchainTest, FatalErrorOfTheCompilerIsSurvived) {
  Toolchain strict(options(CpuCompiler::kClang));
  auto text = error_of([&] { strict.compile(deadly("llvm_fatal_error"), "k9"); });
  EXPECT_NE(text.find("k9"), std::string::npos) << text;
  testing::internal::CaptureStderr();
  Toolchain lenient(options());
  EXPECT_EQ(lenient.compile(deadly("llvm_fatal_error"), "k9")->function<int (*)()>("f")(), 7);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("with g++"), std::string::npos);
  exercise_mixed(*strict.compile(kMixed, "mixed"));
}

TEST_F(ToolchainTest, CrashOfTheCompilerIsSurvived) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process of its own: a crash ends the use of clang in it
  auto in_a_fresh_process = [&] {
    Toolchain toolchain(options());
    bool ok = toolchain.compile(deadly("crash"), "k9")->function<int (*)()>("f")() == 7;
    exercise_mixed(*toolchain.compile(kMixed, "mixed"));
    leave(HasFailure() || !ok ? 1 : 0);
  };
  EXPECT_EXIT(in_a_fresh_process(), testing::ExitedWithCode(0), "with g\\+\\+");
}

TEST_F(ToolchainTest, MissingPluginMeansGxxAndMissingBothIsAnErrorThatHelps) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a fresh process, in which no plugin is loaded yet
  auto in_a_fresh_process = [&] {
    setenv("SINTER_CLANG_PLUGIN", "/nonexistent/plugin.so", 1);
    Toolchain toolchain(options());
    exercise_mixed(*toolchain.compile(kMixed, "mixed"));
    toolchain.compile(kAxpy, "axpy");  // no second warning
    leave(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(in_a_fresh_process(), testing::ExitedWithCode(0), "with g\\+\\+[^\n]*/nonexistent/plugin.so[^\n]*\n$");
  auto with_no_compiler = [&] {
    setenv("SINTER_CLANG_PLUGIN", "/nonexistent/plugin.so", 1);
    setenv("PATH", "/nonexistent", 1);
    Toolchain toolchain(options());
    std::fprintf(stderr, "%s", error_of([&] { toolchain.compile(kAxpy, "axpy"); }).c_str());
    leave(0);
  };
  EXPECT_EXIT(with_no_compiler(), testing::ExitedWithCode(0), "no compiler.*'axpy'.*libclang-cpp19.*g\\+\\+ in PATH");
}

TEST_F(ToolchainTest, MemoryThenDiskThenCompiler) {
  Toolchain toolchain(options());
  auto first = toolchain.compile(kAxpy, "axpy");
  EXPECT_EQ(toolchain.compile(kAxpy, "axpy"), first);
  EXPECT_EQ(toolchain.stats().memory_hits, 1);
  first.reset();  // unloads it
  auto second = toolchain.compile(kAxpy, "axpy");
  float x = 3, y = 1;
  second->function<Axpy>("axpy")(2, &x, &y, 0, 1);
  EXPECT_EQ(y, 7);
  auto stats = toolchain.stats();
  EXPECT_EQ(stats.compiles, 1);
  EXPECT_EQ(stats.disk_hits, 1);
  EXPECT_GT(stats.seconds, 0);
}

TEST_F(ToolchainTest, DamagedEntriesAreRebuilt) {
  Toolchain(options()).compile(kAxpy, "axpy");
  ASSERT_EQ(entries().size(), 1u);
  auto path = entries()[0];
  auto size = fs::file_size(path);
  for (auto damage : {size_t(0), size_t(10), size_t(30), size / 2, size - 1}) {
    for (bool truncate : {false, true}) {
      if (truncate) {
        fs::resize_file(path, damage);
      } else {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(std::streamoff(damage));
        char byte = char(file.get() ^ 0x40);
        file.seekp(std::streamoff(damage));
        file.put(byte);
      }
      Toolchain toolchain(options());
      EXPECT_NE(toolchain.compile(kAxpy, "axpy")->symbol("axpy"), nullptr);
      EXPECT_EQ(toolchain.stats().compiles, 1) << damage;
      Toolchain reader(options());
      reader.compile(kAxpy, "axpy");
      EXPECT_EQ(reader.stats().disk_hits, 1) << damage;
    }
  }
}

TEST_F(ToolchainTest, ProcessesCompileOneTextOnce) {
  std::vector<pid_t> children;
  int gate[2];  // all begin when it is closed
  ASSERT_EQ(pipe(gate), 0);
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      char byte;
      close(gate[1]);
      int status = 100;
      try {
        if (read(gate[0], &byte, 1) == 0) {
          Toolchain toolchain(options());
          toolchain.compile(kAxpy, "axpy")->symbol("axpy");
          status = int(toolchain.stats().compiles);
        }
      } catch (...) {
      }
      _exit(status);
    }
    children.push_back(child);
  }
  close(gate[1]);
  int compiles = 0;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    compiles += WEXITSTATUS(status);
  }
  close(gate[0]);
  EXPECT_EQ(compiles, 1);
}

TEST_F(ToolchainTest, ThreadsCompileOneTextOnce) {
  Toolchain toolchain(options(CpuCompiler::kClang));
  std::vector<std::shared_ptr<const CpuCode>> codes(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < codes.size(); ++i)
    threads.emplace_back([&, i] { codes[i] = toolchain.compile(i < 6 ? kAxpy : kMixed, "k"); });
  for (auto& thread : threads) thread.join();
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(codes[i], codes[0]);
  EXPECT_EQ(codes[6], codes[7]);
  EXPECT_EQ(toolchain.stats().compiles, 2);
  EXPECT_EQ(toolchain.stats().memory_hits, 6);
}

TEST_F(ToolchainTest, UnsafeOrUnusableDirectoryMeansNoStore) {
  fs::create_directory(directory_ / "cache");
  chmod((directory_ / "cache").c_str(), 0777);
  testing::internal::CaptureStderr();
  Toolchain toolchain(options());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("everyone may write"), std::string::npos);
  EXPECT_NE(toolchain.compile(kAxpy, "axpy")->symbol("axpy"), nullptr);
  EXPECT_TRUE(entries().empty());

  std::ofstream(directory_ / "file") << "x";
  testing::internal::CaptureStderr();
  EXPECT_EQ(CodeStore(directory_ / "file" / "cache").directory(), "");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot be created"), std::string::npos);
}

TEST_F(ToolchainTest, StoreDirectoryIsPrivateAndKeepsKeysApart) {
  CodeStore store(directory_ / "deep" / "cache");
  struct stat info;
  ASSERT_EQ(stat((directory_ / "deep" / "cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  store.save("one", "bytes of one");
  store.save("two", "");
  EXPECT_EQ(store.load("one"), "bytes of one");
  EXPECT_EQ(store.load("two"), "");
  EXPECT_EQ(store.load("three"), std::nullopt);
  // An entry under the wrong name, as if two keys had one hash.
  fs::copy_file(store.path_of("one"), store.path_of("six"));
  EXPECT_EQ(store.load("six"), std::nullopt);
}

}  // namespace
}  // namespace sinter::runtime
