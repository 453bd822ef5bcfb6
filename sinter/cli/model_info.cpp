// `sinter info DIR`: a checkpoint from its configuration and the headers of its files.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/commands.h"
#include "sinter/engine/report.h"
#include "sinter/io/checkpoint.h"
#include "sinter/io/config.h"
#include "sinter/io/gguf/gguf.h"
#include "sinter/models/families.h"

namespace sinter::cli {

namespace {

struct CheckpointInfo {
  std::string folder, architecture, model_type;
  size_t files = 0, tensors = 0;
  int64_t parameters = 0;
  std::map<std::string, int64_t> stored;  // bytes by element type, as the files have it
  // Of the key-value cache; 0 for models that have none.
  int64_t cache_numbers = 0;  // a token
  int64_t max_positions = 0;
};

void add_tensor(CheckpointInfo& info, const std::string& type, uint64_t bytes, const Shape& shape, bool counts) {
  info.stored[type] += int64_t(bytes);
  ++info.tensors;
  int64_t count = 1;
  for (auto& size : shape) count *= int64_t(size);
  if (counts) info.parameters += count;
}

CheckpointInfo read_checkpoint(const std::string& folder) {
  const CheckpointFiles small(folder);
  const auto text = small.read("config.json");
  check(text.has_value(), "info: '{}' has no config.json", folder);
  ConfigFile file = ConfigFile::parse(*text, small.path("config.json"));
  const models::Family& family = models::family_of(file);
  CheckpointInfo info;
  info.folder = folder;
  auto names = models::ModelConfig::named(file);
  info.architecture = names.architecture;
  info.model_type = family.model_type;
  models::ModelConfig config;
  if (family.config) config = family.config(file);
  info.cache_numbers = 2 * config.layers * config.kv_heads * config.head_dim;
  info.max_positions = config.max_positions;
  if (GgufFile::is_gguf(folder)) {
    info.files = 1;
    for (const GgufFile weights(folder); auto& tensor : weights.tensors())
      add_tensor(info, tensor.type.name, tensor.size, tensor.shape, tensor.name.find("rope_") != 0);
    return info;
  }
  CheckpointWeights weights(folder);
  info.files = weights.files().size();
  for (size_t i = 0; i < info.files; ++i) {
    SafeTensorsFile part = weights.open(i);
    for (auto& name : part.names()) {
      auto& tensor = part.info(name);
      bool ignored = std::any_of(family.ignored.begin(), family.ignored.end(),
                                 [&](const char* part) { return name.find(part) != std::string::npos; });
      add_tensor(info, tensor.dtype_text, tensor.end - tensor.begin, tensor.shape,
                 !ignored && !(config.tie_embeddings && models::is_head(name)));
    }
  }
  return info;
}

// The lengths a user may think of, up to what the model allows.
std::vector<int64_t> cache_lengths(const CheckpointInfo& info) {
  std::vector<int64_t> lengths;
  for (int64_t length : {512, 2048, 8192, 32768})
    if (length < info.max_positions) lengths.push_back(length);
  if (info.max_positions > 0) lengths.push_back(info.max_positions);
  return lengths;
}

constexpr DType kTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};

void print_json(const CheckpointInfo& info) {
  nlohmann::json memory = nlohmann::json::object();
  for (DType type : kTypes) {
    nlohmann::json caches = nlohmann::json::object();
    for (int64_t length : cache_lengths(info))
      caches[std::to_string(length)] = info.cache_numbers * length * item_size(type);
    memory[to_string(type)] = {{"weights_bytes", info.parameters * item_size(type)}, {"cache_bytes", caches}};
  }
  nlohmann::json report = {{"folder", info.folder},         {"architecture", info.architecture},
                           {"model_type", info.model_type}, {"parameters", info.parameters},
                           {"files", info.files},           {"tensors", info.tensors},
                           {"stored_bytes", info.stored},   {"memory", memory}};
  if (info.max_positions) report["max_positions"] = info.max_positions;
  std::cout << report.dump(2) << "\n";
}

}  // namespace

void print_model_info(const std::string& folder_or_id, bool json) {
  CheckpointInfo info = read_checkpoint(find_checkpoint(folder_or_id));
  if (json) return print_json(info);
  std::string stored;
  for (auto& [type, bytes] : info.stored)
    stored += (stored.empty() ? "" : ", ") + format("{} of {}", bytes_text(double(bytes)), type);
  std::cout << format("architecture   {} (family {})\nparameters     {}\nstored         {} tensors in {} files: {}\n",
                      info.architecture, info.model_type, info.parameters, info.tensors, info.files, stored);
  if (info.max_positions) std::cout << format("positions      {}\n", info.max_positions);
  std::vector<std::string> columns = {"dtype", "weights"};
  for (int64_t length : cache_lengths(info)) columns.push_back(format("+ cache of {}", length));
  Table table(columns);
  for (DType type : kTypes) {
    std::vector<std::string> cells = {to_string(type), bytes_text(double(info.parameters * item_size(type)))};
    for (int64_t length : cache_lengths(info))
      cells.push_back(bytes_text(double((info.parameters + info.cache_numbers * length) * item_size(type))));
    table.add(cells);
  }
  std::cout << "\nmemory for one sequence, the weights included:\n" << table.text();
}

}  // namespace sinter::cli
