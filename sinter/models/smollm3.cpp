// SmolLM3: Llama whose every fourth layer knows no positions.
#include "sinter/base/error.h"
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig smollm3_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  // 1 where a layer rotates. A file may leave the list out and say how often a layer does not.
  std::vector<int64_t> rotates = file.integers("no_rope_layers");
  if (rotates.empty())
    for (int64_t layer = 1; layer <= c.layers; ++layer)
      rotates.push_back(layer % file.size("no_rope_layer_interval", 4) != 0);
  check(int64_t(rotates.size()) == c.layers, "config: '{}' has {} no_rope_layers for {} layers", file.name(),
        rotates.size(), c.layers);
  RopeConfig still = c.ropes[0];
  still.dim = 0;
  c.ropes.push_back(still);
  for (int64_t rotated : rotates) c.layer_rope.push_back(rotated ? 0 : 1);
  if (file.boolean("use_sliding_window", false) && file.contains("sliding_window") && file.contains("layer_types"))
    c.windows = windows_by_type(file, file.texts("layer_types"));
  return c;
}

Family smollm3_family() { return relative_of_llama<smollm3_config>("smollm3", "SmolLM3ForCausalLM"); }

}  // namespace sinter::models
