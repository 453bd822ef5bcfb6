#pragma once
// ZIP archives, as far as NumPy and PyTorch write them: entries unpacked, and archives written.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/io/file.h"
#include "sinter/io/zip.h"

namespace sinter::data {

// The contents of an entry, checked against their checksum.
std::string unpacked(const ZipReader& archive, const ZipEntry& entry);

class ZipWriter {
 public:
  using Sink = std::function<void(std::string_view bytes)>;
  // Errors are those of `writer`.
  explicit ZipWriter(Sink sink, const char* writer = "save_npz") : sink_(std::move(sink)), writer_(writer) {}
  explicit ZipWriter(PendingFile& file, const char* writer = "save_npz")
      : ZipWriter([&file](std::string_view bytes) { file.write(bytes); }, writer) {}
  void add(const std::string& name, std::string_view contents, bool deflated);
  // Writes the directory; the file is then complete.
  void finish();

 private:
  void write(std::string_view bytes);

  Sink sink_;
  const char* writer_;
  uint64_t written_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace sinter::data
