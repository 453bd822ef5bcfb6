#include <cstring>

#include "sinter/base/error.h"
#include "sinter/data/dataset.h"
#include "sinter/io/file.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::data::datasets {

namespace {

// A file of unsigned bytes in the IDX format: two zeros, the type 8, the number of dimensions, each size as 32 bits with the
// high byte first, and the elements.
Tensor read_idx(const std::string& path, int64_t rank) {
  MappedFile file("IDX", path);
  std::string_view bytes = file.bytes();
  auto byte = [&](size_t at) { return int64_t(uint8_t(bytes[at])); };
  const size_t header = size_t(4 + 4 * rank);
  check(bytes.size() >= header && byte(0) == 0 && byte(1) == 0 && byte(2) == 8 && byte(3) == rank,
        "MNIST: '{}' is no IDX file of bytes with {} dimensions; files that end in .gz are unpacked first", path, rank);
  IntList sizes;
  for (size_t at = 4; at < header; at += 4)
    sizes.push_back(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
  const int64_t count = checked_numel("MNIST", sizes);
  check(int64_t(bytes.size() - header) == count, "MNIST: '{}' says that it has {} elements, and has {}", path, count,
        bytes.size() - header);
  return from_bytes(bytes.data() + header, Shape(sizes), kUInt8);
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : mode_(mode) {
  const std::string start = root + (mode == Mode::kTrain ? "/train-" : "/t10k-");
  images_ = read_idx(start + "images-idx3-ubyte", 3).unsqueeze(1).to(kFloat32).div(255);
  targets_ = read_idx(start + "labels-idx1-ubyte", 1).to(kInt64);
  check(bool(images_.size(0) == targets_.size(0)), "MNIST: {} images and {} labels in '{}'", images_.size(0), targets_.size(0),
        root);
}

Example<> MNIST::get(size_t index) { return {images_[int64_t(index)], targets_[int64_t(index)]}; }
std::optional<size_t> MNIST::size() const { return size_t(int64_t(images_.size(0))); }

}  // namespace sinter::data::datasets
