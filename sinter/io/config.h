#pragma once
// Configuration files of Hugging Face checkpoints: config.json and generation_config.json. A wrong or missing value is
// an Error that names the file and the key. A key whose value is null counts as absent, as transformers has it.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/checkpoint_files.h"

namespace sinter {

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
  std::optional<int64_t> bos_token_id, pad_token_id, max_length, max_new_tokens, top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  bool do_sample = false;

  // generation_config.json of the folder, what it lacks from config.json there; defaults where neither exists.
  static GenerationConfig read(const CheckpointFiles& files);
  static GenerationConfig read(const std::string& folder) { return read(CheckpointFiles(folder)); }
};

}  // namespace sinter
