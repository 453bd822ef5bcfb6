#include "sinter/runtime/code_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sinter/base/format.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"

namespace sinter::runtime {

namespace {

// A file is this header, then the key, then the bytes.
struct Header {
  char magic[8] = {'S', 'I', 'N', 'T', 'E', 'R', 'C', '1'};
  uint64_t key_size = 0, bytes_size = 0;
  uint64_t checksum = 0;  // of key and bytes
};

bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
    if (slash == std::string::npos) return true;
  }
}

bool read_all(int fd, void* data, size_t size) {
  for (char* out = static_cast<char*>(data); size > 0;) {
    ssize_t n = read(fd, out, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n, size -= size_t(n);
  }
  return true;
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(size_t(n));
  }
  return true;
}

struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

CodeStore::CodeStore(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  struct stat info;
  const char* problem = nullptr;
  if (!make_directories(directory_) || stat(directory_.c_str(), &info) != 0)
    problem = "it cannot be created";
  else if (!S_ISDIR(info.st_mode))
    problem = "it is not a directory";
  else if (info.st_uid != geteuid())
    problem = "it belongs to another user";
  else if (info.st_mode & S_IWOTH)
    problem = "everyone may write to it";
  if (!problem) return;
  warn("the cache directory {} is not used: {}", directory_, problem);
  directory_.clear();
}

std::string CodeStore::default_directory() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (auto path = variable("SINTER_CACHE_DIR"); !path.empty()) return path;
  if (auto path = variable("XDG_CACHE_HOME"); !path.empty()) return path + "/sinter";
  if (auto path = variable("HOME"); !path.empty()) return path + "/.cache/sinter";
  return {};
}

std::string CodeStore::path_of(std::string_view key) const { return directory_ + "/" + hash_hex(key) + ".code"; }

std::optional<std::string> CodeStore::load(std::string_view key) const {
  if (directory_.empty()) return std::nullopt;
  File file{open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || size_t(info.st_size) < sizeof(Header)) return std::nullopt;
  Header header;
  std::string body(size_t(info.st_size) - sizeof header, 0);
  if (!read_all(file.fd, &header, sizeof header) || !read_all(file.fd, body.data(), body.size())) return std::nullopt;
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0 || header.key_size != key.size() ||
      header.key_size > body.size() || header.bytes_size != body.size() - header.key_size ||
      header.checksum != hash_text(body) || body.compare(0, key.size(), key) != 0)
    return std::nullopt;
  body.erase(0, key.size());
  return body;
}

void CodeStore::save(std::string_view key, std::string_view bytes) const {
  if (directory_.empty()) return;
  static std::atomic<unsigned> counter = 0;
  std::string body = std::string(key) + std::string(bytes);
  Header header;
  header.key_size = key.size();
  header.bytes_size = bytes.size();
  header.checksum = hash_text(body);
  std::string path = path_of(key), temporary = format("{}.{}.{}", path, getpid(), counter++);
  bool ok;
  {
    File file{open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (file.fd < 0) return;
    ok = write_all(file.fd, {reinterpret_cast<const char*>(&header), sizeof header}) && write_all(file.fd, body);
  }
  if (!ok || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace sinter::runtime
