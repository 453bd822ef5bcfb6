// `sinter train` as a user runs it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/cli/train_runs.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::run_command;
using testing::TrainRuns;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CliTrain, TrainsAndGenerates) {
  TrainRuns runs;
  auto result = run_command(runs.arguments("run", 10, 0));
  ASSERT_EQ(result.code, 0) << result.err;
  for (auto part : {"parameters", "held out", "step-10"}) EXPECT_TRUE(contains(result.out, part)) << result.out;
  auto text = run_command("generate --model " + runs.file("run/latest") + " --prompt Call --max-new-tokens 4 --json");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(json::parse(text.out)["ids"].size(), 4u);
  EXPECT_EQ(run_command("info " + runs.file("run/step-10")).code, 0);
  std::stringstream curve;
  curve << std::ifstream(runs.file("run/loss.svg")).rdbuf();
  EXPECT_TRUE(contains(curve.str(), "held out")) << curve.str();
  EXPECT_TRUE(contains(curve.str(), "<polyline"));
}

// The paths that a run was begun with hold in another folder too.
TEST(CliTrain, GoesOnFromAnotherFolder) {
  TrainRuns runs;
  std::string begun = runs.arguments("run", 4, 2);
  for (std::string name : {"text.txt", "config.json"})
    begun.replace(begun.find(runs.file(name)), runs.file(name).size(), name);
  auto first = run_command(begun, "cd " + runs.file("") + ";");
  ASSERT_EQ(first.code, 0) << first.err;
  auto second = run_command("train --resume --steps 6 --out " + runs.file("run"));
  EXPECT_EQ(second.code, 0) << second.err;
}

TEST(CliTrain, LinesOfJson) {
  TrainRuns runs;
  auto result = run_command(runs.arguments("run", 5, 0) + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
  ASSERT_EQ(all.size(), 6u) << result.out;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i]["step"], i + 1);
    for (auto key : {"loss", "lr", "grad_norm", "seconds", "tokens_per_s"}) EXPECT_GT(all[i][key], 0.0) << key;
  }
  EXPECT_GT(all[5]["held_out_loss"], 0.0);
  EXPECT_LT(all[5]["held_out_accuracy"], 1.0);
}

TEST(CliTrain, TellsOfStepsThatAreLeftOutInHalfPrecision) {
  TrainRuns runs;
  auto result = run_command(runs.arguments("run", 3, 0) + " --autocast f16 --loss-scale 1e12");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "step 1 is left out: gradients are not finite with the loss times 1e+12")) << result.out;
  auto again = run_command("train --resume --autocast bf16 --out " + runs.file("run"));
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "--autocast was \"f16\"")) << again.err;
}

TEST(CliTrain, AnAdapterGenerates) {
  TrainRuns runs;
  auto trained =
      run_command("train --model " SINTER_SOURCE_DIR "/assets/whale-5m --data " + runs.file("text.txt") + " --out " +
                  runs.file("adapter") + " --lora-rank 4 --lr 0.02 --steps 8 --batch 4 --length 32");
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::string start = "generate --prompt 'Call me' --max-new-tokens 12 --json ";
  auto with = run_command(start + "--adapter " + runs.file("adapter/latest")), without = run_command(start);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_NE(json::parse(with.out)["ids"], json::parse(without.out)["ids"]);
  EXPECT_EQ(run_command(start + "--adapter " + runs.file("nowhere")).code, 1);
}

TEST(CliTrain, AskedToStopItSavesFirst) {
  TrainRuns runs;
  for (int signal : {SIGINT, SIGTERM}) {
    ASSERT_EQ(runs.stop(runs.arguments("run", 100000, 0) + " --schedule constant", "run", signal), 1);
    std::string losses = runs.losses("run");
    int64_t last = std::stoll(losses.substr(losses.rfind('\n', losses.size() - 2) + 1));
    EXPECT_GT(last, 1);
    EXPECT_TRUE(fs::exists(runs.file("run/step-" + std::to_string(last)))) << losses;
    fs::remove_all(runs.file("run"));
  }
}

TEST(CliTrain, SurvivesKills) { TrainRuns().survive_kills(3, 1); }

// Files may not grow beyond some KiB, as on a disk that is full.
TEST(CliTrain, AFullDiskLeavesTheLastCheckpoint) {
  TrainRuns runs;
  ASSERT_EQ(run_command(runs.arguments("run", 4, 2)).code, 0);
  std::string before = runs.weights("run", 4);
  auto full = run_command("train --resume --steps 8 --out " + runs.file("run"), "trap '' XFSZ; ulimit -f 64;");
  EXPECT_EQ(full.code, 1);
  for (auto part : {"step 6 was not written", "File too large", "step-4", "as it was"})
    EXPECT_TRUE(contains(full.err, part)) << full.err;
  EXPECT_EQ(runs.weights("run", 4), before);
  for (auto& entry : fs::directory_iterator(runs.file("run")))
    EXPECT_FALSE(contains(entry.path().filename().string(), "unfinished")) << entry.path();
  // With room again it goes on.
  auto rest = run_command("train --resume --steps 8 --out " + runs.file("run"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  ASSERT_EQ(run_command(runs.arguments("other", 4, 2)).code, 0);
  ASSERT_EQ(run_command("train --resume --steps 8 --out " + runs.file("other")).code, 0);
  EXPECT_EQ(runs.losses("run"), runs.losses("other"));
}

TEST(CliTrain, SaysWhatIsWrong) {
  TrainRuns runs;
  auto unknown = run_command(runs.arguments("run") + " --epochs 3");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "--epochs")) << unknown.err;
  auto missing = run_command("train --out " + runs.file("run"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(contains(missing.err, "--model")) << missing.err;
  std::ofstream(runs.file("text.txt")) << "Call me Ishmael.";
  auto small = run_command(runs.arguments("run"));
  EXPECT_EQ(small.code, 1);
  EXPECT_TRUE(contains(small.err, "longer text")) << small.err;
  fs::remove(runs.file("text.txt"));
  auto gone = run_command(runs.arguments("run"));
  EXPECT_EQ(gone.code, 1);
  EXPECT_TRUE(contains(gone.err, "text.txt")) << gone.err;
}

}  // namespace
}  // namespace sinter
