// Programs of models are found in the store without tracing, and only where that is sound.
#include <gtest/gtest.h>
#include <unistd.h>

#include "sinter/base/format.h"
#include "sinter/generate/text_generator.h"
#include "sinter/models/models.h"
#include "sinter/nn/module.h"
#include "sinter/ops/creation.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

// Sizes that no other test and no other run uses, so that the first call finds nothing.
std::string config_text(double epsilon) {
  std::string text = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
    "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "vocab_size": 97, "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "hidden_act": "silu")";
  auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  text += format(", \"rms_norm_eps\": {}, \"unique\": \"{} {}\"", epsilon, getpid(), test->name());
  return text += "}";
}

std::shared_ptr<models::CausalLM> make_model(double epsilon = 1e-5) {
  manual_seed(3);
  return models::causal_lm(models::from_config(ConfigFile::parse(config_text(epsilon), "config.json")));
}

GeneratorOptions small() { return {.cache_length = 32, .buckets = {8}}; }

int found_in_store(const TextGenerator& generator) {
  int count = 0;
  for (auto& explanation : generator.explanations())
    for (auto& program : explanation.programs) count += program.note.find("found in the store") != std::string::npos;
  return count;
}

std::vector<int64_t> tokens(TextGenerator& generator) { return generator.generate({5, 6, 7}, {.max_new_tokens = 6}).ids; }

TEST(KeptProgram, AnotherModelOfTheSameConfigurationIsNotTraced) {
  auto model = make_model();
  TextGenerator first(model, small()), eager(model, {.eager = true, .cache_length = 32, .buckets = {8}});
  auto expected = tokens(first);
  EXPECT_EQ(found_in_store(first), 0);
  EXPECT_EQ(tokens(eager), expected);
  auto other = make_model();
  TextGenerator second(other, small());
  EXPECT_EQ(tokens(second), expected);
  EXPECT_EQ(found_in_store(second), 2);
  // Its tensors are the other model's own.
  NoGradGuard no_grad;
  for (auto& p : other->parameters()) p.mul_(-0.5);
  TextGenerator changed(other, {.eager = true, .cache_length = 32, .buckets = {8}});
  EXPECT_EQ(tokens(second), tokens(changed));
}

TEST(KeptProgram, AnotherEpsilonIsAnotherProgram) {
  TextGenerator first(make_model(1e-5), small());
  tokens(first);
  auto model = make_model(0.5);
  TextGenerator second(model, small()), eager(model, {.eager = true, .cache_length = 32, .buckets = {8}});
  EXPECT_EQ(tokens(second), tokens(eager));
  EXPECT_EQ(found_in_store(second), 0);
}

TEST(KeptProgram, OtherPassesAreAnotherProgram) {
  TextGenerator first(make_model(), small());
  auto expected = tokens(first);
  setenv("SINTER_SKIP_PASSES", "simplify", 1);
  TextGenerator second(make_model(), small());
  EXPECT_EQ(tokens(second), expected);
  unsetenv("SINTER_SKIP_PASSES");
  EXPECT_EQ(found_in_store(second), 0);
}

TEST(KeptProgram, AChangedModelIsTraced) {
  auto model = make_model();
  TextGenerator first(model, small());
  tokens(first);
  auto training = make_model();
  training->train();
  TextGenerator in_training(training, small());
  tokens(in_training);
  EXPECT_EQ(found_in_store(in_training), 0);
  auto hooked = make_model();
  hooked->register_forward_hook([](nn::Module&, const TensorList&, const TensorList&) { return TensorList(); });
  EXPECT_EQ(hooked->fingerprint(), nullptr);
  // A change after the program was found: it no longer fits.
  auto later = make_model();
  TextGenerator generator(later, small());
  auto expected = tokens(generator);
  EXPECT_EQ(found_in_store(generator), 2);
  later->train();
  EXPECT_EQ(tokens(generator), expected);
  EXPECT_EQ(generator.decode_programs(), 2);
}

TEST(KeptProgram, OtherTypesOfWeightsAreOtherPrograms) {
  TextGenerator first(make_model(), small());
  tokens(first);
  auto half = make_model();
  half->to(kBFloat16);
  TextGenerator second(half, small()), eager(half, {.eager = true, .cache_length = 32, .buckets = {8}});
  EXPECT_EQ(tokens(second), tokens(eager));
  EXPECT_EQ(found_in_store(second), 0);
}

TEST(KeptProgram, CompiledForwardPassesWithAndWithoutSymbols) {
  Tensor ids = tensor(std::vector<int64_t>{1, 2, 3, 4, 5, 6}).view({1, 6});
  NoGradGuard no_grad;
  auto run = [&](int expected_found) {
    auto model = make_model();
    auto fast = compile(model);
    int found = 0;
    for (int64_t length : {6, 4, 5}) {
      Tensor some = ids.slice(1, 0, length).contiguous();
      EXPECT_TRUE(allclose(fast(some), model->forward(some), 1e-4, 1e-4)) << length;
    }
    auto explanation = capture::explain(fast.function());
    EXPECT_EQ(explanation.programs.size(), 2u);  // one size, then all
    for (auto& program : explanation.programs) found += program.note.find("found in the store") != std::string::npos;
    EXPECT_EQ(found, expected_found);
  };
  run(0);
  run(2);
}

}  // namespace
}  // namespace sinter
