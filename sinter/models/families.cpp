#include "sinter/models/families.h"

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter::models {

std::span<const Family> families() {
  static const std::vector<Family> all = {
      llama_family(), mistral_family(), qwen2_family(), qwen3_family(), smollm3_family(), mixtral_family(),
      qwen2_moe_family(), qwen3_moe_family(), olmoe_family(), phi_family(),
      phi3_family(), gemma_family(), gemma2_family(), gemma3_family(), granite_family(), olmo2_family(),
      stablelm_family(), cohere_family(), cohere2_family(), falcon_family(), glm_family(), glm4_family(),
      starcoder2_family(), gpt2_family(), gpt_neox_family(), opt_family(), t5_family(), bart_family(),
      whisper_family(), bert_family(), roberta_family(), distilbert_family(), vit_family(), resnet_family(),
  };
  return all;
}

const Family& family_of(const ConfigFile& file) {
  auto named = file.texts("architectures");
  for (auto& family : families())
    for (auto* architecture : family.architectures)
      if (std::find(named.begin(), named.end(), architecture) != named.end()) return family;
  std::string type = file.text("model_type", "");
  // A file may leave its architecture out, but one that names another model is not ours to guess.
  for (auto& family : families())
    if (named.empty() && family.model_type == type) return family;
  std::string known;
  for (auto& family : families())
    for (auto* architecture : family.architectures) known += (known.empty() ? "" : ", ") + std::string(architecture);
  throw_error(format("models: '{}' is of the unknown architecture '{}'; known are {}", file.name(),
                     named.empty() ? type : named[0], known));
}

static constexpr std::string_view kExperts = ".experts.", kWeight = ".weight";

bool has_expert_rows(const std::string& name) { return name.find(kExperts) != std::string::npos && !name.ends_with(kWeight); }

std::string name_of_row(const std::string& name, int64_t expert) {
  size_t begin = name.find(kExperts) + kExperts.size();
  return name.substr(0, begin) + std::to_string(expert) + "." + name.substr(begin) + std::string(kWeight);
}

std::string module_name(const Family& family, std::string name) {
  std::string_view prefix = family.prefix;
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  for (auto& [from, to] : family.renames)
    if (auto at = name.find(from); at != std::string::npos) name.replace(at, std::string_view(from).size(), to);
  return name;
}

std::string checkpoint_name(const Family& family, const std::string& name) {
  std::string out = name, opening = family.prefix;
  for (auto rename = family.renames.rbegin(); rename != family.renames.rend(); ++rename) {
    std::string_view to = rename->to;
    if (to.empty()) {
      opening += rename->from;
      continue;
    }
    // Whole pieces of a name: "output." is none of "attention_output.".
    auto at = out.find(to);
    while (at != std::string::npos && at > 0 && to[0] != '.' && out[at - 1] != '.') at = out.find(to, at + 1);
    if (at != std::string::npos) out.replace(at, to.size(), rename->from);
  }
  if (!is_head(out)) out = opening + out;
  SINTER_INTERNAL_ASSERT(module_name(family, out) == name, "a name that does not lead back");
  return out;
}

bool is_head(std::string_view name) {
  return name.starts_with("lm_head.") || name.starts_with("embed_out.") || name.starts_with("classifier.") ||
         name.starts_with("proj_out.") || name.starts_with("final_logits_bias");
}

bool is_transposed(const Family& family, const std::string& name) {
  return std::any_of(family.transposed.begin(), family.transposed.end(),
                     [&](const char* end) { return name.ends_with(end); });
}

}  // namespace sinter::models
