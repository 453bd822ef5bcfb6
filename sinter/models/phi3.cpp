// Phi-3: Llama with one projection for query, key and value, and one for gate and up.
#include "sinter/models/families.h"
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig phi3_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.fused_projections = true;
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  return c;
}

Family phi3_family() {
  return {.model_type = "phi3",
          .architectures = {"Phi3ForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(phi3_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

}  // namespace sinter::models
