#include "bench/support/training_models.h"

#include <nlohmann/json.hpp>

#include "bench/support/plain_gpt.h"
#include "sinter/nn/recurrent.h"
#include "sinter/sinter.h"

namespace sinter::bench {

namespace {

using Json = nlohmann::json;

int64_t or_else(int64_t given, int64_t standard) { return given ? given : standard; }

// --- models of layers

TrainingModel mlp(const TrainingSizes& sizes) {
  int64_t batch = or_else(sizes.batch, 128);
  nn::Sequential net(nn::Linear(784, 1024), nn::ReLU(), nn::Linear(1024, 1024), nn::ReLU(), nn::Linear(1024, 10));
  return {net.ptr(), [net](const Tensor& x) { return net(x); }, randn({batch, 784}), randint(10, {batch})};
}

TrainingModel cnn(const TrainingSizes& sizes) {
  int64_t batch = or_else(sizes.batch, 32), image = or_else(sizes.image, 32);
  auto convolution = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  };
  nn::Sequential net(convolution(3, 32), nn::BatchNorm2d(32), nn::ReLU(), convolution(32, 64), nn::BatchNorm2d(64),
                     nn::ReLU(), nn::MaxPool2d(2), convolution(64, 128), nn::BatchNorm2d(128), nn::ReLU(),
                     nn::MaxPool2d(2), convolution(128, 128), nn::BatchNorm2d(128), nn::ReLU(),
                     nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(128, 10));
  return {net.ptr(), [net](const Tensor& x) { return net(x); },
          randn({batch, 3, image, image}).contiguous(MemoryFormat::kChannelsLast), randint(10, {batch})};
}

struct LstmLmImpl : nn::Module {
  static constexpr int64_t kVocabulary = 2000;
  nn::Embedding embedding = register_module("embedding", nn::Embedding(kVocabulary, 128));
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(128, 256).batch_first(true)));
  nn::Linear head = register_module("head", nn::Linear(256, kVocabulary));
  Tensor forward(const Tensor& x) { return head(std::get<0>(lstm(embedding(x)))).flatten(0, 1); }
};
SINTER_MODULE(LstmLm);

TrainingModel lstm(const TrainingSizes& sizes) {
  int64_t batch = or_else(sizes.batch, 32), tokens = or_else(sizes.tokens, 32);
  LstmLm net;
  return {net.ptr(), [net](const Tensor& x) { return net(x); }, randint(LstmLmImpl::kVocabulary, {batch, tokens}),
          randint(LstmLmImpl::kVocabulary, {batch * tokens})};
}

// --- models of a configuration

constexpr auto kGptTiny = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 5000,
  "n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 1024})";
constexpr auto kVitTiny = R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 192,
  "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 3, "image_size": 64, "patch_size": 8,
  "num_labels": 1000})";

TrainingModel configured(const std::string& name, const std::string& config, const TrainingSizes& sizes, DType dtype,
                         Device device) {
  Json text = Json::parse(config);
  if (sizes.layers) text[text.contains("n_layer") ? "n_layer" : "num_hidden_layers"] = sizes.layers;
  if (sizes.image) text["image_size"] = sizes.image;
  std::shared_ptr<models::Model> model =
      models::from_config(ConfigFile::parse(text.dump(), name), {.dtype = dtype, .device = device});
  auto& c = model->config();
  int64_t batch = or_else(sizes.batch, 4), tokens = or_else(sizes.tokens, 128);
  if (auto text_model = std::dynamic_pointer_cast<models::CausalLM>(model))
    return {model, [text_model](const Tensor& x) { return text_model->forward(x).flatten(0, 1); },
            randint(c.vocab_size, {batch, tokens}), randint(c.vocab_size, {batch * tokens})};
  auto image_model = std::dynamic_pointer_cast<models::ImageClassifier>(model);
  check(image_model != nullptr, "training: {} is neither of text nor of images", name);
  if (c.model_type == "resnet") model->to(MemoryFormat::kChannelsLast);
  int64_t image = or_else(sizes.image, c.image_size);
  Tensor x = randn({batch, c.channels, image, image});
  return {model, [image_model](const Tensor& x) { return image_model->forward(x); },
          c.model_type == "resnet" ? x.contiguous(MemoryFormat::kChannelsLast) : x, randint(1000, {batch})};
}

// gpt-tiny by hand; with checkpoint() around each block, perhaps.
TrainingModel plain_gpt(const TrainingSizes& sizes, bool checkpointed) {
  PlainGpt model(or_else(sizes.layers, 4), checkpointed);
  int64_t batch = or_else(sizes.batch, 4), tokens = or_else(sizes.tokens, 128);
  return {model.ptr(), [model](const Tensor& x) mutable { return model->forward(x).flatten(0, 1); },
          randint(5000, {batch, tokens}), randint(5000, {batch * tokens})};
}

struct Entry {
  const char* name;
  std::function<TrainingModel(const TrainingSizes& sizes, DType dtype, Device device)> make;
};

const std::vector<Entry>& suite() {
  auto layers = [](auto make) { return [make](const TrainingSizes& sizes, DType, Device) { return make(sizes); }; };
  auto config = [](const char* name, const std::string& text, TrainingSizes own) {
    return [=](TrainingSizes sizes, DType dtype, Device device) {
      sizes.batch = or_else(sizes.batch, own.batch);
      sizes.image = or_else(sizes.image, own.image);
      return configured(name, text, sizes, dtype, device);
    };
  };
  static const std::vector<Entry> all = {
      {"mlp", layers(mlp)},
      {"cnn", layers(cnn)},
      {"gpt-tiny", config("gpt-tiny", kGptTiny, {.batch = 4})},
      {"vit-tiny", config("vit-tiny", kVitTiny, {.batch = 16})},
      {"resnet-18", config("resnet-18", models::config_text("resnet-18"), {.batch = 8, .image = 96})},
      {"lstm", layers(lstm)},
  };
  return all;
}

TrainingModel made(const std::string& name, const TrainingSizes& sizes, DType dtype, Device device) {
  for (auto& entry : suite())
    if (entry.name == name) return entry.make(sizes, dtype, device);
  if (name == "gpt-plain" || name == "gpt-checkpointed") return plain_gpt(sizes, name == "gpt-checkpointed");
  return configured(name, models::config_text(name), sizes, dtype, device);
}

}  // namespace

TrainingModel training_model(const std::string& name, const TrainingSizes& sizes, DType dtype, Device device) {
  TrainingModel out = made(name, sizes, dtype, device);
  out.module->to(device, dtype);
  out.module->train();
  out.module->requires_grad_();
  out.x = out.x.is_floating_point() ? out.x.to(TensorOptions(dtype).device(device)) : out.x.to(device);
  out.y = out.y.to(device);
  return out;
}

std::vector<std::string> training_suite() {
  std::vector<std::string> out;
  for (auto& entry : suite()) out.push_back(entry.name);
  return out;
}

}  // namespace sinter::bench
