#include "sinter/generate/source_reader.h"

#include <gtest/gtest.h>

#include <map>

#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using Prompts = std::vector<std::vector<int64_t>>;

struct Golden {
  std::string folder;
  std::shared_ptr<models::EncoderDecoder> model;
  std::map<std::string, Tensor> tensors;

  explicit Golden(const std::string& name)
      : folder(std::string(SINTER_TEST_DATA) + "/models/" + name),
        model(models::encoder_decoder(models::from_pretrained(folder))) {
    for (auto& [key, tensor] : load_safetensors(folder + "/golden.safetensors")) tensors[key] = tensor;
  }
  std::vector<int64_t> ids(const std::string& key) const { return tensors.at(key).select(0, 0).to_vector<int64_t>(); }
};

class Sources : public ::testing::TestWithParam<const char*> {};

// Texts are padded and masked: what comes is what transformers writes for the text alone.
TEST_P(Sources, TextsGiveTheRecordedTokens) {
  Golden golden(GetParam());
  int64_t first = GenerationConfig::read(golden.folder).decoder_start_token_id.value();
  for (std::string mode : {"eager", "default", "reduce-overhead"}) {
    GeneratorOptions how{.cache_length = 64};
    how.eager = mode == "eager";
    if (!how.eager) how.mode = parse_mode(mode);
    SourceReader reader(golden.model, how);
    TextGenerator generator(golden.model, how);
    // A second, shorter row changes nothing.
    auto source = reader.read({golden.ids("input_ids"), {7, 8, 9}});
    auto results = generator.generate(Prompts{{first}, {first}}, {.max_new_tokens = 40, .source = source});
    EXPECT_EQ(results[0].ids, golden.ids("greedy")) << mode;
    auto alone = generator.generate(Prompts{{first}}, {.max_new_tokens = 40, .source = reader.read({{7, 8, 9}})});
    EXPECT_EQ(results[1].ids, alone[0].ids) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Sources, ::testing::Values("t5", "bart"),
                         [](auto& info) { return std::string(info.param); });

TEST(SourceReader, FeaturesGiveTheRecordedTokens) {
  Golden golden("whisper");
  SourceReader reader(golden.model);
  TextGenerator generator(golden.model, {.cache_length = 64});
  auto source = reader.read_features(golden.tensors.at("input_features").slice(0, 0, 1));
  int64_t first = GenerationConfig::read(golden.folder).decoder_start_token_id.value();
  EXPECT_EQ(generator.generate(std::vector<int64_t>{first}, {.max_new_tokens = 40, .source = source}).ids,
            golden.ids("greedy"));
}

TEST(SourceReader, SuppressedTokensDoNotCome) {
  Golden golden("bart");
  SourceReader reader(golden.model);
  TextGenerator generator(golden.model, {.cache_length = 64});
  auto want = golden.ids("greedy");
  auto source = reader.read({golden.ids("input_ids")});
  auto tokens = [&](SamplingOptions sampling) {
    return generator.generate(std::vector<int64_t>{2}, {.max_new_tokens = 40, .sampling = sampling, .source = source})
        .ids;
  };
  auto never = tokens({.suppress_ids = {want[0], want[1]}});
  for (int64_t id : never) EXPECT_TRUE(id != want[0] && id != want[1]);
  auto not_first = tokens({.suppress_first_ids = {want[0]}});
  EXPECT_NE(not_first[0], want[0]);
  EXPECT_NE(message_of([&] { tokens({.suppress_ids = {96}}); }).find("token 96 does not exist"), std::string::npos);
}

TEST(SourceReader, NothingIsCompiledAfterAWarmup) {
  Golden golden("t5");
  SourceReader reader(golden.model);
  TextGenerator generator(golden.model, {.cache_length = 64});
  auto source = reader.read({golden.ids("input_ids")});
  generator.warmup({.lengths = {1}, .source = source});
  EXPECT_EQ(generator.generate(Prompts{{0}}, {.max_new_tokens = 40, .source = source})[0].ids, golden.ids("greedy"));
  EXPECT_EQ(generator.times().compiled, 0);
}

TEST(SourceReader, SaysWhatItCannotRead) {
  Golden golden("bart");
  SourceReader reader(golden.model, {.eager = true});
  EXPECT_NE(message_of([&] { reader.read(Prompts{{}}); }).find("text 0 is empty"), std::string::npos);
  EXPECT_NE(message_of([&] { reader.read({{1}, {96}}); }).find("text 1 has the id 96"), std::string::npos);
  EXPECT_NE(message_of([&] { reader.read({std::vector<int64_t>(65, 3)}); }).find("65 tokens"), std::string::npos);
  TextGenerator generator(golden.model, {.eager = true, .cache_length = 8});
  auto source = reader.read({{3, 4}});
  EXPECT_NE(message_of([&] {
              generator.generate(Prompts{{2}, {2}}, {.source = source});
            }).find("2 prompts for a source of 1"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
