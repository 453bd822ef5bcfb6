// The tiny checkpoints on a GPU: recorded logits and greedy tokens in every mode, on weights and a cache that lie there.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "sinter/autograd/autograd.h"
#include "sinter/engine/cuda/replay.h"
#include "sinter/generate/source_reader.h"
#include "sinter/generate/text_generator.h"
#include "sinter/io/config.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/models.h"
#include "sinter/nn/module.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/support/distance.h"

namespace sinter::models {
namespace {

constexpr int64_t kSteps = 40;

class GpuModels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    std::string folder = std::string(SINTER_TEST_DATA) + "/models/" + GetParam();
    model_ = from_pretrained(folder, {.device = cuda()});
    for (auto& [key, tensor] : load_safetensors(folder + "/golden.safetensors")) golden_[key] = tensor;
  }
  std::shared_ptr<Model> model_;
  std::map<std::string, Tensor> golden_;
};

// While alive: programs that are to run as CUDA graphs do, each as one.
class AllRecorded {
 public:
  AllRecorded() : before_(cuda_replay_stats()) {}
  ~AllRecorded() {
    CudaReplayStats now = cuda_replay_stats();
    EXPECT_EQ(now.given_up, before_.given_up) << now.why;
    EXPECT_GT(now.recorded, before_.recorded);
    EXPECT_GT(now.replayed, before_.replayed);
  }

 private:
  CudaReplayStats before_;
};

class GpuDecoders : public GpuModels {};
class GpuEncoders : public GpuModels {};
class GpuEncoderDecoders : public GpuModels {};

TEST_P(GpuDecoders, LogitsInEveryMode) {
  NoGradGuard no_grad;
  auto model = causal_lm(model_);
  Tensor ids = golden_.at("input_ids").to(cuda()), want = golden_.at("logits");
  EXPECT_LT(distance(model->forward(ids), want), 1e-4) << "eager";
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
    auto fast = compile(model, {.mode = mode, .fullgraph = true});
    std::optional<AllRecorded> recorded;
    if (mode == Mode::kReduceOverhead) recorded.emplace();
    for (int call = 0; call < 4; ++call) EXPECT_LT(distance(fast(ids), want), 1e-4) << to_string(mode) << " call " << call;
  }
}

TEST_P(GpuDecoders, GreedyTokensInEveryMode) {
  auto model = causal_lm(model_);
  auto prompt = golden_.at("input_ids").slice(0, 0, 1).to_vector<int64_t>();
  auto want = golden_.at("greedy").to_vector<int64_t>();
  int64_t length = int64_t(prompt.size()) + kSteps;
  for (GeneratorOptions options : {GeneratorOptions{.eager = true}, GeneratorOptions{},
                                   GeneratorOptions{.mode = Mode::kReduceOverhead}}) {
    options.cache_length = length;
    options.buckets = {int64_t(prompt.size())};
    TextGenerator generator(model, options);
    std::optional<AllRecorded> recorded;
    if (!options.eager && options.mode == Mode::kReduceOverhead) recorded.emplace();
    EXPECT_EQ(generator.generate(prompt, {.max_new_tokens = kSteps}).ids, want)
        << (options.eager ? "eager" : to_string(options.mode));
  }
}

TEST_P(GpuEncoders, OutputsEagerlyAndCompiled) {
  NoGradGuard no_grad;
  NamedTensors inputs;
  for (const char* name : {"input_ids", "attention_mask", "pixel_values"})
    if (golden_.contains(name)) inputs.emplace_back(name, golden_.at(name).to(cuda()));
  auto model = model_;
  auto fast = compile([model](const NamedTensors& given) { return model->run(given)[0].second; },
                      {.mode = Mode::kReduceOverhead});
  auto [name, eager] = model_->run(inputs)[0];
  Tensor want = golden_.at(name);
  // What transformers gives at padding depends on how it masks.
  auto seen = [&](const Tensor& t) {
    return golden_.contains("attention_mask") ? t.to(cpu()) * ne(golden_.at("attention_mask"), 0).unsqueeze(-1).to(kFloat32)
                                              : t.to(cpu());
  };
  EXPECT_LT(distance(seen(eager), seen(want)), 1e-4);
  AllRecorded recorded;
  for (int call = 0; call < 4; ++call) EXPECT_LT(distance(seen(fast(inputs)), seen(want)), 1e-4) << "call " << call;
}

TEST_P(GpuEncoderDecoders, GreedyTokensInEveryMode) {
  auto model = encoder_decoder(model_);
  bool hears = golden_.contains("input_features");
  auto want = golden_.at("greedy").to_vector<int64_t>();
  std::string folder = std::string(SINTER_TEST_DATA) + "/models/" + GetParam();
  std::vector<int64_t> begin = {GenerationConfig::read(folder).decoder_start_token_id.value()};
  for (GeneratorOptions options : {GeneratorOptions{.eager = true}, GeneratorOptions{},
                                   GeneratorOptions{.mode = Mode::kReduceOverhead}}) {
    options.cache_length = kSteps + 1;
    SourceReader reader(model, options);
    TextGenerator generator(model, options);
    Source source = hears ? reader.read_features(golden_.at("input_features").slice(0, 0, 1))
                          : reader.read({golden_.at("input_ids").select(0, 0).to_vector<int64_t>()});
    EXPECT_EQ(generator.generate(begin, {.max_new_tokens = kSteps, .source = source}).ids, want)
        << (options.eager ? "eager" : to_string(options.mode));
  }
}

std::string test_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GpuDecoders,
                         ::testing::Values("llama-gqa", "llama3-tied-ropescale", "qwen2", "gpt2", "mistral", "qwen3", "phi3",
                                           "gemma2", "gemma3", "gpt_neox", "opt", "phi-normed", "phi4", "granite", "olmo2",
                                           "stablelm-parallel", "cohere-normed", "cohere2", "falcon-grouped", "glm4",
                                           "starcoder2", "mixtral", "qwen2_moe", "qwen3_moe", "olmoe"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, GpuEncoders, ::testing::Values("bert", "roberta", "vit", "resnet"), test_name);
INSTANTIATE_TEST_SUITE_P(Models, GpuEncoderDecoders, ::testing::Values("t5", "t5-gated", "bart", "whisper"), test_name);

}  // namespace
}  // namespace sinter::models
