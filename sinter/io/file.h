#pragma once
// Files as readers and writers of formats need them: mapped into memory, and written so that they appear whole or not
// at all. What goes wrong is an Error that opens with the name of the format and names the file.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sinter {

// A file descriptor that closes itself.
class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(const FileHandle&) = delete;
  ~FileHandle() { close(); }
  int get() const { return fd_; }
  // What the system's close() gives.
  int close();

 private:
  int fd_;
};

// The bytes of a regular file. The file must not be truncated while they are in use; replacing it by a rename is fine.
class MappedFile {
 public:
  // From `offset` on, a multiple of 4096, to the end where `size` is not given.
  MappedFile(const char* format, const std::string& path, uint64_t offset = 0, std::optional<uint64_t> size = {});
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();

  // Writable, for in-place ops on tensors over it: a page that is written to becomes private to this process.
  char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// A new file beside its final place; gone again unless `commit` was reached.
class PendingFile {
 public:
  PendingFile(const char* format, const std::string& path);
  PendingFile(const PendingFile&) = delete;
  ~PendingFile();

  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void commit();

 private:
  const char* format_;
  std::string path_, temporary_;
  FileHandle file_;
  bool committed_ = false;
};

}  // namespace sinter
