#include "sinter/runtime/store_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "sinter/base/format.h"
#include "sinter/base/hash.h"

namespace sinter::runtime::store_file {

namespace {

constexpr int64_t kTouchAfter = 3600;  // seconds: how exactly last uses are known

uint64_t checksum_of(const FileHeader& header, std::string_view body) {
  return hash_text(body, hash_bytes(&header, offsetof(FileHeader, checksum)));
}

// What the header alone tells about a file of `size` bytes.
std::string header_problem(const FileHeader& header, uint64_t size) {
  if (std::memcmp(header.magic, FileHeader().magic, 7) != 0) return "not an entry";
  if (header.magic[7] != FileHeader().magic[7] || header.version != kVersion) return std::string(kOtherVersion);
  uint64_t rest = size - sizeof header;
  for (uint64_t part : {uint64_t(header.label_size), header.key_size, header.bytes_size}) {
    if (part > rest) return "truncated";
    rest -= part;
  }
  return rest == 0 ? "" : "too long";
}

}  // namespace

std::string encode(std::string_view key, std::string_view bytes, std::string_view label) {
  FileHeader header;
  header.label_size = uint32_t(label.size());
  header.key_size = key.size();
  header.bytes_size = bytes.size();
  std::string out(sizeof header, 0);
  out.reserve(out.size() + label.size() + key.size() + bytes.size());
  out.append(label).append(key).append(bytes);
  header.checksum = checksum_of(header, std::string_view(out).substr(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::string decode(std::string_view file, Contents& out) {
  FileHeader header;
  if (file.size() < sizeof header) return "truncated";
  std::memcpy(&header, file.data(), sizeof header);
  if (auto problem = header_problem(header, file.size()); !problem.empty()) return problem;
  std::string_view body = file.substr(sizeof header);
  if (header.checksum != checksum_of(header, body)) return "wrong checksum";
  out.label = body.substr(0, header.label_size);
  out.key = body.substr(header.label_size, header.key_size);
  out.bytes = body.substr(header.label_size + header.key_size);
  return {};
}

Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

std::string ownership_problem(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "not a plain file";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if (info.st_mode & S_IWOTH) return "everyone may write to it";
  return {};
}

std::string read_entry(const std::string& path, Contents& out, struct stat& info, bool contents) {
  // Not blocking: a pipe in the place of an entry must not hold anybody up.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd < 0) return errno == ENOENT ? std::string(kAbsent) : std::string("it cannot be opened");
  if (fstat(file.fd, &info) != 0) return "it cannot be opened";
  if (auto problem = ownership_problem(info); !problem.empty()) return problem;
  uint64_t size = uint64_t(info.st_size);
  FileHeader header;
  if (size < sizeof header) return "truncated";
  if (!read_all(file.fd, &header, sizeof header)) return "it cannot be read";
  if (auto problem = header_problem(header, size); !problem.empty()) return problem;
  if (contents) {
    std::string all(size, 0);
    std::memcpy(all.data(), &header, sizeof header);
    if (!read_all(file.fd, all.data() + sizeof header, size - sizeof header)) return "it cannot be read";
    auto problem = decode(all, out);
    if (problem.empty() && info.st_mtime + kTouchAfter < std::time(nullptr)) futimens(file.fd, nullptr);
    return problem;
  }
  out.label.assign(header.label_size, 0);
  out.key.assign(header.key_size, 0);
  bool read =
      read_all(file.fd, out.label.data(), out.label.size()) && read_all(file.fd, out.key.data(), out.key.size());
  return read ? "" : "it cannot be read";
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

bool replace_file(const std::string& path, std::string_view data) {
  static std::atomic<unsigned> counter = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::string temporary = format("{}.{}.{}.tmp", path, getpid(), counter++);
    Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.fd < 0 && errno == EEXIST) continue;  // processes of different containers may have one number
    if (file.fd < 0) return false;
    if (write_all(file.fd, data) && rename(temporary.c_str(), path.c_str()) == 0) return true;
    unlink(temporary.c_str());
    return false;
  }
  return false;
}

}  // namespace sinter::runtime::store_file
