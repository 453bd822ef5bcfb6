#include "sinter/generate/text_generator.h"

#include <gtest/gtest.h>

#include <map>

#include "sinter/base/error.h"
#include "tests/generate/whale.h"

namespace sinter {
namespace {

using testing::recorded;
using testing::ways;
using testing::whale;
using testing::whale_tokenizer;
using Ids = std::vector<int64_t>;

// A TextGenerator for a few hundred positions: short caches are cheap to walk.
GeneratorOptions small(GeneratorOptions options) {
  options.cache_length = 128;
  return options;
}

TEST(TextGenerator, ReproducesTheRecordedContinuations) {
  for (auto& way : ways()) {
    TextGenerator generator(whale(), small(way.options));
    for (std::string i : {"0", "1", "2"})
      EXPECT_EQ(generator.generate(recorded("prompt_" + i), {.max_new_tokens = 64}).ids, recorded("greedy_" + i))
          << way.name << " " << i;
  }
}

TEST(TextGenerator, CompilesOncePerBucketAndOneDecodeStep) {
  TextGenerator generator(whale(), {.cache_length = 128, .buckets = {8, 32}});
  auto prompt = [](int64_t length) { return Ids(size_t(length), 5); };
  for (int64_t length : {3, 8, 1, 5}) generator.generate(prompt(length), {.max_new_tokens = 4 + length});
  EXPECT_EQ(generator.prefill_programs(), 1);
  EXPECT_EQ(generator.decode_programs(), 1);
  for (int64_t length : {9, 32, 4, 20}) generator.generate(prompt(length), {.max_new_tokens = 7});
  EXPECT_EQ(generator.prefill_programs(), 2) << "the bucket of 32";
  EXPECT_EQ(generator.decode_programs(), 1);
  EXPECT_EQ(generator.times().compiled, 0);
  generator.generate(prompt(100), {.max_new_tokens = 200});
  EXPECT_EQ(generator.prefill_programs(), 3) << "the whole cache is the last bucket";
  EXPECT_EQ(generator.decode_programs(), 1);
}

TEST(TextGenerator, WarmupCompilesAheadAndChangesNothing) {
  auto options = [](const SamplingOptions& sampling) { return GenerateOptions{.max_new_tokens = 5, .sampling = sampling}; };
  const SamplingOptions greedy, sampled{.repetition_penalty = 1.1, .temperature = 0.8, .top_k = 20, .seed = 3};
  TextGenerator plain(whale(), {.cache_length = 128, .buckets = {8, 32}});
  TextGenerator warm(whale(), {.cache_length = 128, .buckets = {8, 32}});
  warm.generate(Ids{1, 2}, {.max_new_tokens = 3});
  auto steps = warm.times().steps_s;
  double prefill = warm.times().prefill_s;
  int64_t bytes = warm.cache_bytes();
  warm.warmup({.batch = {1, 3}, .lengths = {5, 20}});
  warm.warmup({.batch = {1}, .lengths = {7}, .sampling = sampled});
  EXPECT_EQ(warm.times().steps_s, steps);
  EXPECT_EQ(warm.times().prefill_s, prefill);
  EXPECT_EQ(warm.cache_bytes(), bytes);
  EXPECT_EQ(warm.prefill_programs(), 5);
  EXPECT_EQ(warm.decode_programs(), 4) << "in a batch once for rows of one length and once for others";
  Ids longer(20, 7);
  const std::vector<std::pair<std::vector<Ids>, SamplingOptions>> calls = {
      {{{5, 6, 7}}, greedy}, {{longer}, greedy},          {{{5}, {6}, {7}}, greedy},
      {{{5}, {6, 7}, longer}, greedy}, {{{5, 6, 7}}, sampled}};
  for (auto& [prompts, sampling] : calls) {
    auto got = warm.generate(prompts, options(sampling));
    EXPECT_EQ(warm.times().compiled, 0);
    EXPECT_EQ(warm.times().compile_s(), 0);
    auto want = plain.generate(prompts, options(sampling));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].ids, want[i].ids);
  }
  EXPECT_THROW(warm.warmup({.lengths = {1000}}), Error);
  EXPECT_THROW(warm.warmup({.batch = {0}}), Error);
}

TEST(TextGenerator, CompiledInTheBackgroundItSaysTheSame) {
  GeneratorOptions options = small({});
  options.options["background"] = true;
  TextGenerator generator(whale(), options);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(generator.generate(recorded("prompt_0"), {.max_new_tokens = 64}).ids, recorded("greedy_0")) << i;
}

// A number that changes is no new program; another set of filters is.
TEST(TextGenerator, SettingsOfSamplingAreNoNewPrograms) {
  TextGenerator generator(whale(), small({}));
  for (double temperature : {0.5, 0.9, 1.3})
    generator.generate(recorded("prompt_0"),
                       {.max_new_tokens = 3, .sampling = {.temperature = temperature, .top_p = temperature / 2}});
  EXPECT_EQ(generator.prefill_programs(), 1);
  EXPECT_EQ(generator.decode_programs(), 1);
}

TEST(TextGenerator, ADecodeStepCopiesNoCache) {
  for (bool batched : {false, true}) {
    TextGenerator generator(whale(), small({}));
    std::vector<Ids> prompts = {recorded("prompt_0")};
    if (batched) prompts.push_back(recorded("prompt_1"));
    generator.generate(prompts, {.max_new_tokens = 3});
    bool decoded = false;
    for (auto& explanation : generator.explanations()) {
      EXPECT_EQ(explanation.break_count(), 0);
      if (explanation.name.find("decode") == std::string::npos) continue;
      decoded = true;
      for (auto& program : explanation.programs)
        for (auto& plan : program.plans)
          EXPECT_NE(plan.find("copied: 0 bytes"), std::string::npos) << (batched ? "batched: " : "single: ") << plan;
    }
    EXPECT_TRUE(decoded) << generator.explain();
  }
}

TEST(TextGenerator, RowsOfABatchAreAsAlone) {
  std::vector<Ids> prompts = {recorded("prompt_0"), recorded("prompt_1"), recorded("prompt_2"), Ids(40, 7)};
  for (auto& way : ways()) {
    TextGenerator generator(whale(), small(way.options));
    auto together = generator.generate(prompts, {.max_new_tokens = 24});
    ASSERT_EQ(together.size(), prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(together[i].ids, generator.generate(prompts[i], {.max_new_tokens = 24}).ids)
          << way.name << " row " << i;
  }
}

// Rows that end at different steps, at a stop token and at the end of the cache.
TEST(TextGenerator, RowsOfABatchEndOnTheirOwn) {
  TextGenerator generator(whale(), {.cache_length = 48});
  auto first = recorded("greedy_0");
  auto results = generator.generate({recorded("prompt_0"), Ids(44, 7)}, {.max_new_tokens = 20, .stop_ids = {first[9]}});
  size_t stop = size_t(std::find(first.begin(), first.end(), first[9]) - first.begin());
  EXPECT_EQ(results[0].ids, Ids(first.begin(), first.begin() + int64_t(stop) + 1));
  EXPECT_EQ(results[0].finish, Finish::kStopToken);
  EXPECT_EQ(results[1].ids, generator.generate(Ids(44, 7), {.max_new_tokens = 20, .stop_ids = {first[9]}}).ids);
}

TEST(TextGenerator, ModesDrawTheSameTokensAndSeedsOthers) {
  std::vector<SamplingOptions> settings = {{.temperature = 0.9, .top_k = 40, .top_p = 0.95, .seed = 3},
                                           {.repetition_penalty = 1.3, .temperature = 1.1, .min_p = 0.05, .seed = 3}};
  for (auto& sampling : settings) {
    Ids want;
    for (auto& way : ways()) {
      TextGenerator generator(whale(), small(way.options));
      GenerateOptions options{.max_new_tokens = 32, .sampling = sampling};
      auto ids = generator.generate(recorded("prompt_2"), options).ids;
      EXPECT_EQ(generator.generate(recorded("prompt_2"), options).ids, ids) << "the same seed, " << way.name;
      if (want.empty()) want = ids;
      EXPECT_EQ(ids, want) << way.name;
      options.sampling.seed = 4;
      EXPECT_NE(generator.generate(recorded("prompt_2"), options).ids, ids) << "another seed, " << way.name;
    }
  }
}

TEST(TextGenerator, APenaltyKeepsTokensFromComingAgain) {
  TextGenerator generator(whale(), small({}));
  auto prompt = recorded("prompt_0");
  auto ids = generator.generate(prompt, {.max_new_tokens = 60, .sampling = {.repetition_penalty = 1e6}}).ids;
  std::map<int64_t, int> count;
  for (auto* list : {&prompt, &ids})
    for (int64_t id : *list) ++count[id];
  for (int64_t id : ids) EXPECT_EQ(count[id], 1) << id;
}

TEST(TextGenerator, LengthsAtTheEdges) {
  TextGenerator generator(whale(), {.cache_length = 32});
  auto first = recorded("greedy_0");
  EXPECT_TRUE(generator.generate(recorded("prompt_0"), {.max_new_tokens = 0}).ids.empty());
  auto one = generator.generate(recorded("prompt_0"), {.max_new_tokens = 1});
  EXPECT_EQ(one.ids, Ids{first[0]});
  EXPECT_EQ(one.finish, Finish::kLength);
  EXPECT_GT(generator.times().tokens_per_s(), 0);
  // 8 of the prompt leave 24 positions; one token more follows from the last of them.
  auto full = generator.generate(recorded("prompt_0"), {.max_new_tokens = 100});
  EXPECT_EQ(full.ids, Ids(first.begin(), first.begin() + 25));
  EXPECT_EQ(full.finish, Finish::kCacheFull);
  EXPECT_EQ(generator.generate(Ids(32, 5), {.max_new_tokens = 9}).ids.size(), 1u);
}

TEST(TextGenerator, TheTextEndsBeforeAStopString) {
  TextGenerator generator(whale(), small({}));
  auto prompt = recorded("prompt_0");
  std::string whole = generator.generate(prompt, {.max_new_tokens = 40, .tokenizer = &whale_tokenizer()}).text;
  auto ids = recorded("greedy_0");
  ids.resize(40);
  EXPECT_EQ(whole, whale_tokenizer().decode(ids));
  // From the middle of a word on, over several tokens.
  std::string stop = whole.substr(11, 9), streamed;
  GenerateOptions options{
      .max_new_tokens = 40, .stop_strings = {"no such text", stop}, .tokenizer = &whale_tokenizer()};
  options.on_text = [&](int64_t, const std::string& text) { streamed += text; };
  auto result = generator.generate(prompt, options);
  EXPECT_EQ(result.finish, Finish::kStopString);
  EXPECT_EQ(result.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(streamed, result.text);
  EXPECT_LT(result.ids.size(), 40u);
  EXPECT_NE(whale_tokenizer().decode(result.ids).find(stop), std::string::npos) << "the ids go on to its end";
}

TEST(TextGenerator, CallsBackForEachTokenAndMayBeEnded) {
  TextGenerator generator(whale(), small({}));
  Ids heard;
  GenerateOptions options{.max_new_tokens = 30};
  options.on_token = [&](int64_t row, int64_t id) {
    EXPECT_EQ(row, 0);
    heard.push_back(id);
    return heard.size() < 7;
  };
  auto result = generator.generate(recorded("prompt_0"), options);
  EXPECT_EQ(result.finish, Finish::kCaller);
  EXPECT_EQ(result.ids, heard);
  EXPECT_EQ(heard.size(), 7u);
}

TEST(TextGenerator, TimesTellCompilingApart) {
  TextGenerator generator(whale(), small({}));
  generator.generate(recorded("prompt_0"), {.max_new_tokens = 5});
  auto first = generator.times();
  EXPECT_EQ(first.compiled, 2);
  EXPECT_EQ(first.steps_s.size(), 4u);
  EXPECT_GT(first.prefill_compile_s, 0);
  EXPECT_GT(first.steps_compile_s.at(0), 0);
  EXPECT_LT(first.prefill_compile_s, first.prefill_s);
  generator.generate(recorded("prompt_0"), {.max_new_tokens = 5});
  EXPECT_EQ(generator.times().compiled, 0);
  EXPECT_EQ(generator.times().compile_s(), 0);
  EXPECT_GT(generator.times().tokens_per_s(), 0);
}

TEST(TextGenerator, MistakesAreNamed) {
  TextGenerator generator(whale(), {.cache_length = 32});
  auto message = [&](const std::vector<Ids>& prompts, const GenerateOptions& options) -> std::string {
    try {
      generator.generate(prompts, options);
    } catch (const Error& error) {
      return error.message();
    }
    return "nothing was thrown";
  };
  struct Case {
    std::vector<Ids> prompts;
    GenerateOptions options;
    const char* part;
  };
  for (auto& c : {Case{{}, {}, "no prompt"}, Case{{{1}, {}}, {}, "prompt 1 is empty"},
                  Case{{Ids(33, 1)}, {}, "33 tokens, the cache 32"}, Case{{{1, 2048}}, {}, "2048"},
                  Case{{{-1}}, {}, "-1"}, Case{{{1}}, {.max_new_tokens = -1}, "max_new_tokens"},
                  Case{{{1}}, {.sampling = {.temperature = -1}}, "temperature"},
                  Case{{{1}}, {.stop_strings = {"x"}}, "tokenizer"},
                  Case{{{1}}, {.stop_strings = {""}, .tokenizer = &whale_tokenizer()}, "empty"}})
    EXPECT_NE(message(c.prompts, c.options).find(c.part), std::string::npos) << message(c.prompts, c.options);
  EXPECT_THROW(TextGenerator(nullptr), Error);
  EXPECT_THROW(TextGenerator(whale(), {.cache_length = 513}), Error);
  EXPECT_THROW(TextGenerator(whale(), {.cache_length = 32, .buckets = {64}}), Error);
}

// Models of other families, with recorded continuations of 40 tokens.
class FixtureGeneration : public ::testing::TestWithParam<const char*> {};

TEST_P(FixtureGeneration, ReproducesTheRecordedContinuation) {
  std::string folder = SINTER_TEST_DATA "/models/" + std::string(GetParam());
  auto model = models::causal_lm(models::from_pretrained(folder));
  SafeTensorsFile golden(folder + "/golden.safetensors");
  auto ids = golden.tensor("input_ids").to_vector<int64_t>();
  ids.resize(size_t(int64_t(golden.tensor("input_ids").size(1))));
  for (auto& way : ways()) {
    TextGenerator generator(model, small(way.options));
    EXPECT_EQ(generator.generate(ids, {.max_new_tokens = 40}).ids, golden.tensor("greedy").to_vector<int64_t>())
        << way.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FixtureGeneration,
                         ::testing::Values("llama-gqa", "llama3-tied-ropescale", "qwen2", "gpt2"), [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sinter
