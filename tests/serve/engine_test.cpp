#include "sinter/serve/engine.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "tests/generate/whale.h"

namespace sinter::serve {
namespace {

using testing::recorded;
using testing::whale;
using testing::whale_tokenizer;
using Ids = std::vector<int64_t>;

constexpr double kPatience = 60;

struct Result {
  Ids ids;
  std::string text, error;
  std::optional<End> end;
  std::vector<Token> tokens;
};

// All choices of an answer.
std::vector<Result> read(Stream& stream, int64_t choices = 1, Usage* usage = nullptr) {
  std::vector<Result> out{size_t(choices)};
  while (auto event = stream.next(kPatience)) {
    Result& result = out.at(size_t(event->choice));
    for (auto& token : event->tokens) result.ids.push_back(token.id), result.tokens.push_back(token);
    result.text += event->text;
    if (event->end) result.end = event->end, result.error = event->error;
    if (!event->is_last) continue;
    if (usage) *usage = event->usage;
    return out;
  }
  ADD_FAILURE() << "the stream went silent";
  return out;
}

EngineOptions small() {
  EngineOptions options;
  options.decoder.max_length = 128;
  options.decoder.page = 16;
  options.decoder.rows = {1, 4, 32};
  options.decoder.chunks = {16, 64};
  return options;
}

// One for all tests that do not look at the pages.
Engine& engine() {
  static Engine* engine = [] {
    auto* made = new Engine(whale(), &whale_tokenizer(), small());
    made->start();
    return made;
  }();
  return *engine;
}

// The engine has nothing to do and every page is free.
void expect_nothing_held(Engine& engine) {
  for (int i = 0; i < 1000 && !engine.state().is_idle(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  auto state = engine.state();
  EXPECT_TRUE(state.is_idle());
  EXPECT_EQ(state.free_pages, state.total_pages);
}

// Of many kinds.
Request varied(int64_t i) {
  Request request;
  for (int64_t t = 0; t < 1 + (i * 13) % 90; ++t) request.prompt.push_back((7 * t + 31 * i) % 2000 + 2);
  request.max_tokens = 4 + i % 30;
  request.ignore_eos = true;
  request.sampling.seed = uint64_t(i);
  if (i % 3 != 0) request.sampling.temperature = 0.5 + 0.1 * double(i % 7);
  if (i % 4 == 1) request.sampling.top_k = 5 + i;
  if (i % 4 == 2) request.sampling.top_p = 0.9;
  if (i % 5 == 3) request.sampling.min_p = 0.05;
  if (i % 6 == 4) request.sampling.repetition_penalty = 1.2;
  if (i % 7 == 5) request.frequency_penalty = 0.5;
  if (i % 9 == 2) request.logprobs = i % 21;
  return request;
}

TEST(Engine, ReproducesTheRecordedContinuations) {
  for (std::string i : {"0", "1", "2"}) {
    auto results = read(*engine().submit({.prompt = recorded("prompt_" + i), .max_tokens = 64, .ignore_eos = true}));
    EXPECT_EQ(results[0].ids, recorded("greedy_" + i)) << i;
    EXPECT_EQ(results[0].text, whale_tokenizer().decode(results[0].ids));
    EXPECT_EQ(results[0].end, End::kLength);
  }
  expect_nothing_held(engine());
}

// Eager programs are the same functions: whatever compiling changes is seen.
TEST(Engine, SaysTheSameOpByOp) {
  EngineOptions options = small();
  options.decoder.eager = true;
  Engine eager(whale(), &whale_tokenizer(), options);
  eager.start();
  for (int64_t i : {1, 2, 4}) {
    auto got = read(*eager.submit(varied(i))), want = read(*engine().submit(varied(i)));
    EXPECT_EQ(got[0].ids, want[0].ids) << i;
  }
}

TEST(Engine, ARequestsTextIsTheSameAloneAndAmongOthers) {
  std::vector<Result> alone;
  for (int64_t i = 0; i < 32; ++i) alone.push_back(read(*engine().submit(varied(i)))[0]);
  std::vector<std::shared_ptr<Stream>> streams;
  for (int64_t i = 31; i >= 0; --i) streams.push_back(engine().submit(varied(i)));
  for (int64_t i = 31; i >= 0; --i) {
    auto result = read(*streams[size_t(31 - i)])[0];
    EXPECT_EQ(result.ids, alone[size_t(i)].ids) << i;
    EXPECT_EQ(result.text, alone[size_t(i)].text) << i;
  }
  expect_nothing_held(engine());
}

TEST(Engine, CompilesNothingAfterTheStart) {
  std::vector<std::shared_ptr<Stream>> streams;
  for (int64_t i = 0; i < 200; ++i) streams.push_back(engine().submit(varied(i)));
  for (auto& stream : streams) EXPECT_EQ(read(*stream)[0].error, "");
  EXPECT_EQ(engine().state().compiled, 0);
}

TEST(Engine, ChoicesDifferAndShareThePrompt) {
  Request request{.prompt = Ids(60, 7), .max_tokens = 12, .choices = 4, .ignore_eos = true};
  request.sampling = {.temperature = 1.5, .seed = 5};
  Usage usage;
  auto results = read(*engine().submit(request), 4, &usage);
  EXPECT_EQ(usage.prompt_tokens, 60);
  EXPECT_EQ(usage.completion_tokens, 48);
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(results[i].ids, results[0].ids);
  auto again = read(*engine().submit(request), 4, &usage);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(again[i].ids, results[i].ids);
  EXPECT_EQ(usage.cached_tokens, 48) << "whole pages of the prompt but the last token";
  request.tenant = "somebody else";
  read(*engine().submit(request), 4, &usage);
  EXPECT_EQ(usage.cached_tokens, 0);
}

TEST(Engine, PenaltiesBiasAndStopsDoWhatTheySay) {
  const Ids prompt = recorded("prompt_0"), plain = recorded("greedy_0");
  auto ids = [&](auto change) {
    Request request{.prompt = prompt, .max_tokens = 16, .ignore_eos = true};
    change(request);
    return read(*engine().submit(request))[0];
  };
  EXPECT_NE(ids([&](Request& r) { r.logit_bias = {{plain[0], -100}}; }).ids[0], plain[0]);
  EXPECT_EQ(ids([&](Request& r) { r.logit_bias = {{77, 1000}}; }).ids, Ids(16, 77));
  auto unlike = ids([&](Request& r) { r.presence_penalty = 1000; }).ids;
  std::sort(unlike.begin(), unlike.end());
  EXPECT_EQ(std::adjacent_find(unlike.begin(), unlike.end()), unlike.end()) << "no token twice";
  auto stopped = ids([&](Request& r) { r.stop_ids = {plain[3]}; });
  EXPECT_EQ(stopped.ids, Ids(plain.begin(), std::find(plain.begin(), plain.end(), plain[3])));
  EXPECT_EQ(stopped.end, End::kStop);
  auto late = ids([&](Request& r) { r.stop_ids = {plain[3]}, r.min_tokens = 10; });
  EXPECT_GE(late.ids.size(), 10u);
  for (size_t i = 0; i < 10; ++i) EXPECT_NE(late.ids[i], plain[3]);
  const std::string text = whale_tokenizer().decode(plain);
  auto cut = ids([&](Request& r) { r.stops = {text.substr(5, 4)}; });
  EXPECT_EQ(cut.text, text.substr(0, text.find(text.substr(5, 4))));
  EXPECT_EQ(cut.end, End::kStop);
}

TEST(Engine, LogprobsAreOfTheModelAndAgreeAloneAndAmongOthers) {
  Request request{.prompt = recorded("prompt_1"), .max_tokens = 8, .ignore_eos = true, .logprobs = 5};
  auto alone = read(*engine().submit(request))[0];
  std::vector<std::shared_ptr<Stream>> others;
  for (int64_t i = 0; i < 20; ++i) others.push_back(engine().submit(varied(i)));
  auto among = read(*engine().submit(request))[0];
  for (auto& stream : others) read(*stream);
  ASSERT_EQ(alone.tokens.size(), 8u);
  for (size_t t = 0; t < 8; ++t) {
    ASSERT_EQ(alone.tokens[t].top.size(), 5u);
    EXPECT_EQ(alone.tokens[t].top[0].id, alone.tokens[t].id) << "greedy: the likeliest";
    EXPECT_EQ(alone.tokens[t].top[0].logprob, alone.tokens[t].logprob);
    EXPECT_LT(alone.tokens[t].logprob, 0);
    EXPECT_NEAR(alone.tokens[t].logprob, among.tokens[t].logprob, 1e-4);
  }
}

TEST(Engine, CancellingFreesThePagesInEveryState) {
  EngineOptions options = small();
  options.decoder.rows = {1, 2};
  options.step_tokens = 16;
  Engine engine(whale(), &whale_tokenizer(), options);
  engine.start();
  const Request long_one{.prompt = Ids(8, 5), .max_tokens = 110, .ignore_eos = true};
  // Two run, so the third one is queued.
  auto first = engine.submit(long_one), second = engine.submit(long_one), queued = engine.submit(long_one);
  ASSERT_TRUE(first->next(kPatience));  // decoding
  ASSERT_TRUE(second->next(kPatience));
  queued->cancel();
  EXPECT_EQ(read(*queued)[0].end, End::kCancelled);
  first->cancel();
  EXPECT_EQ(read(*first)[0].end, End::kCancelled);
  // In the middle of its prompt, which takes several steps.
  auto prompt = engine.submit({.prompt = Ids(120, 9), .max_tokens = 4});
  prompt->cancel();
  EXPECT_EQ(read(*prompt)[0].end, End::kCancelled);
  EXPECT_EQ(read(*second)[0].ids.size(), 109u) << "nobody else is touched, and one token was read";
  expect_nothing_held(engine);
}

TEST(Engine, WhoGivesUpPagesSaysTheSameInTheEnd) {
  std::vector<Result> want;
  auto request = [](int64_t i) {
    Request request{.prompt = Ids(size_t(20 + 3 * i), 11 + i), .max_tokens = 60, .ignore_eos = true};
    request.sampling = {.temperature = i % 2 ? 0.8 : 0, .seed = uint64_t(i)};
    return request;
  };
  for (int64_t i = 0; i < 6; ++i) want.push_back(read(*engine().submit(request(i)))[0]);
  EngineOptions options = small();
  options.decoder.pages = 14;  // two such texts at the end
  options.prefix_cache = false;
  Engine engine(whale(), &whale_tokenizer(), options);
  engine.start();
  std::vector<std::shared_ptr<Stream>> streams;
  for (int64_t i = 0; i < 6; ++i) streams.push_back(engine.submit(request(i)));
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(read(*streams[i])[0].ids, want[i].ids) << i;
  EXPECT_NE(engine.metrics().text().find("num_preemptions_total"), std::string::npos);
  EXPECT_GT(engine.metrics().counter("num_preemptions", "").value(), 0);
  expect_nothing_held(engine);
}

TEST(Engine, SmallerPrioritiesGoFirst) {
  EngineOptions options = small();
  options.decoder.rows = {1};
  Engine engine(whale(), &whale_tokenizer(), options);
  engine.start();
  auto blocking = engine.submit({.prompt = Ids(4, 3), .max_tokens = 100, .ignore_eos = true});
  auto late = engine.submit({.prompt = Ids(4, 3), .max_tokens = 60, .ignore_eos = true, .priority = 1});
  auto soon = engine.submit({.prompt = Ids(4, 3), .max_tokens = 60, .ignore_eos = true, .priority = 0});
  read(*soon);
  EXPECT_GT(engine.state().running + engine.state().waiting, 0) << "the other one came first and is not done";
  read(*late);
  read(*blocking);
}

TEST(Engine, RefusesWhatItCannotAnswer) {
  Engine& e = engine();
  EXPECT_THROW(e.submit({.prompt = {}}), Error);
  EXPECT_THROW(e.submit({.prompt = Ids(128, 1)}), Error);
  EXPECT_THROW(e.submit({.prompt = {1, 5000}}), Error);
  EXPECT_THROW(e.submit({.prompt = {1}, .max_tokens = 0}), Error);
  EXPECT_THROW(e.submit({.prompt = {1}, .logprobs = 21}), Error);
  EXPECT_THROW(e.submit({.prompt = {1}, .sampling = {.temperature = -1}}), Error);
  EngineOptions options = small();
  options.decoder.rows = {1};
  options.most_queued = 2;
  Engine few(whale(), &whale_tokenizer(), options);
  few.start();
  std::vector<std::shared_ptr<Stream>> taken;
  auto fill = [&] {
    for (int i = 0; i < 10; ++i) taken.push_back(few.submit({.prompt = {1}, .max_tokens = 100, .ignore_eos = true}));
  };
  EXPECT_THROW(fill(), Refused);
  EXPECT_LE(taken.size(), 4u);
  few.close();
  EXPECT_THROW(few.submit({.prompt = {1}}), Refused);
  for (auto& stream : taken) EXPECT_EQ(read(*stream)[0].ids.size(), 100u) << "what was taken is answered";
}

}  // namespace
}  // namespace sinter::serve
