#include "sinter/generate/paged_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "tests/generate/whale.h"

namespace sinter {
namespace {

using Ids = std::vector<int64_t>;

std::string folder_of(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/models/" + name; }

// One sequence, its pages strewn over the cache.
struct Text {
  Ids ids, pages;
  int64_t computed = 0;

  PagedRow take(int64_t most) {
    const int64_t count = std::min<int64_t>(most, int64_t(ids.size()) - computed);
    PagedRow row{std::span(ids).subspan(size_t(computed), size_t(count)), computed, pages};
    computed += count;
    return row;
  }
};

int64_t likeliest(PagedDecoder& decoder, const Tensor& logits, size_t row = 0) {
  RowSampling greedy;
  std::vector<const RowSampling*> rows(row + 1, nullptr);
  rows[row] = &greedy;
  return decoder.sample(logits, rows)[row];
}

void prefill(PagedDecoder& decoder, Text& text, int64_t chunk) {
  Tensor logits;
  while (text.computed < int64_t(text.ids.size())) logits = decoder.prefill(text.take(chunk));
  text.ids.push_back(likeliest(decoder, logits));
}

class PagedFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(PagedFamilies, SayWhatTransformersSays) {
  const std::string name = GetParam();
  auto model = models::causal_lm(models::from_pretrained(folder_of(name)));
  std::map<std::string, Tensor> golden;
  for (auto& [key, tensor] : load_safetensors(folder_of(name) + "/golden.safetensors")) golden[key] = tensor;
  const Ids prompt = golden.at("input_ids").select(0, 0).to_vector<int64_t>(),
            want = golden.at("greedy").to_vector<int64_t>();
  const int64_t most = model->config().max_positions, length = most > 0 ? std::min<int64_t>(most, 64) : 64;
  PagedDecoder decoder(model,
                       {.eager = true, .page = 4, .pages = 40, .max_length = length, .rows = {1, 4}, .chunks = {3, 8}});
  Text text{prompt, {}}, other{Ids(9, 3), {}};
  for (int64_t i = 0; i < length / 4; ++i) text.pages.push_back(2 * i + 1), other.pages.push_back(32 - 2 * i);
  prefill(decoder, text, 8);
  prefill(decoder, other, 3);
  const size_t count = std::min<size_t>(16, size_t(length) - prompt.size());
  for (size_t step = 1; step < count; ++step) {
    const std::vector<PagedRow> rows = {other.take(1), text.take(1)};
    Tensor logits = decoder.decode(rows);
    other.ids.push_back(likeliest(decoder, logits, 0));
    text.ids.push_back(likeliest(decoder, logits, 1));
  }
  EXPECT_EQ(Ids(text.ids.begin() + int64_t(prompt.size()), text.ids.end()),
            Ids(want.begin(), want.begin() + int64_t(count)));
  EXPECT_GE(count, 8u);
}

// One of each way in which attention differs: heads in groups, windows, softcap, alibi, learned positions, angles that
// follow the length.
INSTANTIATE_TEST_SUITE_P(Models, PagedFamilies,
                         ::testing::Values("llama-gqa", "mistral", "gemma2", "gemma3", "falcon", "gpt2", "gpt_neox",
                                           "opt", "phi", "cohere2", "mixtral", "qwen3_moe", "llama-yarn",
                                           "llama-dynamic", "smollm3-window"),
                         [](auto& info) {
                           std::string out = info.param;
                           for (char& c : out) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return out;
                         });

TEST(PagedDecoder, RowsDoNotKnowOfEachOther) {
  auto model = testing::whale();
  PagedDecoder decoder(model, {.page = 16, .max_length = 128, .rows = {1, 8}, .chunks = {32}});
  decoder.warmup();
  const int64_t programs = decoder.programs();
  std::vector<Text> texts;
  for (int64_t r = 0; r < 8; ++r) {
    Text text{Ids(size_t(3 + 5 * r), 40 + r), {}};
    for (int64_t p = 0; p < 8; ++p) text.pages.push_back(1 + 8 * p + r);
    prefill(decoder, text, 32);
    texts.push_back(text);
  }
  std::vector<PagedRow> rows;
  for (auto& text : texts) rows.push_back(text.take(1));
  Tensor together = decoder.decode(rows);
  // To the last bit, wherever in the batch a row stands and whatever the others are.
  std::vector<PagedRow> turned(rows.rbegin(), rows.rend());
  Tensor other_way = decoder.decode(turned);
  Tensor few = decoder.decode(std::span(rows).first(3));
  for (int64_t r = 0; r < 8; ++r) {
    const auto want = together.select(0, r).to_vector<float>();
    EXPECT_EQ(other_way.select(0, 7 - r).to_vector<float>(), want) << r;
    if (r < 3) {
      EXPECT_EQ(few.select(0, r).to_vector<float>(), want) << r;
    }
    const auto alone = decoder.decode({&rows[size_t(r)], 1}).select(0, 0).to_vector<float>();
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], want[i], 2e-4) << r;
  }
  EXPECT_EQ(decoder.programs(), programs) << "all was made by the warmup";
}

TEST(PagedDecoder, SamplersAgreeWithTheirDefinition) {
  auto model = testing::whale();
  PagedDecoder decoder(model, {.page = 16, .max_length = 64, .rows = {1, 4}, .chunks = {16}});
  const int64_t vocab = decoder.vocab();
  Tensor logits = randn({4, vocab}) * 3.0;
  std::vector<RowSampling> rows(4);
  rows[0].options = {.temperature = 0.7};
  rows[1].options = {.temperature = 1.2, .top_k = 5, .top_p = 0.8};
  rows[2].options = {.temperature = 1, .min_p = 0.1};
  rows[3].options = {.repetition_penalty = 1.5};
  rows[3].seen.assign(size_t(vocab), 0);
  std::vector<const RowSampling*> settings;
  for (auto& row : rows) settings.push_back(&row);
  for (double draw : {0.0, 0.1, 0.5, 0.9, 0.99999}) {
    for (auto& row : rows) row.draw = draw;
    auto got = decoder.sample(logits, settings);
    for (size_t r = 0; r < 4; ++r) {
      // The loop of single requests draws the same from the same number.
      const SamplingOptions& o = rows[r].options;
      Tensor row = logits.slice(0, int64_t(r), int64_t(r) + 1);
      Tensor want = sample(row, SamplingShape::of(o), sampling_numbers(o, 1), tensor(std::vector<double>{draw}),
                           zeros({1, vocab}, kBool));
      EXPECT_EQ(got[r], want.item<int64_t>()) << r << " " << draw;
    }
  }
  auto logprobs = decoder.logprobs(logits, Ids{1, 2, 3, 4});
  double sum = 0;
  const auto first = logits.select(0, 0).to_vector<float>();
  for (float x : first) sum += std::exp(double(x));
  EXPECT_NEAR(logprobs[0].chosen, double(first[1]) - std::log(sum), 1e-4);
  EXPECT_EQ(logprobs[0].top[0].id, logits.select(0, 0).argmax().item<int64_t>());
}

TEST(PagedDecoder, RefusesSizesThatDoNotFit) {
  auto model = testing::whale();
  EXPECT_THROW(PagedDecoder(model, {.max_length = 100000}), Error);
  EXPECT_THROW(PagedDecoder(model, {.page = 16, .pages = 3, .max_length = 128}), Error);
  EXPECT_THROW(PagedDecoder(model, {.rows = {0}}), Error);
}

}  // namespace
}  // namespace sinter
