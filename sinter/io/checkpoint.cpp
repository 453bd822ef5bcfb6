#include "sinter/io/checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sinter/base/error.h"
#include "sinter/io/config.h"
#include "sinter/io/gguf/gguf.h"

namespace sinter {

namespace fs = std::filesystem;

namespace {

// Where the hub's downloads are kept.
fs::path hub_cache() {
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? std::optional<fs::path>(value) : std::nullopt;
  };
  if (auto path = set("HF_HUB_CACHE")) return *path;
  if (auto path = set("HF_HOME")) return *path / "hub";
  if (auto path = set("XDG_CACHE_HOME")) return *path / "huggingface" / "hub";
  if (auto path = set("HOME")) return *path / ".cache" / "huggingface" / "hub";
  return {};
}

bool is_hub_id(const std::string& name) {
  if (std::count(name.begin(), name.end(), '/') > 1 || name.find("..") != std::string::npos) return false;
  return !name.empty() && name.front() != '/' && name.back() != '/' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; });
}

}  // namespace

std::string find_checkpoint(const std::string& name) {
  if (fs::is_directory(name) || GgufFile::is_gguf(name)) return name;
  check(!fs::exists(name), "checkpoint: '{}' is a file, and no GGUF file; give the folder that holds config.json", name);
  check(is_hub_id(name), "checkpoint: there is no folder '{}'", name);
  std::string entry = "models--" + name;
  if (auto slash = entry.find('/'); slash != std::string::npos) entry.replace(slash, 1, "--");
  fs::path cached = hub_cache() / entry;
  check(
      fs::is_directory(cached / "snapshots"),
      "checkpoint: '{}' is neither a folder nor in the local Hugging Face cache ({}); nothing is downloaded: fetch it "
      "first, for example with `hf download {}`",
      name, cached.string(), name);
  if (std::ifstream ref(cached / "refs" / "main"); ref) {
    std::string revision;
    ref >> revision;
    if (!revision.empty() && revision.find('/') == std::string::npos &&
        fs::is_directory(cached / "snapshots" / revision))
      return (cached / "snapshots" / revision).string();
  }
  std::optional<fs::path> newest;
  for (auto& snapshot : fs::directory_iterator(cached / "snapshots"))
    if (snapshot.is_directory() && (!newest || fs::last_write_time(snapshot) > fs::last_write_time(*newest)))
      newest = snapshot.path();
  check(newest.has_value(), "checkpoint: '{}' has no snapshot", cached.string());
  return newest->string();
}

CheckpointWeights::CheckpointWeights(const std::string& folder) {
  fs::path index = fs::path(folder) / "model.safetensors.index.json", single = fs::path(folder) / "model.safetensors";
  if (!fs::exists(index)) {
    check(fs::exists(single), "checkpoint: '{}' holds neither model.safetensors nor model.safetensors.index.json",
          folder);
    files_ = {single.string()};
    return;
  }
  auto map = ConfigFile::read(index.string()).object("weight_map");
  check(map.has_value(), "checkpoint: '{}' has no weight_map", index.string());
  for (auto& name : map->keys()) {
    std::string file = map->text(name);
    check(!file.empty() && file.find('/') == std::string::npos && file != "." && file != "..",
          "checkpoint: '{}' puts '{}' into '{}', which is no file of the folder", index.string(), name, file);
    index_.emplace_back(name, (fs::path(folder) / file).string());
    if (std::find(files_.begin(), files_.end(), index_.back().second) == files_.end())
      files_.push_back(index_.back().second);
  }
  std::sort(files_.begin(), files_.end());
}

SafeTensorsFile CheckpointWeights::open(size_t file) const {
  SafeTensorsFile opened(files_.at(file));
  for (auto& [name, path] : index_)
    check(path != files_[file] || opened.contains(name), "checkpoint: the index promises '{}' in '{}', which lacks it",
          name, path);
  return opened;
}

}  // namespace sinter
