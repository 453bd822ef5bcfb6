// Tiny checkpoints whose outputs transformers has recorded: see tools/make_fixtures.py.
#include <gtest/gtest.h>

#include <sstream>

#include <filesystem>
#include <map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/io/config.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/models.h"
#include "sinter/nn/module.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/distance.h"
#include "tests/support/error_of.h"

namespace sinter::models {
namespace {

constexpr int64_t kSteps = 40;

std::string folder_of(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/models/" + name; }

struct Fixture {
  std::shared_ptr<Model> model;
  std::map<std::string, Tensor> golden;

  explicit Fixture(const std::string& name) : model(from_pretrained(folder_of(name))) {
    for (auto& [key, tensor] : load_safetensors(folder_of(name) + "/golden.safetensors")) golden[key] = tensor;
  }
};

Tensor range(int64_t from, int64_t to) { return arange(from, to, kInt64); }
Tensor next_of(const Tensor& logits) { return argmax(logits.select(1, -1), -1).unsqueeze(-1); }

// These rotate by the length so far: keys of a cache keep the angles they were written with.
bool rotates_by_length(const std::string& name) {
  return name == "llama-dynamic" || name == "phi3-longrope" || name == "phi4";
}

class Decoders : public ::testing::TestWithParam<const char*> {};

TEST_P(Decoders, LogitsOfWholeSequences) {
  Fixture fixture(GetParam());
  auto model = causal_lm(fixture.model);
  Tensor ids = fixture.golden.at("input_ids"), want = fixture.golden.at("logits");
  EXPECT_LT(distance(model->forward(ids), want), 1e-4);
  auto fast = compile(model, {.fullgraph = true});
  EXPECT_LT(distance(fast(ids), want), 1e-4) << "compiled";
  EXPECT_LT(distance(model->run({{"input_ids", ids}})[0].second, want), 1e-4);
}

TEST_P(Decoders, GreedyTokensWithACache) {
  Fixture fixture(GetParam());
  auto model = causal_lm(fixture.model);
  Tensor prompt = fixture.golden.at("input_ids").slice(0, 0, 1);
  auto want = fixture.golden.at("greedy").to_vector<int64_t>();
  int64_t length = prompt.size(1);
  auto step = [model](const Tensor& ids, const Tensor& positions, KvCache cache) {
    return model->forward(ids, positions, {}, &cache);
  };
  auto generate = [&](auto& run) {
    KvCache cache = model->make_cache(1, length + kSteps);
    std::vector<int64_t> tokens;
    Tensor token = next_of(run(prompt, range(0, length), cache));
    for (int64_t i = 0;; ++i) {
      tokens.push_back(token.item<int64_t>());
      if (i + 1 == kSteps) return tokens;
      token = next_of(run(token, range(length + i, length + i + 1), cache));
    }
  };
  EXPECT_EQ(generate(step), want);
  auto fast = compile(step, {.fullgraph = true});
  EXPECT_EQ(generate(fast), want) << "compiled";
  auto fastest = compile(step, {.mode = Mode::kReduceOverhead, .fullgraph = true});
  EXPECT_EQ(generate(fastest), want) << "reduce-overhead";
  auto explanation = capture::explain(fast.function());
  EXPECT_EQ(explanation.programs.size(), 2u) << "one prefill and one decode step";
}

TEST_P(Decoders, GreedyTokensWithoutACache) {
  if (rotates_by_length(GetParam())) return;
  Fixture fixture(GetParam());
  auto model = causal_lm(fixture.model);
  Tensor ids = fixture.golden.at("input_ids").slice(0, 0, 1);
  int64_t length = ids.size(1);
  for (int64_t i = 0; i < kSteps; ++i) ids = cat({ids, next_of(model->forward(ids))}, 1);
  EXPECT_EQ(ids.slice(1, length).to_vector<int64_t>(), fixture.golden.at("greedy").to_vector<int64_t>());
}

// Rows of different lengths, padded behind: each row has positions of its own.
TEST_P(Decoders, RowsOfABatchDoNotMeet) {
  Fixture fixture(GetParam());
  if (rotates_by_length(GetParam())) return;
  auto model = causal_lm(fixture.model);
  Tensor ids = fixture.golden.at("input_ids"), want = fixture.golden.at("logits");
  constexpr int64_t kLength = 24, kShort = 9, kPrompt = 16;
  auto step = [model](const Tensor& ids, const Tensor& positions, KvCache cache) {
    return model->forward(ids, positions, {}, &cache);
  };
  auto fast = compile(step, {.fullgraph = true});
  auto through = [&](auto& run) {
    KvCache cache = model->make_cache(2, kLength + 8);
    // The second row has kShort tokens, the rest of its prompt is padding.
    Tensor prompt = ids.slice(1, 0, kPrompt).clone();
    prompt[1].slice(0, kShort).fill_(0);
    Tensor positions = range(0, kPrompt).unsqueeze(0).expand({2, kPrompt}).contiguous();
    Tensor logits = run(prompt, positions, cache);
    EXPECT_LT(distance(logits[0], want[0].slice(0, 0, kPrompt)), 1e-4);
    EXPECT_LT(distance(logits[1].slice(0, 0, kShort), want[1].slice(0, 0, kShort)), 1e-4);
    for (int64_t i = 0; i < 4; ++i) {
      Tensor tokens =
          cat({ids[0].slice(0, kPrompt + i, kPrompt + i + 1), ids[1].slice(0, kShort + i, kShort + i + 1)}, 0);
      Tensor at = tensor({kPrompt + i, kShort + i}).view({2, 1});
      Tensor row = run(tokens.view({2, 1}), at, cache);
      EXPECT_LT(distance(row[0][0], want[0][kPrompt + i]), 1e-4);
      EXPECT_LT(distance(row[1][0], want[1][kShort + i]), 1e-4);
    }
  };
  through(step);
  through(fast);
}

INSTANTIATE_TEST_SUITE_P(Models, Decoders,
                         ::testing::Values("llama-gqa", "llama3-tied-ropescale", "qwen2", "gpt2", "llama-biased",
                                           "llama-linear", "llama-dynamic", "llama-yarn", "mistral", "qwen2-window",
                                           "qwen3", "phi3", "phi3-longrope", "gemma", "gemma2", "gemma3", "gpt_neox",
                                           "gpt_neox-serial", "opt", "opt-projected", "smollm3", "smollm3-window",
                                           "phi", "phi-normed", "phi4", "granite", "olmo2", "stablelm",
                                           "stablelm-parallel", "cohere", "cohere-normed", "cohere2", "falcon",
                                           "falcon-grouped", "falcon-serial", "glm", "glm4", "starcoder2", "mixtral",
                                           "qwen2_moe", "qwen3_moe", "olmoe"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class EncoderDecoders : public ::testing::TestWithParam<const char*> {
 protected:
  Tensor input() const {
    return fixture_.golden.at(fixture_.golden.contains("input_ids") ? "input_ids" : "input_features");
  }
  std::optional<Tensor> mask() const {
    auto found = fixture_.golden.find("attention_mask");
    return found == fixture_.golden.end() ? std::nullopt : std::optional(found->second);
  }

  Fixture fixture_{GetParam()};
  std::shared_ptr<EncoderDecoder> model_ = encoder_decoder(fixture_.model);
};

// The second row's text ends early.
TEST_P(EncoderDecoders, LogitsOfWholeSequences) {
  Tensor ids = fixture_.golden.at("decoder_input_ids"), want = fixture_.golden.at("logits");
  NamedTensors inputs = {{input().is_floating_point() ? "input_features" : "input_ids", input()},
                         {"decoder_input_ids", ids}};
  if (mask()) inputs.emplace_back("attention_mask", *mask());
  EXPECT_LT(distance(model_->run(inputs)[0].second, want), 1e-4);
  auto whole = [model = model_](const Tensor& input, const std::optional<Tensor>& mask, const Tensor& ids) {
    KvCache cache;
    cache.source = model->read(input, mask);
    return model->forward(ids, range(0, ids.size(1).to_int()), {}, &cache);
  };
  auto fast = compile(whole, {.fullgraph = true});
  EXPECT_LT(distance(fast(input(), mask(), ids), want), 1e-4) << "compiled";
}

TEST_P(EncoderDecoders, GreedyTokensWithACache) {
  auto want = fixture_.golden.at("greedy").to_vector<int64_t>();
  auto config = ConfigFile::read(folder_of(GetParam()) + "/config.json");
  auto read = [model = model_](const Tensor& input, const std::optional<Tensor>& mask) {
    return model->read(input, mask);
  };
  auto step = [model = model_](const Tensor& ids, const Tensor& positions, KvCache cache) {
    return model->forward(ids, positions, {}, &cache);
  };
  auto generate = [&](auto& reads, auto& steps) {
    KvCache cache = model_->make_cache(1, kSteps + 1);
    Tensor one = input().slice(0, 0, 1);
    cache.source = reads(one, mask() ? std::optional(mask()->slice(0, 0, 1)) : std::nullopt);
    std::vector<int64_t> tokens;
    Tensor token = tensor({config.integer("decoder_start_token_id")}).view({1, 1});
    for (int64_t i = 0; i < kSteps; ++i) {
      token = next_of(steps(token, range(i, i + 1), cache));
      tokens.push_back(token.item<int64_t>());
    }
    return tokens;
  };
  EXPECT_EQ(generate(read, step), want);
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
    auto fast_read = compile(read, {.mode = mode, .fullgraph = true});
    auto fast_step = compile(step, {.mode = mode, .fullgraph = true});
    EXPECT_EQ(generate(fast_read, fast_step), want) << to_string(mode);
    EXPECT_EQ(capture::explain(fast_step.function()).programs.size(), 1u);
  }
}

// Rows of a batch stand at different positions, and have read texts of different lengths.
TEST_P(EncoderDecoders, RowsOfABatchDoNotMeet) {
  Tensor ids = fixture_.golden.at("decoder_input_ids"), want = fixture_.golden.at("logits");
  KvCache cache = model_->make_cache(2, 16);
  cache.source = model_->read(input(), mask());
  auto step = compile([model = model_](const Tensor& ids, const Tensor& positions,
                                       KvCache cache) { return model->forward(ids, positions, {}, &cache); },
                      {.fullgraph = true});
  Tensor positions = range(0, 8).unsqueeze(0).expand({2, 8}).contiguous();
  EXPECT_LT(distance(step(ids.slice(1, 0, 8), positions, cache), want.slice(1, 0, 8)), 1e-4);
  // The first row goes on, the second begins its last three tokens anew.
  for (int64_t i = 0; i < 3; ++i) {
    Tensor tokens = cat({ids[0].slice(0, 8 + i, 9 + i), ids[1].slice(0, 5 + i, 6 + i)}, 0);
    Tensor rows = step(tokens.view({2, 1}), tensor({8 + i, 5 + i}).view({2, 1}), cache);
    EXPECT_LT(distance(rows[0][0], want[0][8 + i]), 1e-4);
    EXPECT_LT(distance(rows[1][0], want[1][5 + i]), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderDecoders, ::testing::Values("t5", "t5-gated", "bart", "whisper"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(EncoderDecoder, SaysWhatIsMissing) {
  auto model = encoder_decoder(from_pretrained(folder_of("t5")));
  KvCache cache = model->make_cache(1, 4);
  EXPECT_NE(message_of([&] { model->forward(tensor({{0}}), range(0, 1), {}, &cache); }).find("model->read"),
            std::string::npos);
  EXPECT_THROW(causal_lm(from_pretrained(folder_of("t5"))), Error);
  EXPECT_THROW(encoder_decoder(from_pretrained(folder_of("llama-gqa"))), Error);
  auto whisper = encoder_decoder(from_pretrained(folder_of("whisper")));
  EXPECT_NE(message_of([&] { whisper->read(zeros({1, 16, 99})); }).find("[batch, 16, 100]"), std::string::npos);
}

class Encoders : public ::testing::TestWithParam<const char*> {};

TEST_P(Encoders, HiddenStates) {
  Fixture fixture(GetParam());
  auto model = std::dynamic_pointer_cast<TextEncoder>(fixture.model);
  ASSERT_TRUE(model);
  Tensor ids = fixture.golden.at("input_ids"), mask = fixture.golden.at("attention_mask");
  // What transformers gives at padding depends on how it masks.
  Tensor seen = ne(mask, 0).unsqueeze(-1).to(kFloat32), want = fixture.golden.at("last_hidden_state") * seen;
  EXPECT_LT(distance(model->run({{"input_ids", ids}, {"attention_mask", mask}})[0].second * seen, want), 1e-4);
  auto fast =
      compile([model](const Tensor& ids, const std::optional<Tensor>& mask) { return model->forward(ids, mask, {}); },
              {.fullgraph = true});
  EXPECT_LT(distance(fast(ids, std::optional(mask)) * seen, want), 1e-4) << "compiled";
}

INSTANTIATE_TEST_SUITE_P(Models, Encoders, ::testing::Values("bert", "roberta", "distilbert"),
                         [](auto& info) { return std::string(info.param); });

class Images : public ::testing::TestWithParam<const char*> {};

TEST_P(Images, Logits) {
  Fixture fixture(GetParam());
  auto model = std::dynamic_pointer_cast<ImageClassifier>(fixture.model);
  ASSERT_TRUE(model);
  Tensor pixels = fixture.golden.at("pixel_values"), want = fixture.golden.at("logits");
  EXPECT_LT(distance(model->forward(pixels), want), 1e-4);
  auto fast = compile(model, {.fullgraph = true});
  EXPECT_LT(distance(fast(pixels), want), 1e-4) << "compiled";
}

INSTANTIATE_TEST_SUITE_P(Models, Images, ::testing::Values("vit", "resnet"),
                         [](auto& info) { return std::string(info.param); });

// A decode step changes one row a layer: its plan copies nothing.
void expect_rows_in_place(int64_t batch, const Tensor& first_position, const std::string& op) {
  auto model = causal_lm(from_pretrained(folder_of("llama-gqa")));
  auto fast = compile([model](const Tensor& ids, const Tensor& positions, KvCache cache) {
    return model->forward(ids, positions, {}, &cache);
  });
  KvCache cache = model->make_cache(batch, 64);
  const void* memory = cache.keys[0].data_ptr();
  for (int64_t i = 0; i < 3; ++i) fast(full({batch, 1}, i + 5, TensorOptions(kInt64)), first_position + i, cache);
  EXPECT_EQ(cache.keys[0].data_ptr(), memory);
  auto explanation = capture::explain(fast.function());
  EXPECT_EQ(explanation.programs.size(), 1u);
  auto text = explanation.programs.at(0).plans.at(0);
  // Keys and values of three layers, in whatever kernels.
  int writes = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (size_t at = 0; (at = line.find(" = " + op + "(", at)) != std::string::npos; ++at, ++writes)
      EXPECT_TRUE(line.ends_with("in place")) << line;
  EXPECT_EQ(writes, 6) << text;
  EXPECT_NE(text.find("copied: 0 bytes"), std::string::npos) << text;
}

TEST(DecodeStep, WritesRowsInPlace) {
  expect_rows_in_place(1, tensor({3}), "index_copy");
  expect_rows_in_place(2, tensor({{3}, {9}}), "index_put");
}

// A prompt may be run against the first rows of a longer cache: its attention then costs no more than it must.
TEST(Prefill, ThroughTheFirstRowsOfACache) {
  Fixture fixture("llama-gqa");
  auto model = causal_lm(fixture.model);
  auto step = compile([model](const Tensor& ids, const Tensor& positions, KvCache cache) {
    return model->forward(ids, positions, {}, &cache);
  });
  Tensor ids = fixture.golden.at("input_ids"), want = fixture.golden.at("logits");
  constexpr int64_t kPrompt = 20;
  KvCache cache = model->make_cache(2, 64), first;
  for (auto& keys : cache.keys) first.keys.push_back(keys.slice(2, 0, kPrompt));
  for (auto& values : cache.values) first.values.push_back(values.slice(2, 0, kPrompt));
  EXPECT_LT(distance(step(ids.slice(1, 0, kPrompt), range(0, kPrompt), first), want.slice(1, 0, kPrompt)), 1e-4);
  Tensor next = step(ids.slice(1, kPrompt, kPrompt + 1), range(kPrompt, kPrompt + 1), cache);
  EXPECT_LT(distance(next, want.slice(1, kPrompt, kPrompt + 1)), 1e-4);
}

// What a mask hides changes nothing, whichever kind it is.
TEST(Masks, HidePositions) {
  auto model = causal_lm(from_pretrained(folder_of("llama-gqa")));
  Tensor ids = tensor({{5, 6, 7, 8}}), other = tensor({{5, 99, 7, 8}}), positions = range(0, 4);
  Tensor seen = tensor({true, false, true, true}, kBool).view({1, 1, 1, 4});
  Tensor added = where(seen, 0.0, -1e30);
  Tensor a = model->forward(ids, positions, seen, nullptr), b = model->forward(other, positions, seen, nullptr);
  auto behind = [](const Tensor& t) { return t.slice(1, 2); };
  EXPECT_LT(distance(behind(a), behind(b)), 1e-6);
  EXPECT_LT(distance(behind(model->forward(ids, positions, added, nullptr)), behind(a)), 1e-5);
  EXPECT_GT(distance(behind(model->forward(ids)), behind(model->forward(other))), 1e-3);
  EXPECT_THROW(model->forward(ids, range(0, 3), {}, nullptr), Error);
}

}  // namespace
}  // namespace sinter::models
