#pragma once
// Models from checkpoints and from names.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/models/model.h"

namespace sinter SINTER_API {
namespace models {

struct FromOptions {
  std::optional<DType> dtype = {};  // that of the checkpoint by default; f32 for a model made from a name
  Device device = {};
  // Bytes of parameters filled so far, and all of them.
  std::function<void(int64_t done, int64_t total)> progress = {};
};

// The model of a folder with config.json and safetensors, or of a hub id "org/name" in the local Hugging Face cache;
// nothing is downloaded. Weights are read through a mapping, converted on the way, one file after the other. An Error
// names what is missing, left over or of the wrong shape.
std::shared_ptr<Model> from_pretrained(const std::string& folder_or_id, const FromOptions& options = {});

// A model of well-known sizes with random weights, drawn from the default generator: for benchmarks. config_names()
// lists the names, "llama-1b" among them.
std::shared_ptr<Model> from_config(const std::string& name, const FromOptions& options = {});
// The same for any config.json.
std::shared_ptr<Model> from_config(const ConfigFile& file, const FromOptions& options = {});
std::vector<std::string> config_names();
// The text of a config.json with the sizes of this name.
std::string config_text(const std::string& name);

// A model with the tensors of a state dict, whose names and types are the model's own. On the CPU the model takes them as
// they are, without a copy; so a mapped file is read when it is first computed with.
std::shared_ptr<Model> from_state(const ConfigFile& file, const NamedTensors& state, Device device = {});

// --- and back: what from_pretrained and transformers load, of models that were made by one of the above and predict tokens
// or classify images

// Parameters and persistent buffers on the host, as the model's checkpoint names and stores them, those of floating-point
// types in `dtype` where one is given.
NamedTensors checkpoint_state(const Model& model, std::optional<DType> dtype = {});
// The same for the name of one, "layers.0.mlp.up_proj.weight".
std::string checkpoint_name(const Model& model, const std::string& name);
// config.json and model.safetensors, into a folder that is made where it is missing. Each appears whole or not at all.
void save_pretrained(const Model& model, const std::string& folder, std::optional<DType> dtype = {});

// The model as one that generates text; an Error where it does not.
std::shared_ptr<CausalLM> causal_lm(const std::shared_ptr<Model>& model);

}  // namespace models
}  // namespace sinter
