#pragma once
// The directory of a ZIP archive in memory, ZIP64 too, and its entries as they lie there. data/zip.h unpacks what is compressed
// and writes archives.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

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
  // An entry's bytes in the archive, compressed or not.
  std::string_view stored(const ZipEntry& entry) const;
  // The contents of an entry that is not compressed, where they lie; an Error when it is.
  std::string_view contents(const ZipEntry& entry) const;
  // An Error unless the contents agree with the entry's checksum.
  void verify(const ZipEntry& entry, std::string_view contents) const;
  [[noreturn]] void damaged(const char* what) const;

 private:
  template <class T>
  T number(uint64_t at) const;
  std::string_view piece(uint64_t at, uint64_t size) const;
  uint64_t find_end() const;
  ZipEntry read_entry(uint64_t& at) const;
  void read_large_sizes(ZipEntry& entry, std::string_view extra) const;

  std::string_view bytes_;
  std::string name_;
  const char* format_;
  std::vector<ZipEntry> entries_;
};

// The CRC-32 that archives have of their entries.
uint32_t zip_checksum(std::string_view bytes);

namespace zip {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50, kLargeEnd = 0x06064b50,
                   kLargeEndLocator = 0x07064b50;
constexpr uint64_t kLocalHeaderSize = 30, kDirectoryEntrySize = 46, kEndSize = 22, kLargeEndSize = 56,
                   kLocatorSize = 20;
constexpr uint32_t kElsewhere = 0xffffffff;  // of a size: the extra field of ZIP64 has it
constexpr uint16_t kEncrypted = 1, kUtf8 = 1 << 11, kStored = 0, kDeflated = 8, kVersion = 20, kLargeSizes = 1;

}  // namespace zip

}  // namespace sinter
