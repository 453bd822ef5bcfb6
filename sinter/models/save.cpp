// Models as folders that from_pretrained, and transformers, read again; quantised ones in the layout of compressed-tensors.
#include <filesystem>
#include <map>
#include <set>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/io/safetensors_codes.h"
#include "sinter/models/families.h"
#include "sinter/models/formats/compressed_weight.h"
#include "sinter/models/models.h"
#include "sinter/models/quantize.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

// As config.json calls a type of weights.
const char* config_type(DType dtype) {
  switch (dtype) {
    case kFloat64:
      return "float64";
    case kBFloat16:
      return "bfloat16";
    case kFloat16:
      return "float16";
    default:
      return "float32";
  }
}

ConfigFile config_of(const Model& model) {
  check(!model.origin().empty(), "models: a model that was made from no config.json cannot be saved as a checkpoint");
  return ConfigFile::parse(model.origin(), "config.json");
}

// The quantised layers of a model as a checkpoint has them, and what its configuration says of them.
class CompressedLayers {
 public:
  CompressedLayers(Model& model, const Family& family) {
    for (auto& [name, module] : model.named_modules()) {
      auto* layer = module->as<nn::Linear>();
      if (!layer) continue;
      const std::string weight = checkpoint_name(family, name + ".weight");
      const std::string base = weight.substr(0, weight.size() - std::string_view(".weight").size());
      if (!layer->quantized) {
        ignored_.push_back(base);
        continue;
      }
      check(!is_transposed(family, weight), "models: checkpoints of {} store weights as [in, out], which no quantised ones do",
            family.model_type);
      CompressedWeight stored = compressed_weight(base, *layer->quantized);
      for (auto& [end, tensor] : stored.parts) {
        tensors.emplace_back(base + "." + end, tensor);
        if (end == "weight" && tensor.dtype() == kUInt8) types[base + "." + end] = "F8_E4M3";
      }
      for (auto* part : nn::QuantizedWeight::kNames) own_.insert(name + "." + part);
      groups_[{stored.format, stored.arguments}].push_back(base);
    }
    // Of a model whose head is its embedding others make a layer all the same.
    if (model.config().tie_embeddings) ignored_.push_back("lm_head");
  }

  // Whether a tensor of the state is part of one of them, by its name.
  bool holds(const std::string& name) const { return own_.contains(name); }
  bool empty() const { return groups_.empty(); }

  nlohmann::json config() const {
    nlohmann::json groups = nlohmann::json::object();
    for (auto& [kind, layers] : groups_) {
      nlohmann::json group = {{"weights", nlohmann::json::parse(kind.second)}, {"format", kind.first}};
      group["targets"] = groups_.size() == 1 ? nlohmann::json{"Linear"} : nlohmann::json(layers);
      groups["group_" + std::to_string(groups.size())] = group;
    }
    return {{"quant_method", "compressed-tensors"},
            {"format", groups_.size() == 1 ? groups_.begin()->first.first : "mixed-precision"},
            {"quantization_status", "compressed"},
            {"config_groups", groups},
            {"ignore", ignored_}};
  }

  NamedTensors tensors;
  std::map<std::string, std::string> types;  // of those that are not what they seem

 private:
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups_;  // layers by format and arguments
  std::vector<std::string> ignored_;
  std::set<std::string> own_;
};

}  // namespace

std::string checkpoint_name(const Model& model, const std::string& name) {
  return checkpoint_name(family_of(config_of(model)), name);
}

namespace {

// But for the tensors of quantised layers.
NamedTensors plain_state(const Model& model, std::optional<DType> dtype, const CompressedLayers& without) {
  ConfigFile file = config_of(model);
  const Family& family = family_of(file);
  check(dynamic_cast<const TextEncoder*>(&model) == nullptr,
        "models: {} lacks the heads of its checkpoint and cannot be saved as one", model.config().architecture);
  NoGradGuard no_grad;
  NamedTensors out;
  NamedTensors state;
  for (auto& [ours, tensor] : model.state_dict())
    if (without.holds(ours))
      continue;
    else if (has_expert_rows(ours))
      for (int64_t expert = 0; expert < tensor.size(0).to_int(); ++expert)
        state.emplace_back(name_of_row(ours, expert), tensor.select(0, expert));
    else
      state.emplace_back(ours, tensor);
  for (auto& [ours, tensor] : state) {
    std::string name = checkpoint_name(family, ours);
    Tensor stored = tensor.detach().cpu();
    if (dtype && stored.is_floating_point()) stored = stored.to(*dtype);
    if (is_transposed(family, name) && stored.dim() == 2) stored = stored.t();
    out.emplace_back(name, stored);
  }
  return out;
}

}  // namespace

NamedTensors checkpoint_state(const Model& model, std::optional<DType> dtype) {
  const CompressedLayers layers(const_cast<Model&>(model), family_of(config_of(model)));
  check(layers.empty(), "models: {} is quantised, and its codes are no checkpoint's numbers: save_pretrained writes them",
        model.config().architecture);
  return plain_state(model, dtype, layers);
}

void save_pretrained(const Model& model, const std::string& folder, std::optional<DType> dtype) {
  auto config = nlohmann::json::parse(config_of(model).dump());
  NoGradGuard no_grad;
  const CompressedLayers layers(const_cast<Model&>(model), family_of(config_of(model)));
  NamedTensors state = plain_state(model, dtype, layers);
  for (auto& [name, tensor] : state)
    if (tensor.is_floating_point()) {
      config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = config_type(tensor.dtype());
      break;
    }
  config.erase("quantization_config");
  if (!layers.empty()) config["quantization_config"] = layers.config();
  config["tie_word_embeddings"] = model.config().tie_embeddings;
  state.insert(state.end(), layers.tensors.begin(), layers.tensors.end());
  std::filesystem::path root(folder);
  std::filesystem::create_directories(root);
  PendingFile file("checkpoint", (root / "config.json").string());
  file.write(config.dump(2) + "\n");
  file.commit();
  save_safetensors((root / "model.safetensors").string(), state, {{"format", "pt"}}, layers.types);
}

}  // namespace sinter::models
