#pragma once
// Tests on the stand-in for the NVIDIA driver.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"
#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter::runtime {

// The driver is looked for once a process, so each case runs in one of its own, which starts anew (threadsafe style).
class FakeCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!make_fake()) GTEST_SKIP() << "no C compiler for the stand-in";
  }

  // The stand-in is made once for this process and its children, which find its path in the environment.
  static bool make_fake() {
    if (std::getenv("SINTER_TEST_FAKE_CUDA")) return true;
    std::string path = testing::TempDir() + "sinter_fake_cuda_" + std::to_string(getpid()) + ".so";
    std::string command = "cc -shared -fPIC -O1 -o " + path + " " SINTER_TEST_DATA "/fake_cuda_driver.c";
    if (std::system(command.c_str()) != 0) return false;
    setenv("SINTER_TEST_FAKE_CUDA", path.c_str(), 1);
    static struct Remove {
      std::string path;
      ~Remove() { std::filesystem::remove(path); }
    } remove{path};
    return true;
  }

  static const char* fake() { return std::getenv("SINTER_TEST_FAKE_CUDA"); }
};

// Runs the checks on the stand-in and leaves by exit(), which frees static tensors.
[[noreturn]] inline void on_fake(FunctionRef<void()> checks) {
  setenv("SINTER_CUDA_DRIVER", std::getenv("SINTER_TEST_FAKE_CUDA"), 1);
  if (cuda_problem().find("this build of Sinter") != std::string::npos) std::exit(0);  // there is nothing to check
  try {
    checks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thrown: %s\n", error.what());
    std::exit(1);
  }
  std::exit(0);
}

// Inside a child: ends the checks with the line.
#define SINTER_REQUIRE(condition) check(condition, "line {}: {}", __LINE__, #condition)
#define SINTER_EXPECT_ON_FAKE(...) EXPECT_EXIT(on_fake(__VA_ARGS__), testing::ExitedWithCode(0), "")

}  // namespace sinter::runtime
