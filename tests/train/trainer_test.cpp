#include "sinter/train/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/generate/text_generator.h"
#include "sinter/io/file.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/lora.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"
#include "tests/train/tiny_run.h"

namespace sinter::train {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Trainer, LearnsAndLeavesACheckpointThatGenerates) {
  TinyRun run;
  run.options.steps = 60;
  run.options.save_every = 0;
  auto losses = run.losses();
  EXPECT_NEAR(losses.front(), std::log(2048.0), 0.2);
  EXPECT_LT(losses[losses.size() - 2], 6.8);
  std::string folder = run.options.out + "/latest";
  auto model = models::causal_lm(models::from_pretrained(folder));
  auto tokenizer = Tokenizer::from_pretrained(folder);
  TextGenerator generator(model, {});
  EXPECT_EQ(generator.generate(tokenizer.encode("Call me"), {.max_new_tokens = 5}).ids.size(), 5u);
  // What is held back has the loss that the log tells, by another way.
  auto ids = tokenizer.encode(first_pages(20000), false);
  const size_t kept = ids.size() - size_t(double(ids.size()) * 0.05);
  double sum = 0;
  int64_t windows = 0;
  for (size_t at = kept; at + 17 <= ids.size(); at += 16, ++windows) {
    Tensor x = tensor(std::vector<int64_t>(ids.begin() + int64_t(at), ids.begin() + int64_t(at) + 16)).view({1, 16});
    Tensor y = tensor(std::vector<int64_t>(ids.begin() + int64_t(at) + 1, ids.begin() + int64_t(at) + 17));
    sum += cross_entropy(model->forward(x).view({16, 2048}), y).item<double>();
  }
  EXPECT_NEAR(losses.back(), sum / double(windows), 1e-4);
}

TEST(Trainer, GoesOnBitByBit) {
  TinyRun run;
  run.options.noise = 0.2;
  auto whole = run.losses();
  auto weights = [&] {
    MappedFile file("test", run.options.out + "/step-12/trainer.safetensors");
    return std::string(file.bytes());
  };
  std::string want = weights();
  for (const char* removed : {"step-12", "step-8"}) {
    fs::remove_all(run.options.out + "/" + removed);
    // Lines of steps that are to come again, and one that a dying process did not finish.
    if (removed == std::string("step-8")) fs::remove_all(run.options.out + "/step-12");
    std::ofstream(run.options.out + "/loss.jsonl", std::ios::app) << "{\"step\":13,\"lo";
    EXPECT_EQ(run.losses(/*resume=*/true), whole) << removed;
    EXPECT_EQ(weights(), want) << removed;
  }
  auto lines = lines_of(run.options.out + "/loss.jsonl");
  EXPECT_EQ(lines.size(), 12u + 3u);
  EXPECT_EQ(nlohmann::json::parse(lines.back())["step"], 12);
  EXPECT_EQ(lines_of(run.options.out + "/loss.csv").size(), 13u);
}

// Three batches are an epoch here, and a checkpoint.
TEST(Trainer, GoesOnAtTheEndOfAnEpoch) {
  TinyRun run;
  run.options.held_out = 0;
  run.options.batch = 8;
  run.options.save_every = 3;
  auto tokenizer = Tokenizer::from_pretrained(run.options.tokenizer);
  std::string text = first_pages(400);
  while (tokenizer.encode(text, false).size() > 16 + 24) text.pop_back();
  std::ofstream(run.options.data) << text;
  auto whole = run.losses();
  ASSERT_EQ(whole.size(), 12u);
  for (auto step : {"step-12", "step-9", "step-6"}) fs::remove_all(run.options.out + "/" + step);
  EXPECT_EQ(run.losses(/*resume=*/true), whole);
}

// The rate of every step is another one; so is the optimiser's count.
TEST(Trainer, AChangingRateCompilesNothing) {
  TinyRun run;
  run.options.eval_every = 3;
  Trainer trainer = run.start();
  Observer nobody;
  auto result = trainer.run(nobody);
  EXPECT_EQ(result.steps, 12);
  EXPECT_EQ(result.programs, 1);
  std::set<double> rates;
  for (auto& step : trainer.log().steps()) rates.insert(step.lr);
  EXPECT_GE(rates.size(), 10u);
}

TEST(Trainer, AddsUpGradients) {
  TinyRun run;
  run.options.eval_every = 0;
  run.options.batch = 8;
  auto large = run.losses();
  run.options.batch = 2;
  run.options.accumulate = 4;
  run.options.out += "_accumulated";
  Trainer trainer = run.start();
  Observer nobody;
  auto result = trainer.run(nobody);
  auto small = TinyRun::losses_of(trainer.log());
  EXPECT_EQ(result.programs, 3) << "first, between and last";
  ASSERT_EQ(small.size(), large.size());
  for (size_t i = 0; i + 1 < small.size(); ++i) EXPECT_NEAR(small[i], large[i], 2e-3) << i;
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheRun) {
  TinyRun run;
  run.options.steps = 8;
  run.losses();
  MappedFile before("test", run.options.out + "/step-8/trainer.safetensors");
  std::string bytes(before.bytes());
  run.options.steps = 40;
  run.options.lr = 1e3;
  run.options.clip = 0;
  // Another rate is another run, but for one that goes on where the file says so.
  auto state = nlohmann::json::parse(std::ifstream(run.options.out + "/step-8/trainer.json"));
  state["options"]["lr"] = 1e3;
  state["options"]["clip"] = 0.0;
  std::ofstream(run.options.out + "/step-8/trainer.json") << state.dump();
  Trainer trainer(run.options, /*resume=*/true, {"steps"});
  Observer nobody;
  std::string error = message_of([&] { trainer.run(nobody); });
  EXPECT_TRUE(contains(error, "at step ")) << error;
  EXPECT_TRUE(contains(error, "--lr")) << error;
  MappedFile after("test", run.options.out + "/step-8/trainer.safetensors");
  EXPECT_EQ(std::string(after.bytes()), bytes);
}

// In f16 the loss is scaled up: too far at first here, so that steps are left out until the scale has fallen.
TEST(Trainer, HalfPrecisionLeavesStepsOutAndGoesOnBitByBit) {
  TinyRun run;
  auto exact = run.losses();
  run.options.out = run.file("half");
  run.options.autocast = "f16";
  run.options.loss_scale = 0x1p24;
  auto whole = run.losses();
  LossLog log(run.options.out + "/loss.jsonl", 12);
  const auto& steps = log.steps();
  ASSERT_EQ(steps.size(), 12u);
  int64_t left_out = std::count_if(steps.begin(), steps.end(), [](auto& step) { return step.skipped; });
  EXPECT_TRUE(steps[0].skipped);
  EXPECT_FALSE(steps.back().skipped);
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    EXPECT_EQ(steps[i + 1].loss_scale, steps[i].loss_scale * (steps[i].skipped ? 0.5 : 1)) << i;
  EXPECT_NEAR(whole[0], exact[0], 2e-3);
  auto lines = lines_of(run.options.out + "/loss.jsonl");
  EXPECT_TRUE(contains(lines[0], "\"skipped\":true")) << lines[0];
  EXPECT_FALSE(contains(lines[0], "grad_norm")) << lines[0];
  EXPECT_TRUE(contains(lines_of(run.options.out + "/loss.csv")[1], ",,")) << "no norm";
  auto state = load_safetensors(run.options.out + "/step-12/trainer.safetensors");
  for (auto& [name, value] : state) {
    if (name == "scaler.scale") {
      EXPECT_EQ(value.item<double>(), steps.back().loss_scale);
    } else if (name == "scaler.good_steps" || name == "optimizer.0.step") {
      EXPECT_EQ(value.item<int64_t>(), 12 - left_out) << name;
    }
  }
  std::string want(MappedFile("test", run.options.out + "/step-12/trainer.safetensors").bytes());
  for (auto step : {"step-12", "step-8"}) fs::remove_all(run.options.out + "/" + step);
  EXPECT_EQ(run.losses(/*resume=*/true), whole);
  EXPECT_EQ(std::string(MappedFile("test", run.options.out + "/step-12/trainer.safetensors").bytes()), want);
}

TEST(Trainer, HalfPrecisionLearnsAsWellAndAddsUpGradients) {
  TinyRun run;
  run.options.eval_every = 0;
  run.options.batch = 8;
  auto exact = run.losses();
  run.options.out = run.file("half");
  run.options.autocast = "f16";
  Trainer trainer = run.start();
  Observer nobody;
  auto result = trainer.run(nobody);
  EXPECT_LE(result.programs, 2);
  auto half = TinyRun::losses_of(trainer.log());
  run.options.out = run.file("accumulated");
  run.options.batch = 2;
  run.options.accumulate = 4;
  auto accumulated = run.losses();
  for (size_t i = 0; i + 1 < exact.size(); ++i) {
    EXPECT_NEAR(half[i], exact[i], 0.02) << i;
    EXPECT_NEAR(accumulated[i], exact[i], 0.02) << i;
  }
}

// Fine-tunes the model of a first run by an adapter, which is saved as PEFT does, or as a model with --merge.
TEST(Trainer, AnAdapterIsTrainedSavedAndMerged) {
  TinyRun run;
  run.losses();
  std::string base = run.options.out + "/latest";
  MappedFile before("test", base + "/model.safetensors");
  run.options.config = "";
  run.options.model = base;
  run.options.out = run.file("adapter");
  run.options.lora_rank = 4;
  run.options.lora_targets = "q_proj,down_proj";
  auto whole = run.losses();
  EXPECT_LT(whole[14], whole[4]) << "on what is held back";
  std::string folder = run.options.out + "/step-12";
  EXPECT_FALSE(fs::exists(folder + "/model.safetensors"));
  SafeTensorsFile adapter(folder + "/adapter_model.safetensors");
  EXPECT_EQ(adapter.names().size(), 8u);
  EXPECT_TRUE(adapter.contains("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"));
  EXPECT_EQ(before.bytes(), MappedFile("test", base + "/model.safetensors").bytes());
  // It goes on, bit by bit.
  fs::remove_all(folder);
  EXPECT_EQ(run.losses(/*resume=*/true), whole);
  // Merged, the same run leaves a model that computes what the adapter does.
  run.options.out = run.file("merged");
  run.options.merge = true;
  EXPECT_EQ(run.losses(), whole);
  auto merged = models::causal_lm(models::from_pretrained(run.options.out + "/latest"));
  auto other = models::from_pretrained(base, {.dtype = kFloat32});
  models::Lora(other, folder).merge();
  Tensor ids = tensor({5, 17, 3, 50}).view({1, 4});
  Tensor want = models::causal_lm(other)->forward(ids);
  EXPECT_LT((merged->forward(ids) - want).abs().max().item<double>(), 1e-4);
  // An adapter to go on with, in a run of its own: its first batch is one that it knows.
  run.options.out = run.file("second");
  run.options.merge = false;
  run.options.lora_rank = 0;
  run.options.lora_targets = "";
  run.options.adapter = folder;
  EXPECT_LT(run.losses()[0], whole[0]);
}

TEST(Trainer, RefusesWhatCannotBe) {
  TinyRun run;
  auto error = [&](auto change, bool resume = false) {
    TrainOptions options = run.options;
    change(options);
    return message_of([&] { Trainer(options, resume, {"lr"}); });
  };
  EXPECT_TRUE(contains(error([](auto& o) { o.data = "nowhere.txt"; }), "nowhere.txt"));
  EXPECT_TRUE(contains(error([](auto& o) { o.config = "nowhere.json"; }), "llama-125m"));
  EXPECT_TRUE(contains(error([](auto& o) { o.config = ""; }), "--model"));
  EXPECT_TRUE(contains(error([](auto& o) { o.length = 65; }), "64 positions"));
  EXPECT_TRUE(contains(error([](auto& o) { o.length = 64, o.held_out = 0.005; }), "--held-out"));
  EXPECT_TRUE(contains(error([](auto& o) { o.batch = 100000; }), "--batch"));
  EXPECT_TRUE(contains(error([](auto& o) { o.schedule = "zigzag"; }), "cosine"));
  EXPECT_TRUE(contains(error([](auto& o) { o.tokenizer = ""; }), "--tokenizer"));
  EXPECT_TRUE(contains(error([](auto& o) { o.noise = 2; }), "--noise"));
  EXPECT_TRUE(contains(error([](auto& o) { o.autocast = "f8"; }), "bf16"));
  EXPECT_TRUE(contains(error([](auto& o) { o.loss_scale = 0; }), "--loss-scale"));
  EXPECT_TRUE(contains(error([](auto& o) { o.lora_rank = 4; }), "--model"));
  EXPECT_TRUE(contains(error([](auto& o) { o.merge = true; }), "--lora-rank"));
  run.options.steps = 4;
  run.losses();
  EXPECT_TRUE(contains(error([](auto&) {}), "--resume"));
  EXPECT_TRUE(contains(error([](auto& o) { o.lr = 3; }, true), "--lr was 0.01"));
  std::ofstream(run.options.data, std::ios::app) << "more";
  EXPECT_TRUE(contains(error([](auto&) {}, true), "--data"));
}

TEST(LossLog, KeepsTheLinesUpToAStep) {
  OwnDirectory own;
  std::string path = own.file("loss.jsonl");
  {
    LossLog log(path, 0);
    for (int64_t step = 1; step <= 3; ++step)
      log.add(StepRecord{.step = step, .loss = 0.1 * double(step), .lr = 1}, "tokens");
    log.add(HeldOut{.loss = 0.5, .accuracy = 0.25});
  }
  for (auto damage : {"{\"step\":4,\"lo", "[1, 2]\n", "{\"step\": \"four\"}\n", "{\"step\": 4, \"loss\": null}\n"}) {
    std::ofstream(path, std::ios::app) << damage;
    LossLog log(path, 3);
    ASSERT_EQ(log.steps().size(), 3u) << damage;
    EXPECT_EQ(log.steps()[2].loss, 0.1 * 3);
    ASSERT_TRUE(log.steps()[2].held_out.has_value());
    EXPECT_EQ(log.steps()[2].held_out->loss, 0.5);
    EXPECT_EQ(lines_of(path).size(), 4u) << damage;
  }
  LossLog(path, 2).write_csv(own.file("loss.csv"));
  EXPECT_EQ(lines_of(path).size(), 2u);
  EXPECT_EQ(lines_of(own.file("loss.csv")),
            (std::vector<std::string>{"step,loss,held_out_loss,held_out_accuracy,lr,grad_norm,seconds", "1,0.1,,,1,0,0",
                                      "2,0.2,,,1,0,0"}));
}

TEST(Trainer, OneProcessAtATime) {
  TinyRun run;
  Trainer first = run.start();
  EXPECT_TRUE(contains(message_of([&] { run.start(true); }), "another process"));
}

}  // namespace
}  // namespace sinter::train
