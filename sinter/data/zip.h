#pragma once
// ZIP archives, as far as NumPy and PyTorch write them: entries stored or deflated, ZIP64 when reading.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/file.h"

namespace sinter::data {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t checksum = 0;
  uint64_t stored_size = 0, size = 0;  // in the archive, and of the contents
  uint64_t header = 0;                 // where its own header is
};

class ZipReader {
 public:
  // An archive in memory, which must outlive this; `name` and the format stand for it in errors.
  ZipReader(std::string_view bytes, std::string name, const char* format = "npz");
  const std::vector<ZipEntry>& entries() const { return entries_; }
  // The contents of an entry, checked against their checksum.
  std::string read(const ZipEntry& entry) const;

 private:
  template <class T>
  T number(uint64_t at) const;
  std::string_view piece(uint64_t at, uint64_t size) const;
  uint64_t find_end() const;
  ZipEntry read_entry(uint64_t& at) const;
  void read_large_sizes(ZipEntry& entry, std::string_view extra) const;
  [[noreturn]] void damaged(const char* what) const;

  std::string_view bytes_;
  std::string name_;
  const char* format_;
  std::vector<ZipEntry> entries_;
};

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
