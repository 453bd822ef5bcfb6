#include "sinter/io/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sinter/base/error.h"
#include "sinter/io/gguf/gguf.h"

namespace sinter {

namespace fs = std::filesystem;

namespace {

constexpr uintmax_t kMaxFile = uintmax_t(1) << 30;
constexpr const char* kTemplates = "additional_chat_templates";

}  // namespace

CheckpointFiles::CheckpointFiles(std::string folder) : name_(std::move(folder)) {
  if (GgufFile::is_gguf(name_)) gguf_ = std::make_shared<const GgufFile>(name_);
}

std::optional<std::string> CheckpointFiles::read(const std::string& file) const {
  if (gguf_) return gguf_text(*gguf_, file);
  if (in_memory_) {
    auto found = files_.find(file);
    return found == files_.end() ? std::nullopt : std::optional(found->second);
  }
  fs::path path = fs::path(name_) / file;
  if (!fs::exists(path)) return std::nullopt;
  check(fs::is_regular_file(path), "'{}' is not a file", path.string());
  check(fs::file_size(path) <= kMaxFile, "'{}' has {} bytes, more than {}", path.string(), fs::file_size(path), kMaxFile);
  std::ifstream in(path, std::ios::binary);
  std::string text(fs::file_size(path), '\0');
  in.read(text.data(), std::streamsize(text.size()));
  check(bool(in), "cannot read '{}'", path.string());
  return text;
}

std::vector<std::string> CheckpointFiles::list(const std::string& folder) const {
  std::vector<std::string> out;
  if (in_memory_) {
    for (auto& [name, text] : files_)
      if (name.starts_with(folder + "/")) out.push_back(name);
  } else if (fs::is_directory(fs::path(name_) / folder)) {
    for (auto& entry : fs::directory_iterator(fs::path(name_) / folder))
      out.push_back(folder + "/" + entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

CheckpointFiles CheckpointFiles::in_memory() const {
  std::map<std::string, std::string> files;
  std::vector<std::string> names = {"config.json",         "generation_config.json",  "tokenizer.json",
                                    "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
                                    "preprocessor_config.json"};
  for (auto& name : list(kTemplates)) names.push_back(name);
  for (auto& name : names)
    if (auto text = read(name)) files[name] = std::move(*text);
  return {std::move(files), name_};
}

}  // namespace sinter
