// Models as folders that from_pretrained, and transformers, read again.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/models/families.h"
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

}  // namespace

std::string checkpoint_name(const Model& model, const std::string& name) {
  return checkpoint_name(family_of(config_of(model)), name);
}

NamedTensors checkpoint_state(const Model& model, std::optional<DType> dtype) {
  ConfigFile file = config_of(model);
  const Family& family = family_of(file);
  check(dynamic_cast<const TextEncoder*>(&model) == nullptr,
        "models: {} lacks the heads of its checkpoint and cannot be saved as one", model.config().architecture);
  check(!is_quantized(model), "models: {} is quantised, and its codes are no checkpoint: save it before, or export a package",
        model.config().architecture);
  NoGradGuard no_grad;
  NamedTensors out;
  NamedTensors state;
  for (auto& [ours, tensor] : model.state_dict())
    if (has_expert_rows(ours))
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

void save_pretrained(const Model& model, const std::string& folder, std::optional<DType> dtype) {
  auto config = nlohmann::json::parse(config_of(model).dump());
  NamedTensors state = checkpoint_state(model, dtype);
  for (auto& [name, tensor] : state)
    if (tensor.is_floating_point()) {
      config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = config_type(tensor.dtype());
      break;
    }
  std::filesystem::path root(folder);
  std::filesystem::create_directories(root);
  PendingFile file("checkpoint", (root / "config.json").string());
  file.write(config.dump(2) + "\n");
  file.commit();
  save_safetensors((root / "model.safetensors").string(), state, {{"format", "pt"}});
}

}  // namespace sinter::models
