#pragma once
// What the commands about models share: which model, where and how it runs, and how text is generated with it.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/generate/source_reader.h"
#include "sinter/generate/text_generator.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/models/models.h"
#include "sinter/package/package.h"

namespace CLI {
class App;
}

namespace sinter::cli {

// The modes that --mode takes: "eager" and those of compile().
std::vector<std::string> mode_names();

struct ModelOptions {
  std::string model;  // a folder, a hub id or a package; empty: the bundled model
  std::string device = "cpu";
  std::string dtype;  // empty: the checkpoint's
  std::string quantize;  // empty: weights stay
  std::string mode = "default";
  std::string adapter;  // a folder, of those commands that add --adapter; empty: none
  int threads = 0;      // 0: as the library chooses

  // Adds --model, --device, --dtype, --mode and --threads.
  void add_to(CLI::App& command);
  std::string folder() const;
  // Whether --model is a package; an Error where options were given that the package decides.
  bool is_package() const;
  void set_threads() const;
  bool eager() const { return mode == "eager"; }
  Mode compile_mode() const { return eager() ? Mode::kDefault : parse_mode(mode); }
  // Also sets the number of threads. On a terminal a bar shows how far the weights are.
  std::shared_ptr<models::Model> load() const;
};

// --cache-dtype, and what it says.
void add_cache_dtype(CLI::App& command, std::string& dtype);
std::optional<DType> parse_cache_dtype(const std::string& dtype);

struct TextOptions : ModelOptions {
  std::optional<int64_t> max_new_tokens, top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  uint64_t seed = 0;
  std::vector<std::string> stops;
  bool ignore_eos = false, warmup = false;
  int64_t cache_length = 0;
  std::string cache_dtype;  // empty: that of the weights

  // Adds those of ModelOptions and the ones above.
  void add_to(CLI::App& command);
  // What was asked for; where nothing was, what generation_config.json says.
  GenerateOptions generate_options(const GenerationConfig& config) const;
};

// A model that is ready to generate.
struct TextModel {
  explicit TextModel(const TextOptions& options);
  TextModel(const TextModel&) = delete;  // its options point to its tokenizer

  // The tokenizer; an Error where the checkpoint has none.
  const Tokenizer& text_tokenizer() const;
  // What the new text begins with. An encoder-decoder has then read the prompt, as `options` say.
  std::vector<int64_t> begin(const std::vector<int64_t>& prompt);

  std::string folder;
  std::optional<Tokenizer> tokenizer;  // none: the checkpoint has no tokenizer.json
  std::optional<Package> package;      // where the model is one
  std::shared_ptr<TextGenerator> generator;
  std::optional<SourceReader> reader;  // of an encoder-decoder
  std::vector<int64_t> first_ids;      // and what its texts begin with
  GenerateOptions options;
};

// "64 tokens, 812.3 tokens/s, first token after 0.412 s, compiled for 0.380 s".
std::string speed_line(int64_t tokens, const GenerateTimes& times);

}  // namespace sinter::cli
