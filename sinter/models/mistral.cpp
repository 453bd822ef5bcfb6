// Mistral: Llama with a sliding window.
#include "sinter/models/families.h"
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig mistral_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  return c;
}

Family mistral_family() {
  return {.model_type = "mistral",
          .architectures = {"MistralForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(mistral_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

}  // namespace sinter::models
