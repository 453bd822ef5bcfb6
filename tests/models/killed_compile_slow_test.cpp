// A process that is killed in the middle of compiling a model leaves a store from which the next start works.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/sinter.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kKills = 50;  // of each of four suites, which have their own limits of time
constexpr const char* kResult = "SINTER_TEST_RESULT";  // where the child writes what it computed

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64,
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 8, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": true})";

// The child's part: its own process, started by the test below.
TEST(KilledCompileChild, DISABLED_ComputesLogits) {
  const char* file = std::getenv(kResult);
  ASSERT_NE(file, nullptr);
  manual_seed(1);
  NoGradGuard no_grad;
  auto model = models::causal_lm(models::from_config(ConfigFile::parse(kConfig, "config.json")));
  auto fast = compile([model](const Tensor& ids) { return model->forward(ids); });
  Tensor logits = fast(from_data(std::vector<int64_t>{1, 5, 9, 33, 2, 7}, {1, 6})).contiguous();
  std::ofstream out(file, std::ios::binary);
  out.write(static_cast<const char*>(logits.data_ptr()), int64_t(logits.numel()) * 4);
  out << runtime::toolchain_stats().compiles;
  out.close();
  ASSERT_TRUE(out);
}

std::string content(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class KilledCompile : public ::testing::TestWithParam<int> {
 protected:
  pid_t start() const {
    pid_t child = fork();
    if (child != 0) return child;
    int log = open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, 1);
    dup2(log, 2);
    setenv("SINTER_CACHE_DIR", (directory_ / "cache").c_str(), 1);
    setenv(kResult, (directory_ / "result").c_str(), 1);
    execl("/proc/self/exe", "test", "--gtest_filter=KilledCompileChild.*", "--gtest_also_run_disabled_tests",
          static_cast<char*>(nullptr));
    _exit(98);
  }

  // A start that nobody disturbs: the bytes of the logits, and how many kernels had to be compiled.
  std::pair<std::string, int> finish() const {
    fs::remove(directory_ / "result");
    int status = 0;
    waitpid(start(), &status, 0);
    std::string log = content(directory_ / "log"), result = content(directory_ / "result");
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << log;
    EXPECT_EQ(log.find("cannot be read"), std::string::npos) << log;  // nothing half-written is ever in its place
    const size_t bytes = 6 * 64 * 4;
    if (result.size() <= bytes) return {"", -1};
    return {result.substr(0, bytes), std::stoi(result.substr(bytes))};
  }

  OwnDirectory own_;
  const fs::path directory_ = own_.path();
};

TEST_P(KilledCompile, TheNextStartWorks) {
  auto begin = Clock::now();
  auto [expected, kernels] = finish();
  std::chrono::duration<double> whole = Clock::now() - begin;
  ASSERT_GT(kernels, 3);
  ASSERT_EQ(finish(), std::pair(expected, 0)) << "a second start compiles nothing";
  std::mt19937 random{unsigned(GetParam())};
  std::uniform_real_distribution<double> part(0, 1);
  double longest = whole.count();  // adapts, since other programs come and go
  int killed = 0, partly = 0, round = 0;
  for (; killed < kKills && round < 4 * kKills; ++round) {
    fs::remove_all(directory_ / "cache");
    pid_t child = start();
    // Two in a row now and then, so that what is killed began with a store that another one had left.
    for (int again = int(random() % 2); again >= 0; --again) {
      std::this_thread::sleep_for(std::chrono::duration<double>(longest * part(random)));
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      killed += WIFSIGNALED(status);
      longest *= WIFSIGNALED(status) ? 1.01 : 0.9;
      if (again) child = start();
    }
    auto [logits, compiled] = finish();
    ASSERT_EQ(logits, expected) << "round " << round;
    partly += compiled > 0 && compiled < kernels;
  }
  EXPECT_GE(killed, kKills);
  EXPECT_GT(partly, kKills / 10) << "few were hit in the middle of it";
  std::printf("%d processes killed, %d of %d starts found a part of the kernels\n", killed, partly, round);
}

INSTANTIATE_TEST_SUITE_P(First, KilledCompile, ::testing::Values(1));
INSTANTIATE_TEST_SUITE_P(Second, KilledCompile, ::testing::Values(2));
INSTANTIATE_TEST_SUITE_P(Third, KilledCompile, ::testing::Values(3));
INSTANTIATE_TEST_SUITE_P(Fourth, KilledCompile, ::testing::Values(4));

}  // namespace
}  // namespace sinter
