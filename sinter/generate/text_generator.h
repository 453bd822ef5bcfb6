#pragma once
// Text generation with a causal model.
//
//   auto model = models::causal_lm(models::from_pretrained("path/to/checkpoint"));
//   TextGenerator generator(model, {.mode = Mode::kReduceOverhead});
//   auto result = generator.generate(tokenizer.encode("Call me Ishmael."), {.max_new_tokens = 64});
//
// Keys and values live in a cache of fixed length. A prompt is padded to the next bucket and goes through one program;
// then every token goes through another. A program is compiled once for each bucket, batch and set of sampling filters
// (and, in a batch, once for rows of one length and once for others): nothing is compiled while tokens come. A device that
// works while the host goes on is given the next step before the host has read the last one's tokens.
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/capture/compiler.h"
#include "sinter/generate/options.h"
#include "sinter/models/models.h"

namespace sinter SINTER_API {

class Decoder;

class TextGenerator {
 public:
  explicit TextGenerator(std::shared_ptr<models::CausalLM> model, GeneratorOptions options = {});
  ~TextGenerator();

  // Prompts of one or more tokens each; an Error names the prompt that is empty, too long for the cache, or has an id
  // that the model does not know.
  std::vector<Generation> generate(const std::vector<std::vector<int64_t>>& prompts,
                                   const GenerateOptions& options = {});
  Generation generate(const std::vector<int64_t>& prompt, const GenerateOptions& options = {});

  // Compiles the programs of such calls ahead of them, on all threads, with a progress bar on a terminal: prefill for
  // the bucket of each length, and the decode steps. Nothing is generated; times() and the cache stay as they are.
  void warmup(const GeneratorWarmup& what = {});

  const GenerateTimes& times() const { return times_; }
  const std::shared_ptr<models::CausalLM>& model() const;
  int64_t cache_length() const;
  // The lengths that prompts are padded to, the cache's among them.
  const std::vector<int64_t>& buckets() const;
  int64_t cache_bytes() const;
  // Programs made so far: prefills by bucket, and decode steps.
  int64_t prefill_programs() const;
  int64_t decode_programs() const;
  // What became of each of them that has run: prefill, decode, for each set of sampling filters.
  std::vector<Explanation> explanations() const;
  std::string explain() const;  // the same as one text

 private:
  struct Row;

  void run(std::vector<Row>& rows, const std::vector<std::vector<int64_t>>& prompts, const GenerateOptions& options);

  std::unique_ptr<Decoder> decoder_;
  GenerateTimes times_;
};

}  // namespace sinter
