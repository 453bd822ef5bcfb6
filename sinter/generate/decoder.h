#pragma once
// The steps of a batch of sequences, without the loop over them: the programs of a model, its cache, and what goes from one
// step to the next, which stays on the model's device.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sinter/capture/compiler.h"
#include "sinter/generate/text_generator.h"
#include "sinter/generate/sampling.h"
#include "sinter/models/models.h"

namespace sinter {

// What a step takes beside the cache.
struct StepInputs {
  Tensor ids;                   // [batch, tokens]
  Tensor positions;             // [tokens], or [batch, tokens] where rows are of different lengths
  Tensor wanted;                // [batch]: the place in the row of ids whose successor is looked for
  Tensor numbers, draws, seen;  // of sample()
  Tensor barred;                // bool [vocab]: tokens that must not come; empty where all may
  SINTER_FIELDS(ids, positions, wanted, numbers, draws, seen, barred)
};

class Decoder {
 public:
  Decoder(std::shared_ptr<models::TextDecoder> model, GeneratorOptions options);
  ~Decoder();

  // An Error names the prompt that is empty, too long for the cache, or has an id that the model does not know.
  void check_prompts(const std::vector<std::vector<int64_t>>& prompts) const;
  // Begins one sequence a prompt, in place of those before. Gives the first new token of each, [batch].
  Tensor begin(const std::vector<std::vector<int64_t>>& prompts, const SamplingOptions& sampling,
               const models::Source& source);
  // One more token of each sequence. Needs nothing from the host: where the device queues work it returns at once. A sequence
  // that fills its cache goes on in its last place.
  Tensor step();

  void warmup(const GeneratorWarmup& what);

  const std::shared_ptr<models::TextDecoder>& model() const { return model_; }
  // Of the batch under way.
  Device device() const { return next_.ids.device(); }
  int64_t cache_length() const { return cache_length_; }
  const std::vector<int64_t>& buckets() const { return buckets_; }
  int64_t cache_bytes() const;
  int64_t prefill_programs() const;
  int64_t decode_programs() const;
  std::vector<Explanation> explanations() const;

 private:
  struct Programs;  // of one set of sampling filters

  int64_t bucket_of(int64_t length) const;
  Programs& programs(const SamplingShape& shape);
  models::KvCache& cache(int64_t batch);

  std::shared_ptr<models::TextDecoder> model_;
  GeneratorOptions options_;
  int64_t cache_length_;
  std::vector<int64_t> buckets_;
  std::vector<std::pair<SamplingShape, std::unique_ptr<Programs>>> programs_;
  std::map<int64_t, models::KvCache> caches_;  // by batch; the last used alone is kept

  // The batch under way.
  StepInputs next_;
  SamplingOptions sampling_;
  int64_t batch_ = 0, steps_ = 0;
};

}  // namespace sinter
