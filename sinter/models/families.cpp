#include "sinter/models/families.h"

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter::models {

std::span<const Family> families() {
  static const std::vector<Family> all = {
      llama_family(),   mistral_family(),    qwen2_family(), qwen3_family(),    phi3_family(), gemma_family(),
      gemma2_family(),  gemma3_family(),     gpt2_family(),  gpt_neox_family(), opt_family(),  bert_family(),
      roberta_family(), distilbert_family(), vit_family(),   resnet_family(),
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

}  // namespace sinter::models
