#include "sinter/train/start.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/data/image_folder.h"
#include "sinter/io/checkpoint.h"
#include "sinter/models/families.h"
#include "sinter/nn/init.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter::train {

namespace fs = std::filesystem;

namespace {

// As transformers draws them: matrices from a normal distribution, convolutions by He, biases 0, norms 1.
void initialise(models::Model& model, const ConfigFile& config) {
  NoGradGuard no_grad;
  const double deviation = config.number("initializer_range", 0.02);
  for (auto& [name, tensor] : model.named_parameters()) {
    if (tensor.dim() == 4 && config.text("model_type", "") == "resnet")
      nn::init::kaiming_normal_(tensor, 0, nn::init::FanMode::kFanOut, nn::init::Nonlinearity::kReLU);
    else if (tensor.dim() >= 2)
      nn::init::normal_(tensor, 0, deviation);
    // Vectors are as from_config left them.
  }
}

struct ConfigSource {
  ConfigFile file;
  std::string folder;  // of the files beside it; empty: none
};

ConfigSource find_config(const std::string& name) {
  auto names = models::config_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return {ConfigFile::parse(models::config_text(name), name), ""};
  fs::path path = fs::is_directory(name) ? fs::path(name) / "config.json" : fs::path(name);
  std::string known;
  for (auto& one : names) known += (known.empty() ? "" : ", ") + one;
  check(fs::exists(path), "train: there is no config.json at '{}', and it is none of {}", name, known);
  fs::path folder = path.parent_path();
  return {ConfigFile::read(path.string()), folder.empty() ? "." : folder.string()};
}

// The type that config.json names, in the newer or the older way.
DType type_in(const ConfigFile& config) {
  std::string name = config.text("dtype", config.text("torch_dtype", "float32"));
  return name == "bfloat16" ? kBFloat16 : name == "float16" ? kFloat16 : kFloat32;
}

// The model with an output for each of these classes: itself where they are its own, else one with another head and the
// same weights elsewhere.
std::shared_ptr<models::Model> with_classes(const std::shared_ptr<models::Model>& model,
                                            const std::vector<std::string>& classes, const TrainOptions& o) {
  auto config = nlohmann::json::parse(model->origin());
  nlohmann::json names = nlohmann::json::object(), numbers = nlohmann::json::object();
  for (size_t i = 0; i < classes.size(); ++i) names[std::to_string(i)] = classes[i], numbers[classes[i]] = i;
  if (config.value("id2label", nlohmann::json()) == names) return model;
  check(!o.trains_adapter(),
        "train: the classes of '{}' are not the model's, and an adapter leaves its head as it is; train without "
        "--lora-rank",
        o.data);
  config["id2label"] = names;
  config["label2id"] = numbers;
  config.erase("num_labels");
  ConfigFile file = ConfigFile::parse(config.dump(), "config.json");
  auto out = models::from_config(file, {.dtype = kFloat32, .device = parse_device(o.device)});
  initialise(*out, file);
  NoGradGuard no_grad;
  std::map<std::string, Tensor> before;
  for (auto& [name, tensor] : model->state_dict()) before.emplace(name, tensor);
  for (auto& [name, tensor] : out->state_dict())
    if (!models::is_head(models::checkpoint_name(*out, name))) tensor.copy_(before.at(name));
  return out;
}

std::unique_ptr<models::Lora> make_adapter(const std::shared_ptr<models::Model>& model, const TrainOptions& o) {
  models::LoraOptions options{.rank = o.lora_rank, .alpha = o.lora_alpha};
  std::istringstream list(o.lora_targets);
  for (std::string target; std::getline(list, target, ',');)
    if (!target.empty()) options.targets.push_back(target);
  auto adapter = o.adapter.empty() ? std::make_unique<models::Lora>(model, options)
                                   : std::make_unique<models::Lora>(model, o.adapter);
  adapter->attach();
  return adapter;
}

}  // namespace

Start make_start(const TrainOptions& o, const std::string& checkpoint) {
  models::FromOptions from{.dtype = kFloat32, .device = parse_device(o.device)};
  const bool goes_on = !checkpoint.empty() && !o.trains_adapter();
  std::string folder = goes_on ? checkpoint : o.model.empty() ? "" : find_checkpoint(o.model);
  Start start;
  if (!folder.empty()) {
    start.model = models::from_pretrained(folder, from);
  } else {
    auto [file, beside] = find_config(o.config);
    folder = beside;
    start.model = models::from_config(file, from);
    initialise(*start.model, file);
  }
  if (dynamic_cast<models::ImageClassifier*>(start.model.get()))
    start.model = with_classes(start.model, data::ImageFolder(o.data).classes(), o);
  std::map<std::string, std::string> files;
  if (!folder.empty()) files = CheckpointFiles(folder).in_memory().files();
  if (!o.tokenizer.empty() && !goes_on) {
    auto given = CheckpointFiles(find_checkpoint(o.tokenizer)).in_memory();
    for (auto& [name, text] : given.files())
      if (name != "generation_config.json") files[name] = text;
  }
  files.erase("config.json");
  start.files = CheckpointFiles(std::move(files), o.tokenizer.empty() ? folder : o.tokenizer);
  start.saved = o.save_dtype.empty() ? type_in(ConfigFile::parse(start.model->origin(), "config.json"))
                                     : *parse_dtype(o.save_dtype);
  start.model->requires_grad_(!o.trains_adapter());
  if (o.trains_adapter()) start.adapter = make_adapter(start.model, o);
  return start;
}

}  // namespace sinter::train
