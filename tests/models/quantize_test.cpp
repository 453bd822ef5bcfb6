// Models whose linear layers are quantised: at load, in memory, and made again from a state.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/models/lora.h"
#include "sinter/models/models.h"
#include "sinter/nn/quantize.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

namespace fs = std::filesystem;

std::string checkpoint(const std::string& name) { return (fs::path(SINTER_TEST_DATA) / "models" / name).string(); }

// Those that tools/record_quantized.py has made.
std::string others(const std::string& name) { return (fs::path(SINTER_TEST_DATA) / "quantized" / name).string(); }

Tensor some_ids() { return tensor({5, 17, 3, 30}).view({1, 4}); }
Tensor logits_of(const std::shared_ptr<Model>& model) {
  NoGradGuard no_grad;
  return causal_lm(model)->forward(some_ids());
}
double difference(const Tensor& a, const Tensor& b) { return ((a - b).abs().max() / b.abs().max()).item<float>(); }

int64_t bytes_of(const NamedTensors& state) {
  int64_t bytes = 0;
  for (auto& [name, tensor] : state) bytes += tensor.numel().to_int() * int64_t(item_size(tensor.dtype()));
  return bytes;
}

TEST(QuantizedModels, AtLoadAsInMemory) {
  const Tensor plain = logits_of(from_pretrained(checkpoint("llama-gqa")));
  for (const std::string format : {"int8", "int4", "fp8"}) {
    auto loaded = from_pretrained(checkpoint("llama-gqa"), {.quantize = format}),
         converted = from_pretrained(checkpoint("llama-gqa"));
    const int64_t before = bytes_of(converted->state_dict());
    EXPECT_GT(quantize_(*converted, format), 8);
    EXPECT_LT(bytes_of(loaded->state_dict()), before);
    EXPECT_EQ(difference(logits_of(loaded), logits_of(converted)), 0);
    EXPECT_LT(difference(logits_of(loaded), plain), format == "int8" ? 0.05 : format == "fp8" ? 0.2 : 0.5);
    EXPECT_GT(difference(logits_of(loaded), plain), 0);
    auto compiled = compile([&](const Tensor& ids) { return causal_lm(loaded)->forward(ids); });
    NoGradGuard no_grad;
    EXPECT_LT(difference(compiled(some_ids()), logits_of(loaded)), 1e-4);
  }
}

TEST(QuantizedModels, AStateMakesThemAgain) {
  auto model = from_pretrained(checkpoint("llama-gqa"), {.quantize = "int4"});
  const ConfigFile config = ConfigFile::parse(model->origin(), "config.json");
  auto again = from_state(config, model->state_dict());
  EXPECT_EQ(difference(logits_of(again), logits_of(model)), 0);
  NamedTensors state = model->state_dict();
  std::erase_if(state, [](auto& entry) { return entry.first.ends_with("q_proj.scale"); });
  const std::string error = message_of([&] { from_state(config, state); });
  EXPECT_NE(error.find("q_proj"), std::string::npos) << error;
}

// The codes of a head that was tied are those of the embedding's rows.
TEST(QuantizedModels, ATiedHeadGetsCodesOfItsOwn) {
  for (auto& entry : fs::directory_iterator(checkpoint(""))) {
    const auto path = entry.path() / "config.json";
    if (!fs::exists(path)) continue;
    const ConfigFile file = ConfigFile::read(path.string());
    std::shared_ptr<Model> plain;
    try {
      plain = from_pretrained(entry.path().string(), {.dtype = kFloat32});
    } catch (const Error&) {
      continue;
    }
    if (!plain->config().tie_embeddings || !std::dynamic_pointer_cast<CausalLM>(plain)) continue;
    auto quantized = from_pretrained(entry.path().string(), {.dtype = kFloat32, .quantize = "int8"});
    EXPECT_FALSE(quantized->config().tie_embeddings) << entry.path();
    Tensor want = logits_of(plain), got = logits_of(quantized);
    EXPECT_LT(difference(got, want), 0.08) << entry.path();
  }
}

// What others have quantised has, bit by bit, the numbers that their own library makes of it (tools/record_quantized.py).
TEST(QuantizedModels, CheckpointsOfOthersAreReadWithoutLoss) {
  int checkpoints = 0;
  for (auto& entry : fs::directory_iterator(others(""))) {
    const std::string folder = entry.path().string();
    auto model = from_pretrained(folder);
    for (auto& [name, want] : load_safetensors(folder + "/golden.safetensors")) {
      bool met = false;
      for (auto& [ours, module] : model->named_modules()) {
        if ("model." + ours + ".weight" != name) continue;
        auto* layer = module->as<nn::Linear>();
        ASSERT_TRUE(layer && layer->quantized) << folder << " " << name;
        EXPECT_EQ(layer->quantized->dequantize(kFloat32).to_vector<float>(), want.to_vector<float>())
            << folder << " " << name;
        met = true;
      }
      EXPECT_TRUE(met) << name;
    }
    // It computes, compiled as it is eagerly, and is made again from its state.
    const Tensor ids = tensor({5, 17, 3, 30}).view({1, 4});
    NoGradGuard no_grad;
    const Tensor logits = causal_lm(model)->forward(ids).to(kFloat32);
    auto compiled = compile([&](const Tensor& given) { return causal_lm(model)->forward(given); });
    EXPECT_LT(difference(compiled(ids).to(kFloat32), logits), 3e-2) << folder;
    auto again = from_state(ConfigFile::parse(model->origin(), "config.json"), model->state_dict());
    EXPECT_EQ(difference(causal_lm(again)->forward(ids).to(kFloat32), logits), 0) << folder;
    EXPECT_THROW(from_pretrained(folder, {.quantize = "int8"}), Error);
    ++checkpoints;
  }
  EXPECT_EQ(checkpoints, 23);
}

// Written as compressed-tensors, and read again: the same codes, whoever made them first.
TEST(QuantizedModels, AreSavedForOthers) {
  NoGradGuard no_grad;
  std::vector<std::shared_ptr<Model>> models;
  for (const std::string format : {"int8", "int4", "fp8"})
    models.push_back(from_pretrained(checkpoint("llama-gqa"), {.quantize = format}));
  // A tied head stays one.
  models.push_back(from_pretrained(checkpoint("llama3-tied-ropescale")));
  nn::quantize_(*models.back(), {.encoding = Encoding::kUInt4, .group_size = 16});
  for (const std::string name : {"awq-g32", "gptq-4-g32", "gptq-8-rows", "fp8-blocks", "ct-int4-rows", "ct-int8-g32-zeros"})
    models.push_back(from_pretrained(others(name)));
  for (auto& model : models) {
    OwnDirectory own;
    save_pretrained(*model, own.path().string());
    auto again = from_pretrained(own.path().string());
    SCOPED_TRACE(std::string(std::istreambuf_iterator<char>(std::ifstream(own.path() / "config.json").rdbuf()), {}));
    auto modules = again->named_modules();
    int layers = 0;
    for (auto& [name, module] : model->named_modules()) {
      auto* layer = module->as<nn::Linear>();
      if (!layer || !layer->quantized) continue;
      auto* read = (*modules.find(name))->as<nn::Linear>();
      ASSERT_TRUE(read->quantized) << name;
      EXPECT_EQ(read->quantized->codes.to(kInt32).to_vector<int32_t>(), layer->quantized->codes.to(kInt32).to_vector<int32_t>());
      EXPECT_EQ(read->quantized->dequantize(kFloat32).to_vector<float>(), layer->quantized->dequantize(kFloat32).to_vector<float>());
      ++layers;
    }
    EXPECT_GE(layers, 7);
    EXPECT_EQ(difference(logits_of(again).to(kFloat32), logits_of(model).to(kFloat32)), 0);
  }
  for (const std::string name : {"bnb-nf4", "gptq-3-g32", "ct-mxfp4"}) {
    OwnDirectory own;
    const std::string error = message_of([&] { save_pretrained(*from_pretrained(others(name)), own.path().string()); });
    EXPECT_NE(error.find("compressed-tensors has no format"), std::string::npos) << error;
  }
}

// Each tensor of a quantised layer missing, or of another size or type: an error that names it.
TEST(QuantizedModels, DamagedCheckpointsOfOthers) {
  OwnDirectory own;
  for (const std::string name :
       {"ct-int4-g32-zeros", "ct-int8-rows", "awq-g32", "gptq-4-g32-order", "gptq-3-g32", "bnb-nf4-nested", "bnb-int8", "ct-mxfp4"}) {
    const fs::path from = others(name);
    fs::copy_file(from / "config.json", own.path() / "config.json", fs::copy_options::overwrite_existing);
    const NamedTensors whole = load_safetensors((from / "model.safetensors").string());
    for (auto& [broken, tensor] : whole) {
      if (broken.find("k_proj") == std::string::npos || broken.ends_with("_shape") || broken.ends_with("bias")) continue;
      for (const char* how : {"missing", "short", "flat", "type"}) {
        // Without zeros codes are symmetric.
        if (how == std::string("missing") && broken.ends_with("zero_point")) continue;
        // Nor do columns lie elsewhere where nobody says so. What is flat already stays so.
        if (how == std::string("missing") && broken.ends_with("g_idx")) continue;
        if (how == std::string("flat") && tensor.dim() == 1) continue;
        NamedTensors state;
        for (auto& [each, value] : whole) {
          if (each != broken)
            state.emplace_back(each, value);
          else if (how == std::string("short"))
            state.emplace_back(each, value.narrow(0, 0, value.size(0) - 1).contiguous());
          else if (how == std::string("flat"))
            state.emplace_back(each, value.reshape({-1}));
          else if (how == std::string("type"))
            state.emplace_back(each, value.to(kInt16));
        }
        save_safetensors((own.path() / "model.safetensors").string(), state);
        const std::string error = message_of([&] { from_pretrained(own.path().string()); });
        EXPECT_NE(error.find("k_proj"), std::string::npos) << name << ", " << broken << " " << how << ": " << error;
      }
    }
  }
}

// The same of floating-point numbers of eight bits, whose files are changed as bytes.
TEST(QuantizedModels, DamagedFloats) {
  OwnDirectory own;
  auto error_with = [&](const std::string& name, const std::string& what, const std::string& other) {
    const fs::path from = others(name);
    fs::copy_file(from / "config.json", own.path() / "config.json", fs::copy_options::overwrite_existing);
    std::ifstream file(from / "model.safetensors", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const size_t at = bytes.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    bytes.replace(at, what.size(), other);
    std::ofstream(own.path() / "model.safetensors", std::ios::binary) << bytes;
    return message_of([&] { from_pretrained(own.path().string()); });
  };
  EXPECT_NE(error_with("fp8-blocks", "k_proj.weight_scale_inv", "k_proj.weight_scale_one").find("k_proj"), std::string::npos);
  EXPECT_NE(error_with("fp8-fbgemm", "k_proj.weight_scale", "k_proj.weight_scalf").find("k_proj"), std::string::npos);
  EXPECT_NE(error_with("ct-nvfp4", "k_proj.weight_scale", "k_proj.weight_scalf").find("k_proj"), std::string::npos);
  EXPECT_NE(error_with("ct-fp8-rows", "k_proj.weight_scale", "k_proj.weight_scalf").find("k_proj"), std::string::npos);
}

TEST(QuantizedModels, ScalesOfACacheAreNotNeeded) {
  OwnDirectory own;
  fs::copy_file(fs::path(others("ct-int8-rows")) / "config.json", own.path() / "config.json");
  NamedTensors state = load_safetensors(others("ct-int8-rows") + "/model.safetensors");
  state.emplace_back("model.layers.0.self_attn.k_scale", ones({1}));
  save_safetensors((own.path() / "model.safetensors").string(), state);
  EXPECT_EQ(difference(logits_of(from_pretrained(own.path().string())), logits_of(from_pretrained(others("ct-int8-rows")))), 0);
}

TEST(QuantizedModels, FormatsThatAreNotRead) {
  OwnDirectory own;
  const fs::path from = others("ct-int4-g32");
  fs::copy_file(from / "model.safetensors", own.path() / "model.safetensors");
  std::ifstream file(from / "config.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto error_with = [&](const std::string& what, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), other);
    std::ofstream(own.path() / "config.json") << changed;
    return message_of([&] { from_pretrained(own.path().string()); });
  };
  EXPECT_NE(error_with("compressed-tensors", "hqq").find("'hqq'"), std::string::npos);
  EXPECT_NE(error_with("pack-quantized", "marlin-24").find("marlin-24"), std::string::npos);
  EXPECT_NE(error_with("\"num_bits\": 4", "\"num_bits\": 3").find("3 bits"), std::string::npos);
  EXPECT_NE(error_with("\"group_size\": 32", "\"group_size\": 24").find("groups"), std::string::npos);
}

TEST(QuantizedModels, WhatTheyCannotDo) {
  auto model = from_pretrained(checkpoint("llama-gqa"), {.quantize = "int8"});
  EXPECT_NE(message_of([&] { checkpoint_state(*model); }).find("quantised"), std::string::npos);
  EXPECT_NE(message_of([&] { from_pretrained(checkpoint("llama-gqa"), {.quantize = "int3"}); }).find("int3"),
            std::string::npos);
  // An adapter beside quantised weights learns; it cannot become part of them.
  auto lora = std::make_unique<Lora>(model, LoraOptions{.rank = 2});
  lora->attach();
  causal_lm(model)->forward(some_ids()).square().sum().backward();
  for (auto& [name, tensor] : lora->parameters())
    if (name.ends_with("lora_B.weight")) EXPECT_GT(tensor.grad().abs().max().item<float>(), 0) << name;
  EXPECT_NE(message_of([&] { lora->merge(); }).find("quantised"), std::string::npos);
}

}  // namespace
}  // namespace sinter::models
