// Tiny checkpoints whose outputs transformers has recorded: see tools/make_fixtures.py.
#include <gtest/gtest.h>

#include <sstream>

#include <filesystem>
#include <map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/models.h"
#include "sinter/nn/module.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/distance.h"

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
  auto explanation = capture::explain(fast.function());
  EXPECT_EQ(explanation.programs.size(), 2u) << "one prefill and one decode step";
}

TEST_P(Decoders, GreedyTokensWithoutACache) {
  // These rotate by the length so far: keys of a cache keep the angles they were written with.
  if (std::string(GetParam()) == "llama-dynamic" || std::string(GetParam()) == "phi3-longrope") return;
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
  if (std::string(GetParam()) == "llama-dynamic" || std::string(GetParam()) == "phi3-longrope") return;
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
                                           "gpt_neox-serial", "opt", "opt-projected", "smollm3", "smollm3-window"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

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
