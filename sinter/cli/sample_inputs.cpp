#include "sinter/cli/sample_inputs.h"

#include <filesystem>

#include "sinter/io/config.h"
#include "sinter/ops/creation.h"

namespace sinter::cli {

namespace {

// Ids that every vocabulary has.
constexpr int64_t kFewIds = 32;

}  // namespace

NamedTensors sample_inputs(const models::Model& model, const std::string& folder, int64_t batch, int64_t tokens, bool drawn) {
  Tensor weight = model.parameters().at(0);
  if (dynamic_cast<const models::ImageClassifier*>(&model)) {
    auto config = ConfigFile::read((std::filesystem::path(folder) / "config.json").string());
    constexpr int64_t kImageSize = 224, kChannels = 3;
    int64_t size = config.size("image_size", kImageSize);
    Shape shape{batch, config.size("num_channels", kChannels), size, size};
    return {{"pixel_values", drawn ? randn(shape, weight.options()) : zeros(shape, weight.options())}};
  }
  auto options = TensorOptions(kInt64).device(weight.device());
  return {{"input_ids", drawn ? randint(kFewIds, {batch, tokens}, options) : zeros({batch, tokens}, options)}};
}

}  // namespace sinter::cli
