#include "sinter/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "sinter/base/error.h"

namespace sinter::data {

namespace fs = std::filesystem;

namespace {

bool is_picture(const fs::path& path) {
  std::string end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

// Its pictures, also those in folders inside of it.
std::vector<std::string> pictures_in(const fs::path& folder) {
  std::vector<std::string> paths;
  for (auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && is_picture(entry.path())) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

struct ImageFolder::Files {
  std::vector<std::string> classes, paths;
  std::vector<int64_t> labels;
};

ImageFolder::ImageFolder(const std::string& root, ImageMode mode) : mode_(mode) {
  auto files = std::make_shared<Files>();
  try {
    check(fs::is_directory(root), "ImageFolder: '{}' is not a folder", root);
    for (auto& entry : fs::directory_iterator(root))
      if (entry.is_directory()) files->classes.push_back(entry.path().filename().string());
    check(!files->classes.empty(), "ImageFolder: '{}' has no folders; there is one for each class", root);
    std::sort(files->classes.begin(), files->classes.end());
    for (size_t label = 0; label < files->classes.size(); ++label) {
      const auto paths = pictures_in(fs::path(root) / files->classes[label]);
      check(!paths.empty(), "ImageFolder: no .png, .jpg or .jpeg in the class '{}' of '{}'", files->classes[label],
            root);
      files->paths.insert(files->paths.end(), paths.begin(), paths.end());
      files->labels.resize(files->paths.size(), int64_t(label));
    }
  } catch (const fs::filesystem_error& error) {
    throw_error(format("ImageFolder: cannot read '{}': {}", root, error.what()));
  }
  files_ = std::move(files);
}

int64_t ImageFolder::size() const { return int64_t(files_->paths.size()); }

const std::vector<std::string>& ImageFolder::classes() const { return files_->classes; }

const std::string& ImageFolder::path(int64_t index) const {
  check(index >= 0 && index < size(), "ImageFolder: no picture {} in {}", index, size());
  return files_->paths[size_t(index)];
}

Example<> ImageFolder::get(int64_t index) const {
  return {read_image(path(index), mode_), tensor(files_->labels[size_t(index)])};
}

}  // namespace sinter::data
