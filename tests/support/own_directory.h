#pragma once
// A directory of a test's own, gone with everything in it when the test is over.
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace sinter {

class OwnDirectory {
 public:
  OwnDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinter_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data()) ? pattern : throw std::filesystem::filesystem_error(pattern, std::error_code());
  }
  ~OwnDirectory() { std::filesystem::remove_all(path_); }
  OwnDirectory(const OwnDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace sinter
