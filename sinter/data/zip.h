#pragma once
// ZIP archives, as far as NumPy and PyTorch write them: entries unpacked, and archives written.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/file.h"
#include "sinter/io/zip.h"

namespace sinter::data {

// The contents of an entry, checked against their checksum.
std::string unpacked(const ZipReader& archive, const ZipEntry& entry);

class ZipWriter {
 public:
  explicit ZipWriter(PendingFile& file) : file_(file) {}
  void add(const std::string& name, std::string_view contents, bool deflated);
  // Writes the directory; the file is then complete.
  void finish();

 private:
  void write(std::string_view bytes);

  PendingFile& file_;
  uint64_t written_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace sinter::data
