// ResNet with basic or bottleneck blocks, by torchvision's names; those of transformers are translated.
#include "sinter/base/error.h"
#include "sinter/models/families.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/conv.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter::models {

namespace {

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// A shortcut around two convolutions of 3 x 3, or around 1 x 1, 3 x 3, 1 x 1 with a narrow middle.
struct ResNetBlockImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  nn::Sequential downsample{nullptr};

  ResNetBlockImpl(int64_t in, int64_t out, int64_t stride, bool bottleneck) {
    int64_t middle = bottleneck ? out / 4 : out;
    conv1 = register_module("conv1", bottleneck ? convolution(in, middle, 1, 1) : convolution(in, middle, 3, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(middle));
    conv2 = register_module("conv2", convolution(middle, middle, 3, bottleneck ? stride : 1));
    bn2 = register_module("bn2", nn::BatchNorm2d(middle));
    if (bottleneck) {
      conv3 = register_module("conv3", convolution(middle, out, 1, 1));
      bn3 = register_module("bn3", nn::BatchNorm2d(out));
    }
    if (in != out || stride != 1)
      downsample = register_module("downsample", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    if (conv3) y = bn3(conv3(relu(y)));
    return relu(y + (downsample ? downsample(x) : x));
  }
};
SINTER_MODULE(ResNetBlock);

class ResNet : public ImageClassifier {
 public:
  ResNet(const ModelConfig& c, const std::vector<int64_t>& depths, const std::vector<int64_t>& widths, int64_t stem,
         int64_t channels, bool bottleneck, int64_t classes)
      : ImageClassifier(c) {
    conv1_ = register_module("conv1", convolution(channels, stem, 7, 2));
    bn1_ = register_module("bn1", nn::BatchNorm2d(stem));
    pool_ = nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1));
    int64_t in = stem;
    for (size_t stage = 0; stage < depths.size(); ++stage) {
      nn::Sequential blocks;
      for (int64_t i = 0; i < depths[stage]; ++i, in = widths[stage])
        blocks->push_back(ResNetBlock(in, widths[stage], i == 0 && stage > 0 ? 2 : 1, bottleneck));
      stages_.push_back(register_module("layer" + std::to_string(stage + 1), blocks));
    }
    fc_ = register_module("fc", nn::Linear(in, classes));
  }
  Tensor forward(const Tensor& pixels) override {
    Tensor x = pool_(relu(bn1_(conv1_(pixels))));
    for (auto& stage : stages_) x = stage(x);
    return fc_(mean(x, {2, 3}));
  }

 private:
  nn::Conv2d conv1_{nullptr};
  nn::BatchNorm2d bn1_{nullptr};
  nn::MaxPool2d pool_{nullptr};
  std::vector<nn::Sequential> stages_;
  nn::Linear fc_{nullptr};
};

std::shared_ptr<Model> make(const ConfigFile& file) {
  ModelConfig c = ModelConfig::named(file);
  auto depths = file.integers("depths"), widths = file.integers("hidden_sizes");
  check(!depths.empty() && depths.size() == widths.size(), "config: '{}' needs depths and hidden_sizes of one length",
        file.name());
  check(!file.boolean("downsample_in_first_stage", false) && !file.boolean("downsample_in_bottleneck", false),
        "config: '{}' asks for a downsampling that is not supported", file.name());
  for (size_t stage = 0; stage < depths.size(); ++stage)
    check(depths[stage] > 0 && depths[stage] <= 1000 && widths[stage] >= 4 && widths[stage] <= 1 << 20,
          "config: '{}' has a stage of {} blocks of width {}", file.name(), depths[stage], widths[stage]);
  std::string type = file.text("layer_type", "bottleneck");
  check(type == "bottleneck" || type == "basic", "config: '{}' has the layer_type '{}'", file.name(), type);
  auto labels = file.object("id2label");
  c.layers = int64_t(depths.size());
  c.hidden_size = widths.back();
  c.channels = file.size("num_channels", 3);
  return std::make_shared<ResNet>(c, depths, widths, file.size("embedding_size", 64), c.channels,
                                  type == "bottleneck",
                                  labels ? int64_t(labels->keys().size()) : file.size("num_labels", 1000));
}

}  // namespace

Family resnet_family() {
  return {.model_type = "resnet",
          .architectures = {"ResNetForImageClassification"},
          .make = make,
          .prefix = "resnet.",
          .renames = {{"embedder.embedder.convolution.", "conv1."},
                      {"embedder.embedder.normalization.", "bn1."},
                      {"encoder.stages.0.layers.", "layer1."},
                      {"encoder.stages.1.layers.", "layer2."},
                      {"encoder.stages.2.layers.", "layer3."},
                      {"encoder.stages.3.layers.", "layer4."},
                      {".layer.0.convolution.", ".conv1."},
                      {".layer.0.normalization.", ".bn1."},
                      {".layer.1.convolution.", ".conv2."},
                      {".layer.1.normalization.", ".bn2."},
                      {".layer.2.convolution.", ".conv3."},
                      {".layer.2.normalization.", ".bn3."},
                      {".shortcut.convolution.", ".downsample.0."},
                      {".shortcut.normalization.", ".downsample.1."},
                      {"classifier.1.", "fc."}}};
}

}  // namespace sinter::models
