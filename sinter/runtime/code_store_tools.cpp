// What people ask of a store: what is in it, and why something was not.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <tuple>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/store_file.h"

namespace sinter::runtime {

using namespace store_file;

namespace {

constexpr off_t kMissesBytes = 256 << 10;  // of the file "misses", which then loses its older half
// One process, also where numbers of processes are used again.
const std::string& run_name() {
  static const std::string name =
      format("{}.{}", getpid(), std::chrono::system_clock::now().time_since_epoch().count() / 1000);
  return name;
}

std::string on_one_line(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\n' ? '\x1f' : c == '\t' ? ' ' : c;
  return out;
}

std::vector<std::pair<std::string_view, std::string_view>> parts_of(std::string_view key) {
  std::vector<std::pair<std::string_view, std::string_view>> parts;
  while (!key.empty()) {
    size_t end = std::min(key.find('\n'), key.size()), equals = key.find('=');
    if (equals < end) parts.emplace_back(key.substr(0, equals), key.substr(equals + 1, end - equals - 1));
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return parts;
}

}  // namespace

std::vector<CodeStore::Entry> CodeStore::entries() const {
  std::vector<Entry> out;
  DIR* listing = directory_.empty() ? nullptr : opendir(directory_.c_str());
  if (!listing) return out;
  while (dirent* item = readdir(listing)) {
    if (!std::string_view(item->d_name).ends_with(".code")) continue;
    Entry entry;
    entry.path = directory_ + "/" + item->d_name;
    Contents contents;
    struct stat info {};
    entry.problem = read_entry(entry.path, contents, info, /*contents=*/false);
    if (entry.problem == kAbsent) continue;
    if (entry.problem.empty() && entry.path != path_of(contents.key)) entry.problem = "its name is not its key's";
    entry.key = std::move(contents.key);
    entry.label = std::move(contents.label);
    entry.size = uint64_t(info.st_size);
    entry.last_use = info.st_mtime;
    out.push_back(std::move(entry));
  }
  closedir(listing);
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) {
    return std::tie(b.last_use, a.label, a.path) < std::tie(a.last_use, b.label, b.path);
  });
  return out;
}

void CodeStore::note_miss(std::string_view key, std::string_view label) const {
  if (directory_.empty()) return;
  Contents contents;
  struct stat info;
  std::string path = path_of(key), problem = read_entry(path, contents, info, /*contents=*/false);
  // A header that looks right says that it was the checksum.
  problem = problem == kAbsent ? "" : problem.empty() ? "damaged" : problem;
  if (log_enabled(LogTopic::kCache))
    log(LogTopic::kCache, "{} is not in the cache: {}", label, problem.empty() ? differences(key, entries()) : problem);
  std::string line = format("{}\t{}\t{}\t{}\t{}\n", run_name(), int64_t(std::time(nullptr)), on_one_line(label),
                            problem, on_one_line(key));
  std::string misses = directory_ + "/misses";
  Descriptor file(open(misses.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd < 0 || !write_all(file.fd, line) || fstat(file.fd, &info) != 0 || info.st_size <= kMissesBytes) return;
  std::string recent(size_t(info.st_size / 2), 0);
  ssize_t size = pread(file.fd, recent.data(), recent.size(), info.st_size - off_t(recent.size()));
  if (size <= 0) return;
  recent.resize(size_t(size));
  replace_file(misses, std::string_view(recent).substr(std::min(recent.find('\n') + 1, recent.size())));
}

std::vector<CodeStore::Miss> CodeStore::recent_misses() const {
  std::vector<Miss> out;
  Descriptor file(directory_.empty() ? -1 : open((directory_ + "/misses").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || !ownership_problem(info).empty()) return out;
  std::string text(size_t(std::min<off_t>(info.st_size, 4 * kMissesBytes)), 0);
  if (!read_all(file.fd, text.data(), text.size())) return out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string fields[5];
    for (size_t i = 0, from = at; i < 5 && from <= end; ++i) {
      size_t to = i == 4 ? end : std::min(text.find('\t', from), end);
      fields[i] = text.substr(from, to - from);
      from = to + 1;
    }
    std::replace(fields[4].begin(), fields[4].end(), '\x1f', '\n');
    if (!fields[4].empty())
      out.push_back({fields[0], std::strtoll(fields[1].c_str(), nullptr, 10), fields[4], fields[2], fields[3]});
    at = end + 1;
  }
  return out;
}

std::string CodeStore::why_miss(std::string_view key) const {
  if (directory_.empty()) return "there is no cache directory";
  Contents contents;
  struct stat info;
  std::string problem = read_entry(path_of(key), contents, info);
  if (problem == kOtherVersion) return "its entry was written by another version of Sinter";
  if (!problem.empty() && problem != kAbsent) return "its entry cannot be read: " + problem;
  return differences(key, entries());
}

std::string CodeStore::differences(std::string_view key, const std::vector<Entry>& entries) {
  auto wanted = parts_of(key);
  std::string_view kind = key_part(key, "kind");
  const Entry* best = nullptr;
  std::pair<size_t, std::vector<bool>> best_score;
  for (auto& entry : entries) {
    if (!entry.problem.empty() || entry.key == key || entry.kind() != kind) continue;
    std::pair<size_t, std::vector<bool>> score;
    for (auto& [name, value] : wanted) {
      bool same = key_part(entry.key, name) == value;
      score.first += same;
      score.second.push_back(same);
    }
    if (!best || score > best_score) best = &entry, best_score = score;
  }
  if (!best) return format("there is no other entry of kind {}", kind.empty() ? "unknown" : kind);
  std::string out;
  auto add = [&](std::string_view name, std::string_view value, std::string_view other) {
    out += format("{}{}: {}, there {}", out.empty() ? "" : "; ", name, value.empty() ? "none" : value,
                  other.empty() ? "none" : other);
  };
  for (auto& [name, value] : wanted)
    if (auto other = key_part(best->key, name); other != value) add(name, value, other);
  for (auto& [name, value] : parts_of(best->key))
    if (std::none_of(wanted.begin(), wanted.end(), [name = name](auto& part) { return part.first == name; }))
      add(name, {}, value);
  return format("it differs from the nearest entry{} in {}",
                best->label.empty() ? std::string() : " (" + best->label + ")", out);
}

size_t CodeStore::clear(std::string_view kind) const {
  size_t removed = 0;
  for (auto& entry : entries())
    if (kind.empty() || (entry.problem.empty() && entry.kind() == kind)) removed += unlink(entry.path.c_str()) == 0;
  if (directory_.empty()) return 0;
  unlink((directory_ + "/usage").c_str());  // counted anew at the next save
  if (kind.empty()) unlink((directory_ + "/misses").c_str());
  return removed;
}

}  // namespace sinter::runtime
