#pragma once
// The families of models: how each is recognised, made from config.json, and how its checkpoint names the parameters.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/models/models.h"

namespace sinter::models {

// A piece of a checkpoint's name and what the module calls it.
struct Rename {
  const char *from, *to;
};

struct Family {
  const char* model_type;                                   // as in config.json
  std::vector<const char*> architectures;                   // as in config.json
  ModelConfig (*config)(const ConfigFile& file) = nullptr;  // of models that predict tokens: what make() goes by
  std::shared_ptr<Model> (*make)(const ConfigFile& file);
  const char* prefix = "";                // of the base model's parameters in a checkpoint with a head; may be absent
  std::vector<Rename> renames = {};       // applied in order, each where it occurs first; an empty `to` opens a name
  std::vector<const char*> ignored = {};  // names that contain one of these are no parameters of ours
  std::vector<const char*> transposed = {};  // names that end so are stored as [in, out]
};

// All of them.
std::span<const Family> families();
// The one of a config.json; an Error lists the known ones.
const Family& family_of(const ConfigFile& file);

// Matrices of experts are one tensor of the module, "experts.up_proj", and one each in the checkpoint. Whether this is such a
// tensor, and what the checkpoint would call one of its rows: "experts.3.up_proj.weight", before renames.
bool has_expert_rows(const std::string& name);
std::string name_of_row(const std::string& name, int64_t expert);

// What the module calls a tensor of the checkpoint, and back. Several names may lead to one of the module's: back is the one
// that transformers writes.
std::string module_name(const Family& family, std::string name);
std::string checkpoint_name(const Family& family, const std::string& name);
// Whether a name of a checkpoint is the head's, which lies outside of the base model and lacks its prefix.
bool is_head(std::string_view name);
// Whether the checkpoint stores the tensor of this name, which is its own, as [in, out].
bool is_transposed(const Family& family, const std::string& name);

// One a family's file.
Family llama_family();
Family mistral_family();
Family qwen2_family();
Family qwen3_family();
Family mixtral_family();
Family qwen2_moe_family();
Family qwen3_moe_family();
Family olmoe_family();
Family smollm3_family();
Family phi_family();
Family phi3_family();
Family granite_family();
Family olmo2_family();
Family stablelm_family();
Family cohere_family();
Family cohere2_family();
Family falcon_family();
Family glm_family();
Family glm4_family();
Family starcoder2_family();
Family gemma_family();
Family gemma2_family();
Family gemma3_family();
Family gpt2_family();
Family gpt_neox_family();
Family opt_family();
Family t5_family();
Family bart_family();
Family whisper_family();
Family bert_family();
Family roberta_family();
Family distilbert_family();
Family vit_family();
Family resnet_family();

}  // namespace sinter::models
