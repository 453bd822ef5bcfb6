#include "sinter/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sinter/base/error.h"

namespace sinter {

int FileHandle::close() { return fd_ >= 0 ? ::close(std::exchange(fd_, -1)) : 0; }

MappedFile::MappedFile(const char* format, const std::string& path, uint64_t offset, std::optional<uint64_t> size) {
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  check(file.get() >= 0, "{}: cannot open '{}': {}", format, path, std::strerror(errno));
  struct stat status {};
  check(fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode), "{}: '{}' is not a file", format, path);
  check(offset <= uint64_t(status.st_size) && size.value_or(0) <= uint64_t(status.st_size) - offset,
        "{}: '{}' is cut short", format, path);
  size_ = size ? size_t(*size) : size_t(status.st_size) - size_t(offset);
  if (size_ == 0) return;  // which the system does not map
  void* data = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), off_t(offset));
  check(data != MAP_FAILED, "{}: cannot map '{}': {}", format, path, std::strerror(errno));
  data_ = static_cast<char*>(data);
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

namespace {

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return format("{}.{}-{}.tmp", path, int64_t(getpid()), counter++);
}

}  // namespace

PendingFile::PendingFile(const char* format, const std::string& path)
    : format_(format),
      path_(path),
      temporary_(temporary_name(path)),
      file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  check(file_.get() >= 0, "{}: cannot write '{}': {}", format, temporary_, std::strerror(errno));
}

PendingFile::~PendingFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void PendingFile::write(const void* data, size_t bytes) {
  auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t written = ::write(file_.get(), from, std::min<size_t>(bytes, size_t(1) << 30));
    if (written < 0 && errno == EINTR) continue;
    check(written > 0, "{}: cannot write '{}': {}", format_, temporary_, std::strerror(errno));
    from += written;
    bytes -= size_t(written);
  }
}

void PendingFile::commit() {
  check(fsync(file_.get()) == 0 && file_.close() == 0 && std::rename(temporary_.c_str(), path_.c_str()) == 0,
        "{}: cannot finish '{}': {}", format_, path_, std::strerror(errno));
  committed_ = true;
}

}  // namespace sinter
