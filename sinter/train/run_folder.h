#pragma once
// The folder of a run: checkpoints in folders "step-100", each there whole or not at all, and `latest`, a link to the
// newest.
// A process that is killed at any moment leaves every finished one as it was.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "sinter/base/function_ref.h"
#include "sinter/io/file.h"

namespace sinter::train {

class RunFolder {
 public:
  // Makes the folder where it is missing, and removes what a killed process left half done. An Error where another
  // process trains there.
  explicit RunFolder(const std::string& path);

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  // The folder of a step's checkpoint.
  std::string checkpoint(int64_t step) const;
  // The step of the newest checkpoint.
  std::optional<int64_t> latest() const;
  // Has `fill` write the files of a checkpoint into a folder, which then takes its place, and removes all but the
  // newest
  // `keep` (0: none). When anything fails, all is as it was.
  void write(int64_t step, int64_t keep, FunctionRef<void(const std::string& folder)> fill);

 private:
  std::filesystem::path path_;
  FileHandle lock_;
};

}  // namespace sinter::train
