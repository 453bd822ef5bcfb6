#pragma once
// The container of a package: named sections in one file, each with a checksum. Weights lie at a multiple of 4096, so that
// they can be mapped.
//
// File: Header; the sections; the table, JSON, at the end. Numbers are little-endian.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

struct PackageSection {
  std::string name;
  uint64_t offset = 0, size = 0, checksum = 0;
};

// Writes a file that appears whole or not at all. Throws Error.
class PackageWriter {
 public:
  explicit PackageWriter(const std::string& path);
  ~PackageWriter();
  PackageWriter(const PackageWriter&) = delete;

  void add(const std::string& name, std::string_view bytes);
  // The bytes of a file.
  void add_file(const std::string& name, const std::string& file);
  void finish();

 private:
  void begin(const std::string& name);
  void append(std::string_view bytes);
  void write(std::string_view bytes);

  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t at_ = 0;
  std::vector<PackageSection> sections_;
};

// Reads one. Every number in it is checked before it is used; an Error names the file and says what is wrong.
class PackageFile {
 public:
  explicit PackageFile(const std::string& path);

  // Whether the file begins as packages do.
  static bool is_package(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<PackageSection>& sections() const { return sections_; }
  // Null when there is none of that name.
  const PackageSection* find(std::string_view name) const;
  // The bytes of a section that must be there, checked.
  std::string read(std::string_view name) const;
  // Reads every section again; an Error names one that is damaged.
  void verify() const;

 private:
  std::string path_;
  std::vector<PackageSection> sections_;
};

// The checksum of a whole file.
uint64_t file_checksum(const std::string& path, uint64_t offset, uint64_t size);

}  // namespace sinter
