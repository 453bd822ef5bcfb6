#include "sinter/package/package_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"

namespace sinter {

namespace {

using Json = nlohmann::json;

constexpr uint32_t kVersion = 1;
constexpr uint64_t kAlign = 4096;
constexpr uint64_t kMaxTable = 1 << 20;
constexpr size_t kPiece = 4 << 20;

struct Header {
  char magic[8] = {'S', 'I', 'N', 'T', 'E', 'R', 'P', 'K'};
  uint32_t version = kVersion, reserved = 0;
  uint64_t table_offset = 0, table_size = 0, table_checksum = 0;
  uint64_t checksum = 0;  // of the fields above
};

uint64_t header_checksum(const Header& header) { return hash_bytes(&header, offsetof(Header, checksum)); }

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    check(fd_ >= 0, "package: cannot open '{}': {}", path, std::strerror(errno));
    bool plain = fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
    if (!plain) close(fd_);
    check(plain, "package: '{}' is not a file", path);
    size_ = uint64_t(info.st_size);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  uint64_t size() const { return size_; }

  // False where the file ends before.
  bool read(uint64_t offset, void* to, size_t size) const {
    for (size_t done = 0; done < size;) {
      ssize_t got = pread(fd_, static_cast<char*>(to) + done, size - done, off_t(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      done += size_t(got);
    }
    return true;
  }

 private:
  int fd_;
  uint64_t size_ = 0;
};

}  // namespace

// --- writing

PackageWriter::PackageWriter(const std::string& path) : path_(path), temporary_(format("{}.{}.tmp", path, getpid())) {
  fd_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  check(fd_ >= 0, "package: cannot write '{}': {}", path, std::strerror(errno));
  write(std::string(sizeof(Header), 0));
}

PackageWriter::~PackageWriter() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void PackageWriter::write(std::string_view bytes) {
  at_ += bytes.size();
  while (!bytes.empty()) {
    ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    check(done > 0, "package: cannot write '{}': {}", path_, std::strerror(errno));
    bytes.remove_prefix(size_t(done));
  }
}

void PackageWriter::begin(const std::string& name) {
  write(std::string((kAlign - at_ % kAlign) % kAlign, 0));
  sections_.push_back({.name = name, .offset = at_, .size = 0, .checksum = 0});
}

void PackageWriter::append(std::string_view bytes) {
  auto& section = sections_.back();
  section.size += bytes.size();
  section.checksum = hash_bytes(bytes.data(), bytes.size(), section.checksum);
  write(bytes);
}

void PackageWriter::add(const std::string& name, std::string_view bytes) {
  begin(name);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) append(bytes.substr(0, kPiece));
}

void PackageWriter::add_file(const std::string& name, const std::string& path) {
  begin(name);
  Descriptor file(path);
  std::string piece;
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(size_t(std::min<uint64_t>(kPiece, file.size() - at)));
    check(file.read(at, piece.data(), piece.size()), "package: cannot read '{}'", path);
    append(piece);
  }
}

void PackageWriter::finish() {
  Json table = Json::array();
  for (auto& s : sections_)
    table.push_back({{"name", s.name}, {"offset", s.offset}, {"size", s.size}, {"checksum", s.checksum}});
  std::string text = table.dump();
  Header header;
  header.table_offset = at_;
  header.table_size = text.size();
  header.table_checksum = hash_bytes(text.data(), text.size());
  header.checksum = header_checksum(header);
  write(text);
  bool ok = pwrite(fd_, &header, sizeof header, 0) == ssize_t(sizeof header) && fsync(fd_) == 0 &&
            rename(temporary_.c_str(), path_.c_str()) == 0;
  check(ok, "package: cannot write '{}': {}", path_, std::strerror(errno));
  temporary_.clear();
}

// --- reading

bool PackageFile::is_package(const std::string& path) {
  Header header;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool begins = ::read(fd, &header, sizeof header.magic) == ssize_t(sizeof header.magic) &&
                std::memcmp(header.magic, Header().magic, sizeof header.magic) == 0;
  close(fd);
  return begins;
}

PackageFile::PackageFile(const std::string& path) : path_(path) {
  Descriptor file(path);
  Header header;
  check(file.read(0, &header, sizeof header) && std::memcmp(header.magic, Header().magic, sizeof header.magic) == 0,
        "package: '{}' is no package of Sinter", path);
  check(header.version == kVersion, "package: '{}' is of version {}, this Sinter reads {}; export it again", path,
        header.version, kVersion);
  check(header.checksum == header_checksum(header), "package: '{}' is damaged: its header", path);
  check(header.table_offset <= file.size() && header.table_size <= file.size() - header.table_offset,
        "package: '{}' is truncated: {} bytes, its table ends at {}", path, file.size(),
        header.table_offset + header.table_size);
  check(header.table_size <= kMaxTable, "package: '{}' is damaged: a table of {} bytes", path, header.table_size);
  std::string text(header.table_size, 0);
  check(file.read(header.table_offset, text.data(), text.size()) &&
            hash_bytes(text.data(), text.size()) == header.table_checksum,
        "package: '{}' is damaged: its table", path);
  try {
    for (auto& s : Json::parse(text))
      sections_.push_back({s.at("name"), s.at("offset"), s.at("size"), s.at("checksum")});
  } catch (const Json::exception& error) {
    throw_error(format("package: '{}' is damaged: its table: {}", path, error.what()));
  }
  for (auto& s : sections_)
    check(s.offset <= file.size() && s.size <= file.size() - s.offset, "package: '{}' is truncated: '{}' ends at {}", path,
          s.name, s.offset + s.size);
}

const PackageSection* PackageFile::find(std::string_view name) const {
  auto found = std::find_if(sections_.begin(), sections_.end(), [&](auto& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::string PackageFile::read(std::string_view name) const {
  auto* section = find(name);
  check(section != nullptr, "package: '{}' has no section '{}'", path_, name);
  Descriptor file(path_);
  std::string bytes(section->size, 0);
  check(file.read(section->offset, bytes.data(), bytes.size()), "package: '{}' is truncated", path_);
  uint64_t checksum = 0;
  for (size_t at = 0; at < bytes.size(); at += kPiece)
    checksum = hash_bytes(bytes.data() + at, std::min(kPiece, bytes.size() - at), checksum);
  check(checksum == section->checksum, "package: '{}' is damaged: '{}'", path_, name);
  return bytes;
}

void PackageFile::verify() const {
  for (auto& section : sections_)
    check(file_checksum(path_, section.offset, section.size) == section.checksum, "package: '{}' is damaged: '{}'", path_,
          section.name);
}

uint64_t file_checksum(const std::string& path, uint64_t offset, uint64_t size) {
  Descriptor file(path);
  uint64_t checksum = 0;
  std::string piece;
  for (uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(size_t(std::min<uint64_t>(kPiece, size - at)));
    check(file.read(offset + at, piece.data(), piece.size()), "package: '{}' is truncated", path);
    checksum = hash_bytes(piece.data(), piece.size(), checksum);
  }
  return checksum;
}

}  // namespace sinter
