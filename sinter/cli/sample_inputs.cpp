#include "sinter/cli/sample_inputs.h"

#include "sinter/io/config.h"
#include "sinter/ops/creation.h"

namespace sinter::cli {

namespace {

// Ids that every vocabulary has.
constexpr int64_t kFewIds = 32;

ConfigFile config_of(const std::string& folder) {
  const CheckpointFiles files(folder);
  return ConfigFile::parse(files.read("config.json").value_or(""), files.path("config.json"));
}

}  // namespace

NamedTensors sample_inputs(const models::Model& model, const std::string& folder, int64_t batch, int64_t tokens, bool drawn) {
  Tensor weight = model.parameters().at(0);
  if (dynamic_cast<const models::ImageClassifier*>(&model)) {
    auto config = config_of(folder);
    constexpr int64_t kImageSize = 224, kChannels = 3;
    int64_t size = config.size("image_size", kImageSize);
    Shape shape{batch, config.size("num_channels", kChannels), size, size};
    return {{"pixel_values", drawn ? randn(shape, weight.options()) : zeros(shape, weight.options())}};
  }
  auto options = TensorOptions(kInt64).device(weight.device());
  Tensor ids = drawn ? randint(kFewIds, {batch, tokens}, options) : zeros({batch, tokens}, options);
  if (!dynamic_cast<const models::EncoderDecoder*>(&model)) return {{"input_ids", ids}};
  auto config = config_of(folder);
  if (!config.contains("num_mel_bins")) return {{"input_ids", ids}, {"decoder_input_ids", ids}};
  Shape shape{batch, config.size("num_mel_bins"), 2 * config.size("max_source_positions")};
  Tensor features = drawn ? randn(shape, weight.options()) : zeros(shape, weight.options());
  return {{"input_features", features}, {"decoder_input_ids", ids}};
}

}  // namespace sinter::cli
