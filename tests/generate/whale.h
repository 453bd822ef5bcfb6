#pragma once
// The bundled model in f32, its tokenizer and what transformers generates with it.
#include <map>
#include <memory>

#include "sinter/generate/text_generator.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/models.h"

namespace sinter::testing {

inline std::string whale_folder() { return SINTER_SOURCE_DIR "/assets/whale-5m"; }

inline std::shared_ptr<models::CausalLM> whale() {
  static auto model = models::causal_lm(models::from_pretrained(whale_folder(), {.dtype = kFloat32}));
  return model;
}

inline const Tokenizer& whale_tokenizer() {
  static Tokenizer tokenizer = Tokenizer::from_pretrained(whale_folder());
  return tokenizer;
}

inline std::vector<int64_t> recorded(const std::string& name) {
  static SafeTensorsFile file(SINTER_TEST_DATA "/whale-5m/golden.safetensors");
  return file.tensor(name).to_vector<int64_t>();
}

// The ways to run, without those that time candidates.
struct Way {
  const char* name;
  GeneratorOptions options;
};
inline std::vector<Way> ways() {
  return {{"eager", {.eager = true}}, {"default", {}}, {"reduce-overhead", {.mode = Mode::kReduceOverhead}}};
}

}  // namespace sinter::testing
