#include "tests/cli/train_runs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "sinter/models/models.h"
#include "tests/cli/command.h"

namespace sinter::testing {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The command as a child of its own, without a shell in between: its id is the one that is killed.
pid_t start_command(const std::string& arguments) {
  std::istringstream words(arguments);
  std::vector<std::string> list = {SINTER_COMMAND};
  for (std::string word; words >> word;) list.push_back(word);
  std::vector<char*> argv;
  for (auto& word : list) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = fork();
  if (child != 0) return child;
  int nothing = ::open("/dev/null", O_WRONLY);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

TrainRuns::TrainRuns() {
  std::ofstream(file("config.json")) << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 2048, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true})";
  std::ofstream(file("text.txt")) << contents(SINTER_SOURCE_DIR "/assets/moby-dick.txt").substr(0, 20000);
}

std::string TrainRuns::arguments(const std::string& out, int steps, int save_every) const {
  return "train --config " + file("config.json") + " --tokenizer " SINTER_SOURCE_DIR "/assets/whale-5m --data " +
         file("text.txt") + " --out " + file(out) +
         " --batch 4 --length 16 --lr 0.01 --noise 0.1 --eval-every 5 --steps " + std::to_string(steps) +
         " --save-every " + std::to_string(save_every);
}

std::string TrainRuns::losses(const std::string& out) const {
  std::ifstream lines(file(out) + "/loss.jsonl");
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    auto record = nlohmann::json::parse(line);
    for (auto key : {"step", "loss", "held_out_loss"})
      if (record.contains(key)) text += record[key].dump() + " ";
    text += "\n";
  }
  return text;
}

std::string TrainRuns::weights(const std::string& out, int step) const {
  return contents(file(out) + "/step-" + std::to_string(step) + "/trainer.safetensors");
}

int TrainRuns::stop(const std::string& arguments, const std::string& out, int signal) const {
  pid_t child = start_command(arguments);
  const auto limit = Clock::now() + std::chrono::seconds(60);
  while (contents(file(out) + "/loss.jsonl").size() < 500 && Clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void TrainRuns::survive_kills(int kills, unsigned seed) const {
  constexpr int kSteps = 24;
  auto begin = Clock::now();
  ASSERT_EQ(run_command(arguments("whole", kSteps)).code, 0);
  const std::chrono::duration<double> whole = Clock::now() - begin;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> moment(0.05, 1);
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    pid_t child = start_command(arguments("run", kSteps) + " --resume");
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(whole * moment(random));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status);
    // Every checkpoint that is there is whole.
    if (fs::exists(file("run")))
      for (auto& entry : fs::directory_iterator(file("run")))
        if (entry.path().filename().string().starts_with("step-")) {
          EXPECT_NO_THROW(models::from_pretrained(entry.path().string())) << entry.path();
          EXPECT_TRUE(fs::exists(entry.path() / "trainer.json")) << entry.path();
        }
    // The rest of a run that came to its end begins anew.
    if (fs::exists(file("run") + "/step-" + std::to_string(kSteps)) && i + 1 < kills) {
      EXPECT_EQ(losses("run"), losses("whole"));
      fs::remove_all(file("run"));
    }
  }
  auto rest = run_command(arguments("run", kSteps) + " --resume");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_GT(killed, 0) << "all runs were over before they were killed";
  EXPECT_EQ(losses("run"), losses("whole"));
  EXPECT_EQ(weights("run", kSteps), weights("whole", kSteps));
}

}  // namespace sinter::testing
