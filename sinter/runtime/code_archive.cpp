// Many entries in one run of bytes: files to take a store elsewhere, and entries that come with a package.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"
#include "sinter/base/hash.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/store_file.h"

namespace sinter::runtime {

using namespace store_file;

namespace {

constexpr uint32_t kArchiveVersion = 1;

// An archive: this, then for each entry its size (8 bytes) and its file.
struct ArchiveHeader {
  char magic[8] = {'S', 'I', 'N', 'T', 'E', 'R', 'A', 'R'};
  uint32_t version = kArchiveVersion, entry_version = kVersion;
  uint64_t count = 0;
  uint64_t checksum = 0;  // of the fields above and of each entry's size and checksum
};

// `file` is a whole entry.
uint64_t mix_entry(uint64_t checksum, std::string_view file) {
  uint64_t own = 0;
  std::memcpy(&own, file.data() + offsetof(FileHeader, checksum), sizeof own);
  return hash_mix(hash_mix(checksum, file.size()), own);
}

std::string_view bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

// Collects entries; the header, which comes first, is known last.
class ArchiveWriter {
 public:
  // False when `write` has failed.
  bool add(const Contents& contents, FunctionRef<bool(std::string_view)> write) {
    std::string bytes = encode(contents.key, contents.bytes, contents.label);
    checksum_ = mix_entry(checksum_, bytes);
    ++header_.count;
    return write(bytes_of(uint64_t(bytes.size()))) && write(bytes);
  }
  const ArchiveHeader& header() {
    header_.checksum = hash_bytes(&header_, offsetof(ArchiveHeader, checksum), checksum_);
    return header_;
  }

 private:
  ArchiveHeader header_;
  uint64_t checksum_ = 0;
};

// Reads an archive of `rest` bytes through `read(to, size)` and calls visit(contents) for each entry; an Error for whatever
// is wrong with it.
void read_archive(const std::string& name, uint64_t rest, FunctionRef<bool(void*, size_t)> read,
                  FunctionRef<void(Contents&)> visit) {
  ArchiveHeader header;
  check(rest >= sizeof header && read(&header, sizeof header) &&
            std::memcmp(header.magic, ArchiveHeader().magic, sizeof header.magic) == 0,
        "{} holds no artifacts of Sinter", name);
  check(header.version == kArchiveVersion && header.entry_version == kVersion,
        "the artifacts {} are of version {}.{}, this Sinter reads {}.{}; export them again with this Sinter", name,
        header.version, header.entry_version, kArchiveVersion, kVersion);
  rest -= sizeof header;
  uint64_t checksum = 0;
  for (uint64_t i = 0; i < header.count; ++i) {
    uint64_t size = 0;
    bool whole = rest >= sizeof size && read(&size, sizeof size) && size <= rest - sizeof size;
    std::string bytes(whole ? size : 0, 0);
    check(whole && read(bytes.data(), size), "the artifacts {} are truncated", name);
    rest -= sizeof size + size;
    Contents contents;
    std::string problem = decode(bytes, contents);
    check(problem.empty(), "the artifacts {} are damaged: entry {}: {}", name, i, problem);
    checksum = mix_entry(checksum, bytes);
    visit(contents);
  }
  check(rest == 0 && header.checksum == hash_bytes(&header, offsetof(ArchiveHeader, checksum), checksum),
        "the artifacts {} are damaged", name);
}

void read_archive_file(const std::string& path, FunctionRef<void(Contents&)> visit) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  check(file.fd >= 0 && fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode), "the artifacts {} cannot be read: {}",
        path, file.fd < 0 ? std::strerror(errno) : "not a plain file");
  read_archive(path, uint64_t(info.st_size), [&](void* to, size_t size) { return read_all(file.fd, to, size); }, visit);
}

// --- what the process has used, and what was mounted

struct ProcessEntries {
  std::mutex mutex;
  std::set<std::string> used, names;
  std::unordered_map<std::string, std::string> mounted;      // bytes by key
  std::unordered_map<std::string, std::string> by_any_made;  // keys by what any_compiler() leaves of them
  static ProcessEntries& instance() {
    static auto* entries = new ProcessEntries;
    return *entries;
  }
};

// The key but for who made the code.
std::string any_compiler(std::string_view key) {
  std::string out;
  while (!key.empty()) {
    size_t end = std::min(key.find('\n'), key.size());
    if (!key.starts_with("compiler=")) out.append(key.substr(0, end)).append("\n");
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return out;
}

}  // namespace

size_t CodeStore::export_to(const std::string& file, std::string_view kind) const {
  check(!directory_.empty(), "there is no cache directory to export from");
  ArchiveWriter archive;
  std::string temporary = format("{}.{}.tmp", file, getpid());
  Descriptor out(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  bool ok = out.fd >= 0 && write_all(out.fd, std::string(sizeof(ArchiveHeader), 0));
  for (auto& entry : entries()) {
    if (!ok) break;
    Contents contents;
    struct stat info;
    if (!entry.problem.empty() || (!kind.empty() && entry.kind() != kind)) continue;
    if (!read_entry(entry.path, contents, info).empty()) continue;
    ok = archive.add(contents, [&](std::string_view bytes) { return write_all(out.fd, bytes); });
  }
  const ArchiveHeader& header = archive.header();
  ok = ok && pwrite(out.fd, &header, sizeof header, 0) == ssize_t(sizeof header) &&
       rename(temporary.c_str(), file.c_str()) == 0;
  if (!ok) {
    std::string reason = std::strerror(errno);
    unlink(temporary.c_str());
    throw_error(format("the artifacts cannot be written to {}: {}", file, reason));
  }
  return header.count;
}

size_t CodeStore::import_from(const std::string& file) const {
  check(!directory_.empty(), "there is no cache directory to import into");
  read_archive_file(file, [](const Contents&) {});
  size_t added = 0;
  read_archive_file(file, [&](const Contents& contents) {
    Lock held = lock(contents.key);
    if (load(contents.key)) return;
    std::string bytes = encode(contents.key, contents.bytes, contents.label);
    check(replace_file(path_of(contents.key), bytes), "the artifacts of {} cannot be written to {}", file, directory_);
    count_bytes(bytes.size());
    ++added;
  });
  return added;
}

std::string CodeStore::archive(std::span<const std::string> keys) const {
  ArchiveWriter archive;
  std::string out(sizeof(ArchiveHeader), 0);
  for (auto& key : keys) {
    auto bytes = load(key);
    check(bytes.has_value(), "the artifact '{}' is no longer in the cache{}", key.substr(0, key.find('\n', key.find('\n') + 1)),
          directory_.empty() ? ", since there is no cache directory: set SINTER_CACHE_DIR" : "");
    archive.add({.label = {}, .key = key, .bytes = std::move(*bytes)}, [&](std::string_view more) {
      out.append(more);
      return true;
    });
  }
  std::memcpy(out.data(), &archive.header(), sizeof(ArchiveHeader));
  return out;
}

size_t CodeStore::mount(std::string_view archive, const std::string& name) {
  std::vector<Contents> all;
  size_t at = 0;
  auto read = [&](void* to, size_t size) {
    std::memcpy(to, archive.data() + at, size);
    at += size;
    return true;
  };
  read_archive(name, archive.size(), read, [&](Contents& contents) { all.push_back(std::move(contents)); });
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  entries.names.insert(name);
  for (auto& contents : all) {
    entries.by_any_made[any_compiler(contents.key)] = contents.key;
    entries.mounted[std::move(contents.key)] = std::move(contents.bytes);
  }
  return all.size();
}

std::string CodeStore::mounted_note() {
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  std::string names;
  for (auto& name : entries.names) names += (names.empty() ? "'" : ", '") + name + "'";
  return names.empty() ? names : " It was not exported into " + names + ": export what is run here too.";
}

std::optional<std::string> CodeStore::mounted_key(std::string_view key) {
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  if (entries.mounted.empty()) return std::nullopt;
  auto found = entries.by_any_made.find(any_compiler(key));
  if (found == entries.by_any_made.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> CodeStore::mounted(std::string_view key) {
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  if (entries.mounted.empty()) return std::nullopt;
  auto found = entries.mounted.find(std::string(key));
  if (found == entries.mounted.end()) return std::nullopt;
  entries.used.insert(found->first);
  return found->second;
}

void CodeStore::note_use(std::string_view key) {
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  entries.used.emplace(key);
}

std::vector<std::string> CodeStore::used_keys() {
  auto& entries = ProcessEntries::instance();
  std::lock_guard lock(entries.mutex);
  return {entries.used.begin(), entries.used.end()};
}

}  // namespace sinter::runtime
