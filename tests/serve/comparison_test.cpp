#include "sinter/serve/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sinter::serve {
namespace {

std::vector<AnswerTimes> answers(uint64_t seed, int count, double slower = 1) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> first(-4, 0.5), token(-6, 0.2);
  std::vector<AnswerTimes> out;
  for (int i = 0; i < count; ++i) {
    const double a = first(random), b = token(random) * slower;
    out.push_back({a, b, a + 100 * b});
  }
  return out;
}

TEST(Comparison, EqualGroupsAreSeldomToldApart) {
  int told = 0;
  for (uint64_t run = 0; run < 400; ++run)
    for (auto& each : differences(answers(2 * run, 150), answers(2 * run + 1, 400)))
      if (each.is_real) {
        ++told;
        break;
      }
  EXPECT_LE(told, 32) << "5 % of 400, and what chance adds once in a hundred thousand times";
}

TEST(Comparison, ASlowerGroupIsSeenAndMeasured) {
  auto found = differences(answers(1, 500), answers(2, 500, 1.5));
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[2].what, "p50 of the time between tokens");
  EXPECT_TRUE(found[2].is_real);
  EXPECT_NEAR(found[2].b / found[2].a, 1.5, 0.05);
  EXPECT_FALSE(found[0].is_real) << "the first token is as fast";
  const std::string text = verdict("fast", "slow", found);
  EXPECT_NE(text.find("fast is 1."), std::string::npos) << text;
  EXPECT_NE(text.find("× faster than slow at p50 of the time between tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("not distinguishable: p50 of the time to the first token"), std::string::npos) << text;
  EXPECT_NE(verdict("a", "b", differences(answers(1, 5), answers(2, 5))).find("too few"), std::string::npos);
}

TEST(Comparison, IntervalsHoldTheTrueQuantile) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> draw(1);
  for (double q : {0.5, 0.9, 0.99}) {
    const double truth = -std::log(1 - q);
    int held = 0;
    for (int run = 0; run < 400; ++run) {
      std::vector<double> values;
      for (int i = 0; i < 600; ++i) values.push_back(draw(random));
      const Quantile got = quantile(values, q);
      held += got.low <= truth && truth <= got.high;
      EXPECT_LE(got.low, got.value);
      EXPECT_LE(got.value, got.high);
    }
    EXPECT_GE(held, 360) << q;
  }
  EXPECT_EQ(quantile({3}, 0.5).value, 3);
  EXPECT_TRUE(std::isinf(quantile({1, 2, 3}, 0.99).high)) << "three values say nothing of a tail";
}

TEST(Comparison, TheProbabilityIsThatOfDealing) {
  // Of four values the two largest are on one side: two of six ways.
  EXPECT_NEAR(same_source({1, 2}, {3, 4}, 0.5), 1.0 / 3, 1e-9);
  EXPECT_EQ(same_source({}, {1}, 0.5), 1);
  EXPECT_NEAR(same_source({1, 4}, {2, 3}, 0.5), 1, 1e-9);
}

TEST(Comparison, AnswersThatWaitedForACompilerAreLeftOut) {
  auto slow = answers(1, 300, 3);
  for (auto& each : slow) each.waited_for_compiling = true;
  auto some = answers(2, 300);
  auto all = some;
  all.insert(all.end(), slow.begin(), slow.end());
  for (auto& each : differences(some, all)) EXPECT_FALSE(each.is_real) << each.what;
}

TEST(Comparison, TheLogKeepsTheLatest) {
  AnswerLog log;
  for (int i = 0; i < 25000; ++i) log.add({.first_s = double(i)});
  auto latest = log.latest();
  EXPECT_EQ(latest.size(), 20000u);
  for (auto& each : latest) EXPECT_GE(each.first_s, 5000);
}

}  // namespace
}  // namespace sinter::serve
