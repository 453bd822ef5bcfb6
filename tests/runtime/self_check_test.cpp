// A compiler is asked for right code before its kernels are trusted; faults are planted in what it is given.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "tests/support/own_directory.h"

namespace sinter::runtime {
namespace {

// Chooses between integers: 5 where x is positive, else x.
constexpr const char* kChoose = R"(
extern "C" void choose(const int* x, int* y) {
  store<k::i32>(y, 0, select(gt(load<k::i32>(x, 0), i32v{}), splat_i32(5), load<k::i32>(x, 0)));
})";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

// Code in which integers are chosen the wrong way round.
std::string with_wrong_selects(std::string source) {
  return replaced(std::move(source), "pick(m, opaque(a), opaque(b))", "pick(m, opaque(b), opaque(a))");
}

class SelfCheck : public testing::Test {
 protected:
  void SetUp() override {
    options.cache_directory = directory.path().string();
    options.tamper = [this](CpuCompiler compiler, const CpuTarget& target, std::string source) {
      checks += source.starts_with("#define SINTER_SELF_CHECK");
      return plant ? plant(compiler, target, std::move(source)) : source;
    };
  }
  OwnDirectory directory;

  // Compiles with a toolchain of its own, runs, and gives what was written to stderr.
  std::string choose() {
    testing::internal::CaptureStderr();
    try {
      Toolchain toolchain(options);
      for (int again = 0; again < 2; ++again) {
        auto source = kChoose + std::string(size_t(again), '\n');
        auto code = toolchain.compile(source, "choose", codegen::cpu_prelude(options.target.vector_bytes / 4));
        alignas(64) int x[16], y[16];
        for (int i = 0; i < 16; ++i) x[i] = i * 7 % 11 - 5;
        code->function<void (*)(const int*, int*)>("choose")(x, y);
        for (int i = 0; i < options.target.vector_bytes / 4; ++i) EXPECT_EQ(y[i], x[i] > 0 ? 5 : x[i]) << i;
      }
    } catch (const Error& error) {
      return testing::internal::GetCapturedStderr() + error.what();
    }
    return testing::internal::GetCapturedStderr();
  }
  std::vector<CodeStore::Entry> entries(std::string_view kind) const {
    std::vector<CodeStore::Entry> out;
    for (auto& entry : CodeStore(options.cache_directory).entries())
      if (entry.kind() == kind) out.push_back(entry);
    return out;
  }

  ToolchainOptions options;
  std::function<std::string(CpuCompiler, const CpuTarget&, std::string)> plant;
  std::atomic<int> checks = 0;
};

TEST_F(SelfCheck, PassesOnThisMachineAndIsRemembered) {
  int expected = 0;
  for (auto compiler : {CpuCompiler::kClang, CpuCompiler::kGxx})
    for (auto limit : {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      options.compiler = compiler;
      options.target = detect_cpu(limit);
      if (options.target.isa != limit) continue;
      SCOPED_TRACE(options.target.name);
      EXPECT_EQ(choose(), "");
      EXPECT_EQ(checks, ++expected);
    }
  EXPECT_EQ(entries("self-check").size(), size_t(expected));
  for (auto& entry : entries("self-check"))
    EXPECT_EQ(CodeStore(options.cache_directory).load(entry.key), std::optional<std::string>("")) << entry.key;

  // Another process with other kernels asks nobody; one that finds its kernels does not even look.
  CodeStore(options.cache_directory).clear("cpu-code");
  EXPECT_EQ(choose(), "");
  EXPECT_EQ(checks, expected);
  CodeStore(options.cache_directory).clear("self-check");
  EXPECT_EQ(choose(), "");
  EXPECT_EQ(checks, expected);
}

TEST_F(SelfCheck, AWrongCompilerMakesWayForTheOther) {
  plant = [](CpuCompiler compiler, const CpuTarget&, std::string source) {
    return compiler == CpuCompiler::kClang ? with_wrong_selects(std::move(source)) : source;
  };
  std::string warning = choose();
  EXPECT_NE(warning.find("with g++"), std::string::npos) << warning;
  EXPECT_NE(warning.find("clang version"), std::string::npos) << warning;
  EXPECT_NE(warning.find("computes select("), std::string::npos) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_EQ(checks, 2);
  for (auto& entry : entries("cpu-code")) EXPECT_TRUE(key_part(entry.key, "compiler").starts_with("g++")) << entry.key;

  CodeStore(options.cache_directory).clear("cpu-code");
  EXPECT_NE(choose().find("with g++"), std::string::npos);  // the verdict is remembered
  EXPECT_EQ(checks, 2);
}

TEST_F(SelfCheck, WhereBothAreWrongAvx512IsLeftAlone) {
  if (options.target.isa != CpuIsa::kAvx512) GTEST_SKIP() << "needs AVX-512";
  plant = [](CpuCompiler, const CpuTarget& target, std::string source) {
    return target.isa == CpuIsa::kAvx512 ? with_wrong_selects(std::move(source)) : source;
  };
  for (auto compiler : {CpuCompiler::kAuto, CpuCompiler::kGxx}) {
    options.compiler = compiler;
    std::string warning = choose();
    EXPECT_NE(warning.find("for x86-64-v3, which is slower"), std::string::npos) << warning;
    EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  }
  for (auto& entry : entries("cpu-code")) EXPECT_EQ(key_part(entry.key, "target"), "x86-64-v3") << entry.key;
}

TEST_F(SelfCheck, WhereNothingIsRightNothingRuns) {
  plant = [](CpuCompiler, const CpuTarget&, std::string source) { return with_wrong_selects(std::move(source)); };
  std::string error = choose();
  EXPECT_NE(error.find("no compiler could make the CPU kernel 'choose'"), std::string::npos) << error;
  EXPECT_NE(error.find("g++"), std::string::npos) << error;
  EXPECT_NE(error.find("wrongly for"), std::string::npos) << error;
  EXPECT_TRUE(entries("cpu-code").empty());
}

// What llvm-project #157929 does to selects that hide nothing.
TEST_F(SelfCheck, SeesTheFaultOfClang19) {
  if (options.target.isa != CpuIsa::kAvx512) GTEST_SKIP() << "needs AVX-512";
  options.compiler = CpuCompiler::kClang;
  plant = [](CpuCompiler, const CpuTarget& target, std::string source) {
    if (target.isa != CpuIsa::kAvx512) return source;
    return replaced(std::move(source), "#if defined(__clang__) && defined(__AVX512F__)\nstruct TwoRegisters",
                    "#if 0\nstruct TwoRegisters");
  };
  std::string warning = choose();
  EXPECT_NE(warning.find("clang 19 for x86-64-v3"), std::string::npos) << warning;
}

}  // namespace
}  // namespace sinter::runtime
