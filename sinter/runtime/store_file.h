#pragma once
// The file of a store entry, and the small file operations around it.
//
// Entry: FileHeader, then the label, the key and the bytes. Numbers are little-endian, as on all machines of Sinter.
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sinter::runtime::store_file {

// Raise it when the layout changes: files of other versions are left alone until they are the least recently used.
inline constexpr uint32_t kVersion = 2;

struct FileHeader {
  char magic[8] = {'S', 'I', 'N', 'T', 'E', 'R', 'C', 'S'};
  uint32_t version = kVersion;
  uint32_t label_size = 0;
  uint64_t key_size = 0, bytes_size = 0;
  uint64_t checksum = 0;  // of the fields above and all that follows
};

struct Contents {
  std::string label, key, bytes;
};

inline constexpr std::string_view kOtherVersion = "another version";

std::string encode(std::string_view key, std::string_view bytes, std::string_view label);
// What is wrong with the bytes of a whole file; empty, and `out` filled, when nothing is.
std::string decode(std::string_view file, Contents& out);

struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  int fd;
};

// What is wrong with an entry's owner and mode; empty when nothing is.
std::string ownership_problem(const struct stat& info);

// Opens and reads an entry. The problem is "absent" when there is none. With `contents` off, the bytes are neither read
// nor checked.
std::string read_entry(const std::string& path, Contents& out, struct stat& info, bool contents = true);
inline constexpr std::string_view kAbsent = "absent";

bool read_all(int fd, void* data, size_t size);
bool write_all(int fd, std::string_view data);
// A new file in one step; false, with nothing left behind, when that fails.
bool replace_file(const std::string& path, std::string_view data);

}  // namespace sinter::runtime::store_file
