#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/data/image.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"
#include "tests/train/tiny_run.h"

namespace sinter::train {
namespace {

namespace fs = std::filesystem;

// Dark and bright pictures of 40 × 36 pixels, in a folder each.
void draw_pictures(const std::string& folder, int64_t count) {
  manual_seed(5);
  for (auto& [name, low] : {std::pair("bright", 140), {"dark", 0}}) {
    fs::create_directories(fs::path(folder) / name);
    for (int64_t i = 0; i < count; ++i)
      data::write_png((fs::path(folder) / name / format("{}.png", i)).string(),
                      (rand({3, 40, 36}) * 100 + low).to(kUInt8));
  }
}

class Pictures : public ::testing::TestWithParam<const char*> {
 protected:
  Pictures() {
    draw_pictures(run_.file("pictures"), 20);
    run_.options.data = run_.file("pictures");
    run_.options.model = std::string(SINTER_TEST_DATA "/models/") + GetParam();
    run_.options.config = run_.options.tokenizer = "";
    run_.options.held_out = 0.2;
    run_.options.lr = GetParam() == std::string("vit") ? 2e-3 : 1e-2;
    run_.options.warmup = 0;
    run_.options.batch = 8;
  }
  TinyRun run_;
};

// A checkpoint of other classes gets a new head, learns to tell the pictures apart, and goes on bit by bit.
TEST_P(Pictures, AreToldApart) {
  auto trainer = std::make_unique<Trainer>(run_.options, false, std::set<std::string>());
  Observer nobody;
  trainer->run(nobody);
  EXPECT_EQ(trainer->log().steps().back().held_out->accuracy, 1);
  auto whole = TinyRun::losses_of(trainer->log());
  trainer.reset();
  EXPECT_NEAR(whole.front(), std::log(2.0), 0.5) << "two classes";
  EXPECT_LT(whole[whole.size() - 2], 0.3);
  EXPECT_LT(whole.back(), 0.5) << "on what is held back";
  std::string folder = run_.options.out + "/step-12";
  auto config = nlohmann::json::parse(std::ifstream(folder + "/config.json"));
  EXPECT_EQ(config["id2label"], (nlohmann::json{{"0", "bright"}, {"1", "dark"}}));
  auto model = std::dynamic_pointer_cast<models::ImageClassifier>(models::from_pretrained(folder));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->parameters().back().size(0), 2);
  fs::remove_all(folder);
  EXPECT_EQ(run_.losses(/*resume=*/true), whole);
}

TEST_P(Pictures, ErrorsNameTheRemedy) {
  run_.options.batch = 33;
  EXPECT_NE(message_of([&] { run_.start(); }).find("--batch"), std::string::npos);
  run_.options.batch = 8;
  run_.options.lora_rank = 2;
  EXPECT_NE(message_of([&] { run_.start(); }).find("--lora-rank"), std::string::npos);
  run_.options.data = run_.file("text.txt");
  EXPECT_NE(message_of([&] { run_.start(); }).find("is not a folder"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, Pictures, ::testing::Values("vit", "resnet"), [](auto& info) { return info.param; });

}  // namespace
}  // namespace sinter::train
