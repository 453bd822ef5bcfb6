#pragma once
// A Hugging Face checkpoint: a folder with config.json and its weights in one safetensors file or several.
#include <string>
#include <utility>
#include <vector>

#include "sinter/io/safetensors.h"

namespace sinter {

// The folder that a name stands for: itself where it is one, or a GGUF file, which is as good as a folder, else the newest local snapshot of the hub id "org/name" in
// the Hugging Face cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub). Nothing is ever downloaded.
std::string find_checkpoint(const std::string& folder_or_id);

// The weights of a checkpoint, one file after the other; no file is open longer than it is read from.
class CheckpointWeights {
 public:
  // model.safetensors, or the files that model.safetensors.index.json lists, all of which must lie in the folder
  // itself.
  explicit CheckpointWeights(const std::string& folder);

  const std::vector<std::string>& files() const { return files_; }
  // The names that the index places into each file; empty where there is no index.
  const std::vector<std::pair<std::string, std::string>>& index() const { return index_; }
  // Opens a file and checks that it holds what the index promises.
  SafeTensorsFile open(size_t file) const;

 private:
  std::vector<std::string> files_;
  std::vector<std::pair<std::string, std::string>> index_;  // name of the tensor, path of its file
};

}  // namespace sinter
