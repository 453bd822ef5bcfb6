#pragma once
// The small files of a checkpoint by their names ("tokenizer.json", "additional_chat_templates/tool.jinja"): in a folder, or
// in memory where they come with something else.
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sinter {

class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::string folder) : name_(std::move(folder)) {}
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
};

}  // namespace sinter
