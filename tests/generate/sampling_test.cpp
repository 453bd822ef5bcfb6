// sample() against a plain reference.
#include "sinter/generate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter {
namespace {

constexpr int64_t kVocab = 50;

std::vector<float> some_logits(uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(kVocab);
  for (auto& x : logits) x = normal(random);
  return logits;
}

// The probability of each token after all filters.
std::vector<double> reference(const std::vector<float>& logits, const std::vector<bool>& seen,
                              const SamplingOptions& o) {
  std::vector<double> x(logits.begin(), logits.end());
  for (size_t i = 0; i < x.size(); ++i) {
    if (seen[i]) x[i] = x[i] > 0 ? x[i] / o.repetition_penalty : x[i] * o.repetition_penalty;
    x[i] /= o.temperature;
  }
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  if (o.top_k > 0) order.resize(std::min(order.size(), size_t(o.top_k)));
  double sum = 0, before = 0;
  for (size_t i : order) sum += std::exp(x[i] - x[order[0]]);
  std::vector<double> p(x.size(), 0);
  for (size_t i : order) {
    double its = std::exp(x[i] - x[order[0]]) / sum;
    if (before < o.top_p && its >= o.min_p / sum) p[i] = its;
    before += its;
  }
  double kept = std::accumulate(p.begin(), p.end(), 0.0);
  for (auto& value : p) value /= kept;
  return p;
}

// Draws as many tokens as there are, evenly spread over [0, 1).
std::vector<int64_t> draw(const std::vector<float>& logits, const std::vector<bool>& seen, const SamplingOptions& o,
                          const std::vector<double>& draws, bool compiled) {
  int64_t rows = int64_t(draws.size());
  Tensor seen_tensor = zeros({kVocab}, kBool);
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) seen_tensor[int64_t(i)].fill_(1);
  SamplingShape shape = SamplingShape::of(o);
  auto step = [shape](const Tensor& logits, const Tensor& numbers, const Tensor& draws, const Tensor& seen) {
    return sample(logits, shape, numbers, draws, seen);
  };
  Tensor in = tensor(logits).unsqueeze(0).expand({rows, kVocab}).contiguous();
  Tensor numbers = sampling_numbers(o, rows), which = tensor(draws);
  Tensor marks = seen_tensor.unsqueeze(0).expand({rows, kVocab}).contiguous();
  Tensor out =
      compiled ? compile(step, {.fullgraph = true})(in, numbers, which, marks) : step(in, numbers, which, marks);
  return out.to_vector<int64_t>();
}

std::vector<SamplingOptions> settings() {
  return {{.temperature = 1},
          {.temperature = 0.6},
          {.temperature = 1.5, .top_k = 7},
          {.temperature = 1, .top_k = 1000},
          {.temperature = 1, .top_p = 0.8},
          {.temperature = 1, .min_p = 0.1},
          {.temperature = 0.9, .top_k = 20, .top_p = 0.9, .min_p = 0.02},
          {.repetition_penalty = 1.7, .temperature = 1},
          {.repetition_penalty = 0.8, .temperature = 2, .top_k = 30, .top_p = 0.7}};
}

// With evenly spread draws a token's share differs from its probability by one draw or so, and what a filter leaves out
// never comes.
TEST(Sampling, SharesAreTheProbabilitiesOfAPlainReference) {
  constexpr int kDraws = 4000;
  std::vector<double> draws(kDraws);
  for (int i = 0; i < kDraws; ++i) draws[size_t(i)] = (i + 0.5) / kDraws;
  std::vector<bool> seen(kVocab, false);
  for (size_t i = 0; i < kVocab; i += 3) seen[i] = true;
  int number = 0;
  for (auto& options : settings()) {
    auto logits = some_logits(uint64_t(number));
    auto want = reference(logits, options.repetition_penalty == 1 ? std::vector<bool>(kVocab, false) : seen, options);
    for (bool compiled : {false, true}) {
      std::vector<int> count(kVocab, 0);
      for (int64_t token : draw(logits, seen, options, draws, compiled)) ++count.at(size_t(token));
      for (size_t t = 0; t < kVocab; ++t) {
        if (want[t] == 0)
          EXPECT_EQ(count[t], 0) << "token " << t << " is filtered out by setting " << number;
        else
          EXPECT_NEAR(count[t], want[t] * kDraws, 1.5) << "token " << t << " of setting " << number << " " << compiled;
      }
    }
    ++number;
  }
}

TEST(Sampling, WithoutTemperatureTheLikeliestAfterThePenalty) {
  auto logits = some_logits(3);
  std::vector<bool> seen(kVocab, false);
  SamplingOptions greedy;
  auto best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  EXPECT_EQ(draw(logits, seen, greedy, {0.3}, true)[0], int64_t(best));
  greedy.repetition_penalty = 100;
  seen[best] = true;
  auto rest = logits;
  rest[best] /= 100;
  EXPECT_EQ(draw(logits, seen, greedy, {0.3}, true)[0], std::max_element(rest.begin(), rest.end()) - rest.begin());
}

TEST(Sampling, DrawsAtTheEndsAreTokensThatAreKept) {
  auto logits = some_logits(4);
  std::vector<bool> seen(kVocab, false);
  for (auto& options : settings()) {
    if (options.repetition_penalty != 1) continue;
    auto want = reference(logits, seen, options);
    for (int64_t token : draw(logits, seen, options, {0.0, 1 - 0x1p-53, 0.999999999}, false))
      EXPECT_GT(want.at(size_t(token)), 0) << token;
  }
}

// Pearson's statistic of 32 classes: 31 degrees of freedom, beyond 80 once in a million.
TEST(Sampling, HostDrawsAreUniformAndIndependentOfTheBatch) {
  constexpr int kClasses = 32, kDraws = 32000;
  auto statistic = [&](auto value) {
    std::vector<double> count(kClasses, 0);
    for (int i = 0; i < kDraws; ++i) {
      double u = value(i);
      EXPECT_TRUE(u >= 0 && u < 1);
      ++count[size_t(u * kClasses)];
    }
    double expected = double(kDraws) / kClasses, sum = 0;
    for (double c : count) sum += (c - expected) * (c - expected) / expected;
    return sum;
  };
  EXPECT_LT(statistic([](int i) { return sampling_draw(1, 0, i); }), 80) << "steps";
  EXPECT_LT(statistic([](int i) { return sampling_draw(1, i, 0); }), 80) << "rows";
  EXPECT_LT(statistic([](int i) { return sampling_draw(uint64_t(i), 0, 0); }), 80) << "seeds";
  EXPECT_EQ(sampling_draw(5, 1, 2), sampling_draw(5, 1, 2));
  EXPECT_NE(sampling_draw(5, 1, 2), sampling_draw(5, 2, 1));
}

TEST(Sampling, OptionsOutOfRangeAreNamed) {
  struct Case {
    SamplingOptions options;
    const char* name;
  };
  for (auto& c : {Case{{.temperature = -1}, "temperature"}, Case{{.top_k = -2}, "top_k"}, Case{{.top_p = 0}, "top_p"},
                  Case{{.top_p = 1.1}, "top_p"}, Case{{.min_p = 1}, "min_p"},
                  Case{{.repetition_penalty = 0}, "repetition_penalty"}, Case{{.temperature = NAN}, "temperature"}}) {
    try {
      c.options.check();
      ADD_FAILURE() << c.name << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(c.name), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace sinter
