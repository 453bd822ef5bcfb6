#pragma once
// Files of Hugging Face checkpoints beside the weights: config.json, generation_config.json and others.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

class GgufFile;

// --- the small files of a checkpoint by their names ("tokenizer.json", "additional_chat_templates/tool.jinja"): in a folder, in
// memory where they come with something else, or as a GGUF file tells what they would say

class CheckpointFiles {
 public:
  // A folder or a GGUF file.
  explicit CheckpointFiles(std::string folder);
  // `name` stands for the folder in errors.
  CheckpointFiles(std::map<std::string, std::string> files, std::string name)
      : name_(std::move(name)), in_memory_(true), files_(std::move(files)) {}

  const std::string& name() const { return name_; }
  // As errors call a file.
  std::string path(const std::string& file) const { return name_ + "/" + file; }
  // Nothing when there is no such file; an Error when it cannot be read, or has more than 1 GiB.
  std::optional<std::string> read(const std::string& file) const;
  // The files directly in a folder here, sorted.
  std::vector<std::string> list(const std::string& folder) const;
  // Those that a model needs beside its weights: configurations, the tokenizer, chat templates.
  CheckpointFiles in_memory() const;
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::string name_;
  bool in_memory_ = false;
  std::map<std::string, std::string> files_;
  std::shared_ptr<const GgufFile> gguf_;  // null: there is none
};

// --- their configurations. A wrong or missing value is an Error that names the file and the key. A key whose value is null
// counts as absent, as transformers has it

// One JSON object, read with types. Copies share it.
class ConfigFile {
 public:
  // The object in a file, of at most 64 MiB.
  static ConfigFile read(const std::string& path);
  // The same from a text; `name` stands for the file in errors.
  static ConfigFile parse(std::string_view text, const std::string& name);

  const std::string& name() const { return name_; }
  bool contains(std::string_view key) const;
  std::vector<std::string> keys() const;
  // The object as JSON, its keys in order.
  std::string dump() const;

  // The value of a key that must be there; the forms with a default give it where the key is absent.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise) const { return contains(key) ? integer(key) : otherwise; }
  double number(std::string_view key, double otherwise) const { return contains(key) ? number(key) : otherwise; }
  bool boolean(std::string_view key, bool otherwise) const { return contains(key) ? boolean(key) : otherwise; }
  std::string text(std::string_view key, const std::string& otherwise) const {
    return contains(key) ? text(key) : otherwise;
  }
  // Lists; a single value is a list of one, an absent key an empty list.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  // An object inside this one; none where the key is absent.
  std::optional<ConfigFile> object(std::string_view key) const;
  // A positive size, such as a number of layers.
  int64_t size(std::string_view key) const;
  int64_t size(std::string_view key, int64_t otherwise) const { return contains(key) ? size(key) : otherwise; }

 private:
  struct Value;

  std::string name_;
  std::shared_ptr<const Value> root_;
};

// How a checkpoint wants to be sampled from; what the file leaves out is absent.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> decoder_start_token_id, forced_bos_token_id;  // of an encoder-decoder's text
  std::vector<int64_t> suppress_tokens, begin_suppress_tokens;
  std::optional<int64_t> bos_token_id, pad_token_id, max_length, max_new_tokens, top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  bool do_sample = false;

  // generation_config.json of the folder, what it lacks from config.json there; defaults where neither exists.
  static GenerationConfig read(const CheckpointFiles& files);
  static GenerationConfig read(const std::string& folder) { return read(CheckpointFiles(folder)); }
};

}  // namespace sinter
