#pragma once
// Pictures in folders, a folder for each class:
//
//   data::ImageFolder images("flowers");                    // flowers/rose/1.jpg, flowers/tulip/sub/2.png
//   auto [image, label] = images.get(0);                    // u8[3, height, width], i64 0
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/data/dataset.h"
#include "sinter/data/image.h"

namespace sinter SINTER_API {
namespace data {

// Copies share the list of files.
class ImageFolder : public Dataset<ImageFolder> {
 public:
  // Folders and files are sorted by name. Files that do not end in .png, .jpg or .jpeg, in small or capital letters,
  // are passed over; a class without pictures is an Error.
  explicit ImageFolder(const std::string& root, ImageMode mode = ImageMode::kRGB);

  int64_t size() const;
  // The picture, and the number of its class.
  Example<> get(int64_t index) const;
  const std::vector<std::string>& classes() const;
  const std::string& path(int64_t index) const;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;
  ImageMode mode_;
};

}  // namespace data
}  // namespace SINTER_API
