#include "sinter/models/lora.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

std::shared_ptr<Model> load(const std::string& name) {
  return from_pretrained(std::string(SINTER_TEST_DATA "/models/") + name, {.dtype = kFloat32});
}

Tensor logits(const std::shared_ptr<Model>& model) {
  NoGradGuard no_grad;
  return causal_lm(model)->forward(tensor({5, 17, 3, 50}).view({1, 4}));
}

double most(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

void disturb(Lora& lora) {
  NoGradGuard no_grad;
  for (auto& [name, tensor] : lora.parameters()) tensor.copy_(randn(tensor.sizes()) * 0.1);
}

class LoraOf : public ::testing::TestWithParam<const char*> {};

TEST_P(LoraOf, MergedIsWhatUnmergedComputes) {
  manual_seed(3);
  auto model = load(GetParam());
  Tensor before = logits(model);
  OwnDirectory own;
  Tensor with;
  {
    Lora lora(model, LoraOptions{.rank = 4, .alpha = 8});
    lora.attach();
    EXPECT_EQ(most(logits(model), before), 0) << "a new one changes nothing";
    disturb(lora);
    with = logits(model);
    EXPECT_GT(most(with, before), 1e-3);
    {
      Lora::Merged merged(lora);
      save_pretrained(*model, own.file("merged"));
    }
    EXPECT_EQ(most(logits(model), with), 0) << "the weights are what they were";
    std::filesystem::create_directory(own.file("adapter"));
    lora.save(own.file("adapter"), GetParam());
  }
  EXPECT_EQ(most(logits(model), before), 0) << "without it the model is the old one";
  EXPECT_LT(most(logits(from_pretrained(own.file("merged"))), with), 1e-4);
  auto other = load(GetParam());
  Lora(other, own.file("adapter")).merge();
  EXPECT_LT(most(logits(other), with), 1e-4);
  Lora again(model, own.file("adapter"));
  again.attach();
  EXPECT_EQ(most(logits(model), with), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, LoraOf,
                         ::testing::Values("llama-gqa", "gpt2", "phi3", "phi", "falcon-grouped", "glm4"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The names and shapes that PEFT writes for the same model and targets.
TEST(Lora, FilesAreThoseOfPeft) {
  auto model = load("llama-gqa");
  Lora lora(model, LoraOptions{.rank = 2, .alpha = 6, .targets = {"q_proj", "mlp.up_proj"}});
  OwnDirectory own;
  lora.save(own.path().string(), "org/base", kBFloat16);
  SafeTensorsFile file(own.file("adapter_model.safetensors"));
  ASSERT_EQ(file.names().size(), 12u);
  auto& a = file.info("base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight");
  auto& b = file.info("base_model.model.model.layers.0.mlp.up_proj.lora_B.weight");
  EXPECT_EQ(to_string(a.shape), "[2, 64]");
  EXPECT_EQ(to_string(b.shape), "[160, 2]");
  EXPECT_EQ(a.dtype, kBFloat16);
  auto config = nlohmann::json::parse(std::ifstream(own.file("adapter_config.json")));
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "CAUSAL_LM");
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 6);
  EXPECT_EQ(config["target_modules"], (std::vector<std::string>{"q_proj", "mlp.up_proj"}));
  EXPECT_EQ(config["base_model_name_or_path"], "org/base");
  EXPECT_EQ(config["fan_in_fan_out"], false);
}

TEST(Lora, GradientsReachTheAdapterAlone) {
  auto model = load("llama-gqa");
  Lora lora(model, LoraOptions{.rank = 2});
  lora.attach();
  auto loss = compile([&](const Tensor& ids) { return causal_lm(model)->forward(ids).square().mean(); });
  loss(tensor({5, 17, 3, 50}).view({1, 4})).backward();
  for (auto& [name, tensor] : lora.parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    // B is zero at first, and so are A's gradients.
    EXPECT_EQ(tensor.grad().abs().max().item<double>() > 0, name.ends_with("lora_B.weight")) << name;
  }
  for (auto& parameter : model->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST(Lora, SaysWhatDoesNotFit) {
  auto model = load("llama-gqa");
  std::string error = message_of([&] { Lora(model, LoraOptions{.targets = {"query"}}); });
  EXPECT_NE(error.find("q_proj"), std::string::npos) << error;
  OwnDirectory own;
  Lora(load("gpt2"), LoraOptions{}).save(own.path().string(), "");
  error = message_of([&] { Lora(model, own.path().string()); });
  EXPECT_NE(error.find("belongs to no linear layer"), std::string::npos) << error;
  std::ofstream(own.file("adapter_config.json"))
      << R"({"peft_type": "LORA", "r": 8, "lora_alpha": 8, "use_dora": true})";
  error = message_of([&] { Lora(model, own.path().string()); });
  EXPECT_NE(error.find("use_dora"), std::string::npos) << error;
}

}  // namespace
}  // namespace sinter::models
