#include "sinter/serve/arms.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "tests/serve/served_whale.h"

namespace sinter::serve {
namespace {

using Json = nlohmann::ordered_json;

std::unique_ptr<Engine> engine_of(const std::string& arm, std::shared_ptr<Turns> turns, double delay_s) {
  EngineOptions options = testing::served_whale_options();
  options.arm = arm;
  options.turns = std::move(turns);
  options.step_delay_s = delay_s;
  auto engine = std::make_unique<Engine>(testing::whale(), &testing::chat_tokenizer(), options);
  engine->start();
  return engine;
}

TEST(Arms, KeysAreSpreadByTheSharesAndStay) {
  Engine& engine = testing::served_whale();
  const Arms arms({{"a", 90, &engine}, {"b", 10, &engine}});
  std::map<std::string, int> count;
  for (int i = 0; i < 10000; ++i) {
    const std::string key = format("user {}", i);
    ++count[arms.of_key(key).name];
    EXPECT_EQ(arms.of_key(key).name, arms.of_key(key).name);
  }
  EXPECT_NEAR(count["b"], 1000, 150);
  EXPECT_EQ(arms.named("b")->share, 10);
  EXPECT_EQ(arms.named("c"), nullptr);
  EXPECT_THROW(Arms({}), Error);
  EXPECT_THROW(Arms({{"a", 1, &engine}, {"a", 1, &engine}}), Error);
  EXPECT_THROW(Arms({{"a", 0, &engine}}), Error);
}

TEST(Arms, AreWrittenAsNamesWithShares) {
  EXPECT_EQ(parse_arm("compiled:90"), (std::pair<std::string, double>("compiled", 90)));
  for (const char* wrong : {"compiled", ":3", "a:", "a:b", "a:1x"}) EXPECT_THROW(parse_arm(wrong), Error) << wrong;
}

// Both use the device in turns; what one waits for the other is not counted against it.
TEST(Arms, APlantedDelayIsFoundAndMeasured) {
  auto turns = std::make_shared<Turns>();
  constexpr double kDelay = 0.02;
  auto fast = engine_of("fast", turns, 0), slow = engine_of("slow", turns, kDelay);
  Api api(Arms({{"fast", 50, fast.get()}, {"slow", 50, slow.get()}}), {.model_name = "whale"});
  std::vector<std::unique_ptr<Generation>> under_way;
  auto wait_for = [](Generation& generation) {
    for (int i = 0; i < 60000 && !generation.is_done(); ++i) {
      generation.take();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(generation.is_done());
  };
  std::map<std::string, int> answered;
  for (int i = 0; i < 60; ++i) {
    Call call{
        .method = "POST", .path = "/v1/completions", .body = R"({"prompt":"The","max_tokens":5,"ignore_eos":true})"};
    call.id = format("{}", i);
    if (i % 2) call.arm = i % 4 == 1 ? "fast" : "slow";
    Outcome outcome = api.call(call);
    ASSERT_TRUE(outcome.generation) << outcome.reply.body;
    if (i % 2) {
      EXPECT_EQ(outcome.arm, call.arm);
    }
    ++answered[outcome.arm];
    under_way.push_back(std::move(outcome.generation));
    if (under_way.size() < 4) continue;
    for (auto& generation : under_way) wait_for(*generation);
    under_way.clear();
  }
  ASSERT_GE(answered["fast"], 20);
  ASSERT_GE(answered["slow"], 20);
  const Json report = Json::parse(api.call({.method = "GET", .path = "/ab"}).reply.body);
  ASSERT_EQ(report["arms"].size(), 2u);
  EXPECT_GT(report["arms"][0]["turn_seconds"], 0) << "it waited for the slow one";
  const Json& comparison = report["comparisons"][0];
  EXPECT_NE(comparison["verdict"].get<std::string>().find("fast is"), std::string::npos) << comparison;
  for (auto& each : comparison["differences"])
    if (each["what"] == "p50 of the time between tokens") {
      EXPECT_TRUE(each["is_real"]);
      const double apart = each["b_seconds"].get<double>() - each["a_seconds"].get<double>();
      EXPECT_GT(apart, kDelay * 0.8);
      EXPECT_LT(apart, kDelay * 3);
    }
  const std::string metrics = api.call({.method = "GET", .path = "/metrics"}).reply.body;
  EXPECT_NE(metrics.find("arm=\"slow\""), std::string::npos);
  const std::string header = "# TYPE sinter:generation_tokens_total";
  EXPECT_EQ(metrics.find(header, metrics.find(header) + 1), std::string::npos) << "told once for both";
  Outcome wrong = api.call({.method = "POST", .path = "/v1/completions", .body = R"({"prompt":"a"})", .arm = "other"});
  EXPECT_EQ(wrong.reply.status, 400);
}

TEST(Arms, NothingIsComparedWhereThereIsOne) {
  Api api(testing::served_whale(), {.model_name = "whale"});
  EXPECT_EQ(api.call({.method = "GET", .path = "/ab"}).reply.status, 404);
}

}  // namespace
}  // namespace sinter::serve
