#include "sinter/models/models.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/capture/fingerprint.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

namespace {

std::optional<Tensor> find(const NamedTensors& tensors, std::string_view name) {
  for (auto& [its_name, tensor] : tensors)
    if (its_name == name) return tensor;
  return {};
}

Tensor required(const Model& model, const NamedTensors& tensors, std::string_view name) {
  auto found = find(tensors, name);
  check(found.has_value(), "{}: needs the input '{}'", model.config().architecture, name);
  return *found;
}

}  // namespace

ModelConfig ModelConfig::named(const ConfigFile& file) {
  ModelConfig c;
  auto names = file.texts("architectures");
  c.model_type = file.text("model_type", "");
  c.architecture = names.empty() ? c.model_type : names[0];
  return c;
}

void ModelConfig::check_sizes(const ConfigFile& file) const {
  constexpr int64_t kMostLayers = 4096;
  check(layers <= kMostLayers, "config: '{}' has {} layers", file.name(), layers);
  check(head_dim > 0, "config: '{}' has {} heads for a hidden size of {}", file.name(), heads, hidden_size);
  check(heads % kv_heads == 0, "config: '{}' has {} heads, no multiple of {} key-value heads", file.name(), heads,
        kv_heads);
}

ModelConfig ModelConfig::common(const ConfigFile& file) {
  ModelConfig c = named(file);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("hidden_size");
  c.intermediate_size = file.size("intermediate_size", 4 * c.hidden_size);
  c.layers = file.size("num_hidden_layers");
  c.heads = file.size("num_attention_heads");
  c.kv_heads = file.size("num_key_value_heads", c.heads);
  c.head_dim = file.size("head_dim", c.hidden_size / c.heads);
  c.max_positions = file.size("max_position_embeddings");
  c.activation = file.text("hidden_act", c.activation);
  c.tie_embeddings = file.boolean("tie_word_embeddings", false);
  c.check_sizes(file);
  return c;
}

namespace {

uint64_t fingerprint_of(std::span<const IntrusivePtr<capture::HostState>> states) {
  uint64_t hash = states.size();
  for (auto& state : states) hash = hash_mix(hash, state->fingerprint().value_or(0));
  return hash;
}

}  // namespace

void Model::set_origin(std::string configuration) {
  origin_ = std::move(configuration);
  made_ = fingerprint_of(watched());
}

std::shared_ptr<const capture::Fingerprint> Model::fingerprint(const std::string& function) {
  auto states = watched();
  if (origin_.empty() || fingerprint_of(states) != made_) return nullptr;
  auto out = std::make_shared<capture::Fingerprint>();
  out->text = format("{} {} {}", config_.architecture, hash_hex(origin_), function);
  for (auto& list : {named_parameters(), named_buffers()}) out->tensors.insert(out->tensors.end(), list.begin(), list.end());
  for (size_t i = 0; i < constants_.size(); ++i) out->tensors.emplace_back(format("constant {}", i), constants_[i]);
  out->states = std::move(states);
  return out;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (auto& parameter : parameters()) count += parameter.numel();
  return count;
}

Tensor CausalLM::forward(const Tensor& ids) {
  return forward(ids, arange_of_size(ids.size(1), TensorOptions(kInt64).device(ids.device())), {}, nullptr);
}

KvCache TextDecoder::make_cache(int64_t batch, int64_t length, std::optional<DType> dtype) const {
  check(batch > 0 && length > 0, "make_cache: a batch of {} with length {} holds nothing", batch, length);
  TensorList all = parameters();
  TensorOptions options = all.at(0).options();
  const TensorOptions of_scales = options;
  check(!dtype || is_floating(*dtype) || *dtype == kInt8, "make_cache: a cache of {}; keys and values are floating-point numbers, or i8",
        *dtype);
  if (dtype) options = options.dtype(*dtype);
  KvCache cache;
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    cache.keys.push_back(zeros({batch, config_.kv_heads, length, config_.head_dim}, options));
    cache.values.push_back(zeros({batch, config_.kv_heads, length, config_.head_dim}, options));
    if (dtype != kInt8) continue;
    cache.key_scales.push_back(zeros({batch, config_.kv_heads, length, 1}, of_scales));
    cache.value_scales.push_back(zeros({batch, config_.kv_heads, length, 1}, of_scales));
  }
  return cache;
}

NamedTensors CausalLM::run(const NamedTensors& inputs) {
  Tensor ids = required(*this, inputs, "input_ids");
  std::optional<Tensor> mask = find(inputs, "attention_mask");
  if (mask) mask = (*mask != 0).unsqueeze(1).unsqueeze(1);
  Tensor positions = find(inputs, "position_ids").value_or(Tensor());
  if (!positions.defined()) positions = arange_of_size(ids.size(1), TensorOptions(kInt64).device(ids.device()));
  return {{"logits", forward(ids, positions, mask, nullptr)}};
}

NamedTensors EncoderDecoder::run(const NamedTensors& inputs) {
  auto features = find(inputs, "input_features");
  std::optional<Tensor> mask = find(inputs, "attention_mask");
  KvCache cache;
  cache.source = read(features ? *features : required(*this, inputs, "input_ids"), mask);
  Tensor ids = required(*this, inputs, "decoder_input_ids");
  Tensor positions = arange_of_size(ids.size(1), TensorOptions(kInt64).device(ids.device()));
  return {{"logits", forward(ids, positions, {}, &cache)}};
}

NamedTensors TextEncoder::run(const NamedTensors& inputs) {
  return {{"last_hidden_state", forward(required(*this, inputs, "input_ids"), find(inputs, "attention_mask"),
                                        find(inputs, "token_type_ids"))}};
}

NamedTensors ImageClassifier::run(const NamedTensors& inputs) {
  return {{"logits", forward(required(*this, inputs, "pixel_values"))}};
}

}  // namespace sinter::models
