#include "sinter/models/lora.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/models/families.h"
#include "sinter/models/models.h"
#include "sinter/nn/init.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

namespace fs = std::filesystem;

namespace {

constexpr const char *kConfig = "adapter_config.json", *kWeights = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight",
                           kWeight = ".weight";

// Linear layers by their names in the checkpoint.
std::map<std::string, nn::LinearImpl*> layers_of(Model& model) {
  std::map<std::string, nn::LinearImpl*> out;
  for (auto& [name, module] : model.named_modules())
    if (auto* layer = dynamic_cast<nn::LinearImpl*>(module)) {
      std::string full = checkpoint_name(model, name + std::string(kWeight));
      out[full.substr(0, full.size() - kWeight.size())] = layer;
    }
  return out;
}

bool ends_in(const std::string& name, const std::string& target) {
  return name == target || name.ends_with("." + target);
}

}  // namespace

struct Lora::Layer {
  std::string name;
  nn::LinearImpl* layer;
  Tensor a, b;
  nn::HookHandle hook;
};

Lora::~Lora() {
  for (auto& layer : layers_) layer.hook.remove();
}

void Lora::add(const std::string& name, nn::LinearImpl& layer, const Tensor& a, const Tensor& b) {
  for (auto& tensor : {a, b}) tensor.requires_grad_(true);
  layers_.push_back({name, &layer, a, b, {}});
}

void Lora::attach() {
  for (auto& layer : layers_) {
    auto change = [a = layer.a, b = layer.b, scale = scale_](nn::Module&, const TensorList& inputs,
                                                             TensorList& outputs) {
      outputs[0] = outputs[0] + linear(linear(inputs[0], a), b) * scale;
    };
    layer.hook = layer.layer->register_forward_hook(change);
  }
}

void Lora::merge() const {
  NoGradGuard no_grad;
  for (auto& [name, layer, a, b, hook] : layers_) {
    check(!layer->quantized,
          "LoRA: '{}' is quantised, so that nothing can be added to its weight: merge first, or attach the adapter", name);
    const Tensor& weight = layer->weight;
    weight.copy_((weight.to(kFloat32) + matmul(b, a) * scale_).to(weight.dtype()));
  }
}

Lora::Lora(const std::shared_ptr<Model>& model, const LoraOptions& options) : model_(model), options_(options) {
  check(options.rank > 0, "LoRA: a rank of {}", options.rank);
  scale_ = options.alpha / double(options.rank);
  auto all = layers_of(*model);
  for (auto& target : options.targets) {
    bool met = std::any_of(all.begin(), all.end(), [&](auto& entry) { return ends_in(entry.first, target); });
    std::set<std::string> known;
    for (auto& [name, layer] : all) known.insert(name.substr(name.rfind('.') + 1));
    std::string list;
    for (auto& name : known) list += (list.empty() ? "" : ", ") + name;
    check(met, "LoRA: {} has no linear layer '{}'; there are {}", model->config().architecture, target, list);
  }
  for (auto& [name, layer] : all) {
    bool chosen = options.targets.empty() ? !is_head(name + ".")
                                          : std::any_of(options.targets.begin(), options.targets.end(),
                                                        [&, n = name](auto& target) { return ends_in(n, target); });
    if (!chosen) continue;
    TensorOptions like = TensorOptions(kFloat32).device(layer->device());
    Tensor a = empty({options.rank, layer->options.in_features()}, like),
           b = zeros({layer->options.out_features(), options.rank}, like);
    nn::init::kaiming_uniform_(a, std::sqrt(5.0));
    add(name, *layer, a, b);
  }
}

Lora::Lora(const std::shared_ptr<Model>& model, const std::string& folder) : model_(model) {
  fs::path root(folder);
  ConfigFile config = ConfigFile::read((root / kConfig).string());
  check(config.text("peft_type", "") == "LORA", "LoRA: '{}' is an adapter of the kind '{}'", folder,
        config.text("peft_type", ""));
  for (auto* key : {"use_dora", "lora_bias"})
    check(!config.boolean(key, false), "LoRA: '{}' asks for {}, which is not supported", folder, key);
  check(config.text("bias", "none") == "none" && config.texts("modules_to_save").empty(),
        "LoRA: '{}' holds more than low-rank matrices, which is not supported", folder);
  for (auto* key : {"rank_pattern", "alpha_pattern"})
    check(!config.object(key) || config.object(key)->keys().empty(), "LoRA: '{}' has a {}, which is not supported",
          folder, key);
  options_.rank = config.size("r");
  options_.alpha = config.number("lora_alpha");
  scale_ =
      options_.alpha / (config.boolean("use_rslora", false) ? std::sqrt(double(options_.rank)) : double(options_.rank));
  auto all = layers_of(*model);
  SafeTensorsFile file((root / kWeights).string());
  std::set<std::string> ends;
  for (auto& key : file.names()) {
    if (key.ends_with(kB)) continue;
    bool known = key.starts_with(kPrefix) && key.ends_with(kA);
    std::string name = known ? key.substr(kPrefix.size(), key.size() - kPrefix.size() - kA.size()) : "";
    auto found = all.find(name);
    check(found != all.end(), "LoRA: '{}' in '{}' belongs to no linear layer of {}", key, folder,
          model->config().architecture);
    nn::LinearImpl& layer = *found->second;
    auto read = [&](std::string_view end) {
      return file.tensor(std::string(kPrefix) + name + std::string(end)).to(kFloat32).to(layer.device()).clone();
    };
    Tensor a = read(kA), b = read(kB);
    check(a.dim() == 2 && b.dim() == 2 && a.size(0) == options_.rank && b.size(1) == options_.rank &&
              a.size(1) == layer.options.in_features() && b.size(0) == layer.options.out_features(),
          "LoRA: '{}' in '{}' is {} and {} for a weight of [{}, {}] and the rank {}", name, folder, a.sizes(), b.sizes(),
          layer.options.out_features(), layer.options.in_features(), options_.rank);
    add(name, layer, a, b);
    ends.insert(name.substr(name.rfind('.') + 1));
  }
  options_.targets.assign(ends.begin(), ends.end());
}

NamedTensors Lora::parameters() const {
  NamedTensors out;
  for (auto& layer : layers_) {
    out.emplace_back(layer.name + std::string(kA), layer.a);
    out.emplace_back(layer.name + std::string(kB), layer.b);
  }
  return out;
}

void Lora::save(const std::string& folder, const std::string& base, std::optional<DType> dtype) const {
  NamedTensors tensors;
  std::set<std::string> targets;
  for (auto& [name, tensor] : parameters()) {
    Tensor stored = tensor.detach().cpu();
    tensors.emplace_back(std::string(kPrefix) + name, dtype ? stored.to(*dtype) : stored);
  }
  for (auto& layer : layers_) targets.insert(layer.name.substr(layer.name.rfind('.') + 1));
  bool transposed = !family_of(ConfigFile::parse(model_->origin(), "config.json")).transposed.empty();
  nlohmann::json config = {
      {"peft_type", "LORA"},
      {"task_type", dynamic_cast<CausalLM*>(model_.get()) ? "CAUSAL_LM" : "FEATURE_EXTRACTION"},
      {"base_model_name_or_path", base},
      {"r", options_.rank},
      {"lora_alpha", scale_ * double(options_.rank)},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"target_modules", options_.targets.empty() ? std::vector(targets.begin(), targets.end()) : options_.targets},
      {"fan_in_fan_out", transposed},
      {"inference_mode", true}};
  PendingFile file("LoRA", (fs::path(folder) / kConfig).string());
  file.write(config.dump(2) + "\n");
  file.commit();
  save_safetensors((fs::path(folder) / kWeights).string(), tensors, {{"format", "pt"}});
}

Lora::Merged::Merged(const Lora& lora) {
  NoGradGuard no_grad;
  for (auto& layer : lora.layers_)
    if (!layer.layer->quantized) before_.emplace_back(layer.layer->weight, layer.layer->weight.clone());
  lora.merge();
}

Lora::Merged::~Merged() {
  NoGradGuard no_grad;
  for (auto& [weight, value] : before_) weight.copy_(value);
}

}  // namespace sinter::models
