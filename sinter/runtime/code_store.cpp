// Entries: keys, loading, saving, locks and the limit. code_store_tools.cpp has what people ask of a store.
#include "sinter/runtime/code_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "sinter/base/format.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/runtime/store_file.h"

namespace sinter::runtime {

using namespace store_file;

namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kDefaultLimit = 4096 * kMegabyte;
constexpr double kPatience = 30;           // seconds to wait for the holder of a lock
constexpr int64_t kAbandonedAfter = 3600;  // seconds until a half-written file is nobody's

// Bytes of the file "locks": one for the removal of entries, one for the file "usage", one for each key.
constexpr int64_t kTrimLock = 0, kUsageLock = 1, kFirstKeyLock = 16;

bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
    if (slash == std::string::npos) return true;
  }
}

// Of an open file description, not of a process: threads exclude each other too, and closing another descriptor of the
// same file lets nothing go.
bool set_lock(int fd, short type, int64_t offset) {
  struct flock request {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = offset;
  request.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &request) == 0;
}

}  // namespace

std::string make_key(std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  std::string key;
  for (auto& [name, value] : parts) {
    key.append(name).append("=");
    for (char c : value) key += c == '\n' ? ' ' : c;
    key += '\n';
  }
  return key;
}

std::string text_part(std::string_view text) { return format("{}:{}", hash_hex(text), text.size()); }

std::string_view key_part(std::string_view key, std::string_view name) {
  while (!key.empty()) {
    size_t end = std::min(key.find('\n'), key.size());
    std::string_view line = key.substr(0, end);
    if (line.size() > name.size() && line[name.size()] == '=' && line.starts_with(name))
      return line.substr(name.size() + 1);
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return {};
}

CodeStore::CodeStore(std::string directory, uint64_t limit) : directory_(std::move(directory)), limit_(limit) {
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

uint64_t CodeStore::default_limit() {
  const char* text = std::getenv("SINTER_CACHE_LIMIT_MB");
  if (!text || !*text) return kDefaultLimit;
  char* end = nullptr;
  errno = 0;
  unsigned long long megabytes = std::strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == 0 && errno == 0 && megabytes < (uint64_t(1) << 40))
    return megabytes * kMegabyte;
  warn_once("SINTER_CACHE_LIMIT_MB", "SINTER_CACHE_LIMIT_MB is '{}', which is no number of megabytes; it is {}", text,
            kDefaultLimit / kMegabyte);
  return kDefaultLimit;
}

CodeStore& process_store() {
  static auto* store = new CodeStore(CodeStore::default_directory());  // threads may outlive static objects
  return *store;
}

std::string CodeStore::path_of(std::string_view key) const { return directory_ + "/" + hash_hex(key) + ".code"; }

std::optional<std::string> CodeStore::load(std::string_view key) const {
  if (auto bytes = mounted(key)) return bytes;
  if (directory_.empty()) return std::nullopt;
  std::string path = path_of(key);
  Contents contents;
  struct stat info;
  std::string problem = read_entry(path, contents, info);
  if (problem.empty()) {
    if (contents.key != key) return std::nullopt;
    note_use(key);
    return std::move(contents.bytes);
  }
  if (problem != kAbsent && problem != kOtherVersion)
    warn_once("code store " + directory_, "{} in the cache cannot be read ({}) and is made anew; so are others like it",
              path, problem);
  return std::nullopt;
}

void CodeStore::save(std::string_view key, std::string_view bytes, std::string_view label) const {
  if (directory_.empty()) return;
  std::string file = encode(key, bytes, label.substr(0, 200));
  if (!replace_file(path_of(key), file)) {
    log(LogTopic::kCache, "{} cannot be kept in {}", label, directory_);
    return;
  }
  note_use(key);
  count_bytes(file.size());
}

CodeStore::Lock::~Lock() {
  if (fd_ < 0) return;
  set_lock(fd_, F_UNLCK, offset_);  // a child of a fork may still have the descriptor
  close(fd_);
}

CodeStore::Lock CodeStore::lock(std::string_view key) const {
  int64_t range = int64_t(hash_text(key) >> 2);
  return lock_range(kFirstKeyLock + range, kPatience);
}

CodeStore::Lock CodeStore::lock_range(int64_t offset, double seconds) const {
  Lock lock;
  if (directory_.empty()) return lock;
  Descriptor file(open((directory_ + "/locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd < 0) return lock;
  // Asking again and again rather than waiting in the system: a holder that was stopped must not stop everybody.
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (auto pause = std::chrono::microseconds(200); !set_lock(file.fd, F_WRLCK, offset);) {
    if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || Clock::now() >= deadline) return lock;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10000));
  }
  lock.fd_ = std::exchange(file.fd, -1);
  lock.offset_ = offset;
  return lock;
}

// The file "usage" holds about how many bytes all entries have. What is replaced counts twice until the next trim().
void CodeStore::count_bytes(uint64_t added) const {
  if (limit_ == 0) return;
  Descriptor file(open((directory_ + "/usage").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd < 0) return;
  uint64_t usage = 0;
  auto write_usage = [&] { return pwrite(file.fd, &usage, sizeof usage, 0) == ssize_t(sizeof usage); };
  {
    Lock lock = lock_range(kUsageLock, 0.1);
    bool known = pread(file.fd, &usage, sizeof usage, 0) == ssize_t(sizeof usage);
    usage = std::min(usage, UINT64_MAX / 2) + added;
    if (known && usage <= limit_ && write_usage()) return;
  }
  Lock lock = lock_range(kTrimLock, 0);
  if (!lock.held()) return;  // somebody else is at it
  usage = trim();
  write_usage();
}

uint64_t CodeStore::trim() const {
  struct File {
    std::string name;
    uint64_t size;
    timespec last_use;
  };
  std::vector<File> files;
  uint64_t total = 0;
  DIR* listing = opendir(directory_.c_str());
  if (!listing) return 0;
  int at = dirfd(listing);
  int64_t now = std::time(nullptr);
  while (dirent* item = readdir(listing)) {
    std::string_view name = item->d_name;
    struct stat info;
    bool entry = name.ends_with(".code");
    if ((!entry && !name.ends_with(".tmp")) || fstatat(at, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (entry) {
      files.push_back({std::string(name), uint64_t(info.st_size), info.st_mtim});
      total += uint64_t(info.st_size);
    } else if (info.st_mtime + kAbandonedAfter < now) {
      unlinkat(at, item->d_name, 0);
    }
  }
  size_t removed = 0;
  if (total > limit_) {
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
      return std::pair(a.last_use.tv_sec, a.last_use.tv_nsec) < std::pair(b.last_use.tv_sec, b.last_use.tv_nsec);
    });
    // Some room beyond what is needed, so that the next entries cost nothing.
    for (auto& file : files) {
      if (total <= limit_ / 5 * 4) break;
      if (unlinkat(at, file.name.c_str(), 0) != 0) continue;
      total -= file.size;
      ++removed;
    }
  }
  closedir(listing);
  if (removed)
    log(LogTopic::kCache, "{} least recently used entries are removed: the limit is {} MB", removed,
        limit_ / kMegabyte);
  return total;
}

}  // namespace sinter::runtime
