// ViT: an encoder over patches of an image, with a class token in front.
#include "sinter/models/families.h"
#include "sinter/models/parts/encoder.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/conv.h"
#include "sinter/nn/init.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

struct VitConfig : ModelConfig {
  int64_t patch_size = 0, classes = 0;
};

class Vit : public ImageClassifier {
 public:
  explicit Vit(const VitConfig& c) : ImageClassifier(c) {
    int64_t patches = (c.image_size / c.patch_size) * (c.image_size / c.patch_size);
    cls_token_ = register_parameter("cls_token", nn::new_parameter({1, 1, c.hidden_size}));
    position_embeddings_ =
        register_parameter("position_embeddings", nn::new_parameter({1, patches + 1, c.hidden_size}));
    if (nn::initialises_parameters()) {
      nn::init::normal_(cls_token_, 0, 0.02);
      nn::init::normal_(position_embeddings_, 0, 0.02);
    }
    projection_ = register_module(
        "projection", nn::Conv2d(nn::Conv2dOptions(c.channels, c.hidden_size, c.patch_size).stride(c.patch_size)));
    register_module("layer", layers_);
    for (int64_t layer = 0; layer < c.layers; ++layer)
      layers_->push_back(EncoderBlock(c, /*norm_first=*/true, c.qkv_bias));
    norm_ = register_module("layernorm", nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps)));
    classifier_ = register_module("classifier", nn::Linear(c.hidden_size, c.classes));
  }
  Tensor forward(const Tensor& pixels) override {
    Tensor patches = projection_(pixels).flatten(2).transpose(1, 2);
    Tensor x = cat({cls_token_.expand({patches.size(0), -1, -1}), patches}, 1) + position_embeddings_;
    for (auto& layer : *layers_) x = layer(x, Tensor());
    return classifier_(norm_(x.select(1, 0)));
  }

 private:
  Tensor cls_token_, position_embeddings_;
  nn::Conv2d projection_{nullptr};
  nn::ModuleListOf<EncoderBlock> layers_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear classifier_{nullptr};
};

std::shared_ptr<Model> make(const ConfigFile& file) {
  VitConfig c;
  static_cast<ModelConfig&>(c) = ModelConfig::named(file);
  c.hidden_size = file.size("hidden_size");
  c.intermediate_size = file.size("intermediate_size");
  c.layers = file.size("num_hidden_layers");
  c.heads = c.kv_heads = file.size("num_attention_heads");
  c.head_dim = c.hidden_size / c.heads;
  c.check_sizes(file);
  c.norm_eps = file.number("layer_norm_eps", 1e-12);
  c.activation = file.text("hidden_act", "gelu");
  check_activation(c.activation, file);
  c.qkv_bias = file.boolean("qkv_bias", true);
  c.image_size = file.size("image_size", 224);
  c.patch_size = file.size("patch_size", 16);
  c.channels = file.size("num_channels", 3);
  auto labels = file.object("id2label");
  c.classes = labels ? int64_t(labels->keys().size()) : file.size("num_labels", 2);
  return std::make_shared<Vit>(c);
}

}  // namespace

Family vit_family() {
  return {.model_type = "vit",
          .architectures = {"ViTForImageClassification"},
          .make = make,
          .prefix = "vit.",
          .renames = {{"embeddings.patch_embeddings.projection.", "projection."},
                      {"embeddings.cls_token", "cls_token"},
                      {"embeddings.position_embeddings", "position_embeddings"},
                      {"encoder.layer.", "layer."},
                      {"attention.attention.query.", "query."},
                      {"attention.attention.key.", "key."},
                      {"attention.attention.value.", "value."},
                      {"attention.output.dense.", "attention_output."},
                      {"intermediate.dense.", "intermediate."},
                      {"output.dense.", "output."},
                      {"layernorm_before.", "attention_norm."},
                      {"layernorm_after.", "output_norm."}},
          .ignored = {"pooler."}};
}

}  // namespace sinter::models
