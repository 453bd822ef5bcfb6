#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sinter/base/error.h"
#include "sinter/io/checkpoint.h"
#include "sinter/models/families.h"
#include "sinter/models/models.h"
#include "sinter/models/parts/rope.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(SINTER_TEST_DATA) / "models";

// A folder of its own for each test.
class Loading : public ::testing::Test {
 protected:
  void copy_config(const std::string& name) { fs::copy_file(kData / name / "config.json", folder_ / "config.json"); }
  std::string load_error(const FromOptions& options = {}) {
    return message_of([&] { from_pretrained(folder_.string(), options); });
  }
  void expect_error(const std::string& text) { EXPECT_NE(load_error().find(text), std::string::npos) << load_error(); }

  OwnDirectory own_;
  const fs::path folder_ = own_.path();
};

Tensor some_ids() { return tensor({5, 17, 3, 250}).view({1, 4}); }
Tensor logits_of(const std::shared_ptr<Model>& model) { return causal_lm(model)->forward(some_ids()); }

TEST_F(Loading, ShardsGiveTheSameModel) {
  copy_config("llama-gqa");
  auto tensors = load_safetensors(kData / "llama-gqa" / "model.safetensors");
  NamedTensors parts[2];
  std::string map;
  for (size_t i = 0; i < tensors.size(); ++i) {
    parts[i % 2].push_back(tensors[i]);
    map += (i ? "," : "") + format("\"{}\":\"part-{}.safetensors\"", tensors[i].first, i % 2);
  }
  for (int i : {0, 1}) save_safetensors(folder_ / format("part-{}.safetensors", i), parts[i]);
  std::ofstream(folder_ / "model.safetensors.index.json") << "{\"metadata\":{},\"weight_map\":{" + map + "}}";
  Tensor whole = logits_of(from_pretrained((kData / "llama-gqa").string()));
  EXPECT_EQ(logits_of(from_pretrained(folder_.string())).to_vector<float>(), whole.to_vector<float>());

  fs::remove(folder_ / "part-1.safetensors");
  expect_error("cannot open");
  save_safetensors(folder_ / "part-1.safetensors", {});
  expect_error("the index promises");
}

TEST_F(Loading, AnIndexStaysInItsFolder) {
  copy_config("llama-gqa");
  for (const char* file : {"../x.safetensors", "/etc/passwd", "", ".."}) {
    std::ofstream(folder_ / "model.safetensors.index.json") << format("{\"weight_map\":{\"a\":\"{}\"}}", file);
    expect_error("which is no file of the folder");
  }
  std::ofstream(folder_ / "model.safetensors.index.json") << "{}";
  expect_error("has no weight_map");
}

TEST_F(Loading, NamesWhatDoesNotFit) {
  expect_error("cannot read");
  copy_config("llama-gqa");
  expect_error("holds neither model.safetensors nor");
  auto tensors = load_safetensors(kData / "llama-gqa" / "model.safetensors");
  NamedTensors changed;
  for (auto& [name, tensor] : tensors) {
    if (name == "model.norm.weight") continue;
    changed.emplace_back(name, name == "lm_head.weight" ? zeros({3, 64}) : tensor);
  }
  changed.emplace_back("model.extra", zeros({1}));
  save_safetensors(folder_ / "model.safetensors", changed);
  expect_error("missing: norm.weight");
  expect_error("not in the model: model.extra");
  expect_error("wrong shape: lm_head.weight is [3, 64], the model has [320, 64]");
}

TEST_F(Loading, PrefixesMayBeAbsentAndBuffersStored) {
  copy_config("gpt2");
  NamedTensors renamed;
  for (auto& [name, tensor] : load_safetensors(kData / "gpt2" / "model.safetensors"))
    renamed.emplace_back(name.substr(std::string("transformer.").size()), tensor);
  renamed.emplace_back("h.0.attn.bias", ones({1, 1, 4, 4}));
  renamed.emplace_back("lm_head.weight", zeros({320, 64}));
  save_safetensors(folder_ / "model.safetensors", renamed);
  Tensor whole = logits_of(from_pretrained((kData / "gpt2").string()));
  EXPECT_EQ(logits_of(from_pretrained(folder_.string())).to_vector<float>(), whole.to_vector<float>());
}

TEST_F(Loading, CastsOnTheWayAndTellsProgress) {
  int64_t last = 0, all = 0, calls = 0;
  auto model = from_pretrained((kData / "llama-gqa").string(),
                               {.dtype = kBFloat16, .progress = [&](int64_t done, int64_t total) {
                                  EXPECT_GT(done, last);
                                  last = done, all = total, ++calls;
                                }});
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, model->parameter_count() * 2);
  EXPECT_EQ(calls, 30);
  for (auto& parameter : model->parameters()) {
    EXPECT_EQ(parameter.dtype(), kBFloat16);
    EXPECT_FALSE(parameter.requires_grad());
  }
  EXPECT_FALSE(model->is_training());
  Tensor whole = logits_of(from_pretrained((kData / "llama-gqa").string())), half = logits_of(model).to(kFloat32);
  double error = (half - whole).norm().item<double>() / whole.norm().item<double>();
  EXPECT_LT(error, 0.03);
}

TEST_F(Loading, UnknownArchitecturesListTheKnown) {
  std::ofstream(folder_ / "config.json") << R"({"architectures": ["WhaleForCausalLM"], "model_type": "llama"})";
  expect_error("unknown architecture 'WhaleForCausalLM'; known are LlamaForCausalLM, MistralForCausalLM");
  fs::copy_file(kData / "llama-gqa" / "model.safetensors", folder_ / "model.safetensors");
  std::ofstream(folder_ / "config.json") << R"({"model_type": "llama"})";
  expect_error("lacks 'vocab_size'");
  std::ofstream(folder_ / "config.json") << R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 2, "max_position_embeddings": 8})";
  expect_error("3 heads, no multiple of 2");
}

TEST_F(Loading, HubIdsAreLookedUpLocally) {
  fs::path snapshot = folder_ / "hub" / "models--org--tiny" / "snapshots" / "abc";
  fs::create_directories(snapshot);
  fs::create_directories(folder_ / "hub" / "models--org--tiny" / "refs");
  std::ofstream(folder_ / "hub" / "models--org--tiny" / "refs" / "main") << "abc\n";
  for (auto* file : {"config.json", "model.safetensors"}) fs::copy_file(kData / "qwen2" / file, snapshot / file);
  const char* before = std::getenv("HF_HOME");
  setenv("HF_HOME", folder_.c_str(), 1);
  EXPECT_EQ(find_checkpoint("org/tiny"), snapshot.string());
  EXPECT_EQ(from_pretrained("org/tiny")->config().model_type, "qwen2");
  for (auto* name : {"org/other", "../tiny", "/nowhere", "a/b/c"}) EXPECT_THROW(find_checkpoint(name), Error) << name;
  before ? setenv("HF_HOME", before, 1) : unsetenv("HF_HOME");
}

TEST(FromConfig, ActivationsAreNeitherDeadNorInfinite) {
  manual_seed(1);
  for (auto* name : {"llama-gqa", "gemma3", "gpt2", "gpt_neox", "opt", "phi", "cohere-normed", "falcon", "mixtral"}) {
    auto model = from_config(ConfigFile::read((kData / name / "config.json").string()));
    Tensor logits = causal_lm(model)->forward(tensor({5, 17, 3, 50}).view({1, 4}));
    double deviation = logits.std().item<double>();
    EXPECT_GT(deviation, 0.05) << name;
    EXPECT_LT(deviation, 50) << name;
  }
  EXPECT_THROW(from_config("llama-0b"), Error);
}

TEST(FromConfig, SizesAreTheKnownOnes) {
  // Counted by transformers.
  auto count = [](const char* name) { return from_config(name, {.dtype = kBFloat16})->parameter_count(); };
  EXPECT_EQ(count("gpt2-small"), 124439808);
  EXPECT_EQ(count("vit-b"), 86567656);
  EXPECT_EQ(count("resnet-50"), 25557032);
}

TEST(FromConfig, ResNetClassifies) {
  manual_seed(2);
  auto model = std::dynamic_pointer_cast<ImageClassifier>(
      from_config(ConfigFile::parse(R"({"model_type": "resnet", "depths": [1, 2], "hidden_sizes": [16, 32],
                                        "embedding_size": 8, "num_labels": 5})",
                                    "tiny")));
  Tensor logits = model->forward(randn({2, 3, 32, 32}));
  EXPECT_EQ(logits.sizes().numbers(), (IntList{2, 5}));
  EXPECT_GT(logits.std().item<double>(), 0.01);
}

TEST(RopeConfig, BothFormsOfTheFileAgree) {
  auto read = [](const std::string& text) {
    return RopeConfig::read(ConfigFile::parse("{\"max_position_embeddings\": 256, " + text + "}", "c"), 16);
  };
  std::string scaling = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 64)";
  EXPECT_EQ(read(R"("rope_theta": 5e5, "rope_scaling": {"type": "llama3", )" + scaling + "}"),
            read(R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", )" + scaling + "}"));
  EXPECT_EQ(read(R"("rope_theta": 5e5, "rope_scaling": null)"), read(R"("rope_parameters": {"rope_theta": 5e5})"));
  EXPECT_EQ(read(R"("rotary_pct": 0.25, "rotary_emb_base": 100)"),
            read(R"("rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 100})"));
  EXPECT_THROW(read(R"("rope_scaling": {"type": "spiral"})"), Error);
  EXPECT_THROW(read(R"("rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})"), Error);
}

}  // namespace
}  // namespace sinter::models
