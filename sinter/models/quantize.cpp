#include "sinter/models/quantize.h"

#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dequantize.h"

namespace sinter::models {

namespace {

constexpr const char *kConfig = "quantization_config", *kMethod = "quant_method", *kOurs = "sinter",
                     *kLayers = "layers";

Encoding encoding_of(const std::string& format) {
  check(format == "int8" || format == "int4" || format == "fp8", "models: weights are quantised to int8, int4 or fp8, not to '{}'",
        format);
  return format == "int8" ? Encoding::kInt8 : format == "int4" ? Encoding::kUInt4 : Encoding::kTable8;
}

}  // namespace

Quantizer::Quantizer(Model& model, const std::string& format) {
  const Encoding encoding = encoding_of(format);
  for (auto& [name, module] : model.named_modules()) {
    const std::string weight = name + ".weight";
    if (auto* table = module->as<nn::Embedding>();
        table && table->options.num_embeddings() == model.config().vocab_size)
      embedding_ = weight;
    auto* layer = module->as<nn::Linear>();
    if (!layer || layer->quantized) continue;
    const bool gives_logits = layer->options.out_features() == model.config().vocab_size;
    if (gives_logits) head_ = weight;
    layers_[weight] = {layer, gives_logits && encoding == Encoding::kUInt4 ? Encoding::kInt8 : encoding};
  }
  check(!layers_.empty(), "models: {} has no linear layers to quantise", model.config().architecture);
}

void Quantizer::filled(const std::string& name, Device device) {
  auto found = layers_.find(name);
  if (found == layers_.end()) return;
  auto [layer, encoding] = found->second;
  nn::QuantizedWeight weight = nn::quantize(layer->weight, {.encoding = encoding});
  for (Tensor* tensor : weight.tensors())
    if (tensor->defined()) *tensor = tensor->to(device);
  nn::set_quantized(*layer, weight);
  layers_.erase(found);
}

int64_t quantize_(Model& model, const std::string& format) {
  NoGradGuard no_grad;
  Quantizer quantizer(model, format);
  int64_t count = 0;
  for (auto& [name, module] : model.named_modules()) {
    auto* layer = module->as<nn::Linear>();
    if (!layer || !quantizer.is_wanted(name + ".weight")) continue;
    quantizer.filled(name + ".weight", layer->weight.device());
    ++count;
  }
  if (!model.origin().empty())
    model.set_origin(quantized_config(model, ConfigFile::parse(model.origin(), "config.json")));
  return count;
}

ConfigFile untied(const ConfigFile& file) {
  auto config = nlohmann::json::parse(file.dump());
  config["tie_word_embeddings"] = false;
  return ConfigFile::parse(config.dump(), file.name());
}

bool is_quantized(const Model& model) {
  for (auto* module : const_cast<Model&>(model).modules())
    if (auto* layer = module->as<nn::Linear>(); layer && layer->quantized) return true;
  return false;
}

std::string quantized_config(Model& model, const ConfigFile& file) {
  auto config = nlohmann::json::parse(file.dump());
  nlohmann::json layers = nlohmann::json::object();
  for (auto& [name, module] : model.named_modules()) {
    auto* layer = module->as<nn::Linear>();
    if (!layer || !layer->quantized) continue;
    auto& weight = *layer->quantized;
    layers[name] = {{"encoding", field_text(weight.encoding)},
                    {"group_size", weight.group_size},
                    {"block_rows", weight.block_rows}};
  }
  config[kConfig] = {{kMethod, kOurs}, {kLayers, layers}};
  return config.dump();
}

void make_quantized(Model& model, const ConfigFile& file, const NamedTensors& state, Device device) {
  auto config = file.object(kConfig);
  if (!config) return;
  check(config->text(kMethod, "") == kOurs,
        "models: '{}' tells of weights that were quantised by '{}', which is not read here", file.name(),
        config->text(kMethod, ""));
  std::map<std::string, Tensor> tensors(state.begin(), state.end());
  auto modules = model.named_modules();
  auto layers = config->object(kLayers);
  check(layers.has_value(), "models: '{}' does not tell which layers are quantised", file.name());
  for (auto& name : layers->keys()) {
    auto* module = modules.find(name);
    auto* layer = module ? (*module)->as<nn::Linear>() : nullptr;
    check(layer != nullptr, "models: '{}' tells of a quantised layer '{}', and {} has no linear layer of that name",
          file.name(), name, model.config().architecture);
    const ConfigFile entry = *layers->object(name);
    nn::QuantizedWeight weight;
    parse_field(entry.text("encoding"), weight.encoding);
    weight.group_size = entry.integer("group_size");
    weight.block_rows = entry.integer("block_rows");
    weight.columns = layer->options.in_features();
    auto places = weight.tensors();
    for (size_t i = 0; i < places.size(); ++i) {
      auto found = tensors.find(name + "." + nn::QuantizedWeight::kNames[i]);
      if (found != tensors.end())
        *places[i] = device.is_cpu()
                         ? found->second
                         : empty(found->second.sizes(), TensorOptions(found->second.dtype()).device(device));
    }
    check(weight.codes.defined() && weight.scale.defined(),
          "models: the weights of '{}' lack the codes or scales of '{}'", file.name(), name);
    check(weight.codes.dim() == 2, "models: the codes of '{}' are of shape {}", name, weight.codes.sizes());
    nn::set_quantized(*layer, weight);
  }
}

}  // namespace sinter::models
