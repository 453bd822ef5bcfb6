#pragma once
// Text generation with a causal model, or with an encoder-decoder that has read something (source_reader.h).
//
//   auto model = models::causal_lm(models::from_pretrained("path/to/checkpoint"));
//   TextGenerator generator(model, {.mode = Mode::kReduceOverhead});
//   auto result = generator.generate(tokenizer.encode("Call me Ishmael."), {.max_new_tokens = 64});
//
// Keys and values live in a cache of fixed length. A prompt is padded to the next bucket and goes through one program;
// then every token goes through another. A program is compiled once for each bucket, batch and set of sampling filters
// (and, in a batch, once for rows of one length and once for others): nothing is compiled while tokens come. A device that
// works while the host goes on is given the next step before the host has read the last one's tokens.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/capture/compiler.h"
#include "sinter/capture/options.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/models/models.h"

namespace sinter SINTER_API {

class Decoder;

// How one sequence is continued. Filters apply in this order, as in Hugging Face's generate.
struct SamplingOptions {
  double repetition_penalty = 1;  // of the logits of tokens that have occurred, the prompt included
  double temperature = 0;         // 0: always the likeliest token
  int64_t top_k = 0;              // of the likeliest so many; 0: of all
  double top_p = 1;               // of the likeliest that together have this probability
  double min_p = 0;               // of those with at least this fraction of the likeliest one's probability
  uint64_t seed = 0;
  std::vector<int64_t> suppress_ids = {};        // tokens that never come
  std::vector<int64_t> suppress_first_ids = {};  // and those that do not come first

  bool samples() const { return temperature > 0; }
  // An Error names the option that is out of range.
  void check() const;
};

struct GeneratorOptions {
  Mode mode = Mode::kDefault;
  bool eager = false;                 // call the model as it is
  int64_t cache_length = 0;           // positions a sequence may have; 0: what the model allows, at most 2048
  std::vector<int64_t> buckets = {};  // lengths that prompts are padded to; empty: 32, 64, 128 … and the cache's
  OptionMap options = {};             // for compile()
  std::optional<DType> cache_dtype = {};  // of keys and values; kInt8: codes, with a scale a row. None: that of the parameters
};

struct GenerateOptions {
  int64_t max_new_tokens = 128;
  SamplingOptions sampling = {};
  // A sequence ends with one of these tokens; it is the last one of the ids, and no part of the text.
  std::vector<int64_t> stop_ids = {};
  // A sequence ends with the token that completes one of these; the text ends before it, the ids with that token. Special
  // tokens are no part of the text that is searched.
  std::vector<std::string> stop_strings = {};
  // What an encoder-decoder has read, a row for each prompt. The prompts are then what its text begins with.
  models::Source source = {};
  const Tokenizer* tokenizer = nullptr;  // makes the text; stop strings and on_text need it
  // Called for each new token of each row as soon as it is known; false ends the row.
  std::function<bool(int64_t row, int64_t id)> on_token = {};
  // Called with each piece of text as soon as it is certain: whole characters, and never a part of a stop string. The
  // pieces of a row, joined, are its text.
  std::function<void(int64_t row, const std::string& text)> on_text = {};
};

// What generate() will be asked for.
struct GeneratorWarmup {
  std::vector<int64_t> batch = {1};
  std::vector<int64_t> lengths = {};  // of prompts; empty: all buckets
  SamplingOptions sampling = {};      // which filters are on; their numbers do not matter, top_k does
  models::Source source = {};         // of an encoder-decoder, for all batches: its sizes matter
};

enum class Finish : uint8_t { kLength, kStopToken, kStopString, kCacheFull, kCaller };
std::string to_string(Finish finish);

struct Generation {
  std::vector<int64_t> ids;  // the new ones
  std::string text = {};     // theirs; empty without a tokenizer
  Finish finish = Finish::kLength;
};

// What the last generate() cost.
struct GenerateTimes {
  double prefill_s = 0;         // the prompts, to the first token
  std::vector<double> steps_s;  // each token after the first
  int64_t compiled = 0;         // programs made during the call
  // How much of these went into capturing, compiling, choosing and loading kernels.
  double prefill_compile_s = 0;
  std::vector<double> steps_compile_s;

  double compile_s() const;
  // Tokens of one row a second: of the steps that compiled nothing or, where there is none, of the whole call less
  // what compiling took. 0 where no token was made.
  double tokens_per_s() const;
};

class TextGenerator {
 public:
  explicit TextGenerator(std::shared_ptr<models::TextDecoder> model, GeneratorOptions options = {});
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
  const std::shared_ptr<models::TextDecoder>& model() const;
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
