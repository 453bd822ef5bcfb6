#include "sinter/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "sinter/base/error.h"

namespace sinter::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStep = "step-", kUnfinished = ".unfinished-", kLatest = "latest";

fs::path made(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  check(!error && fs::is_directory(path), "train: cannot make the folder '{}': {}", path, error.message());
  return path;
}

// What its entries point to is on the disk; this is about the entries.
void sync_folder(const fs::path& path) {
  FileHandle folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  check(folder.get() >= 0 && fsync(folder.get()) == 0, "train: cannot write '{}': {}", path.string(),
        std::strerror(errno));
}

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kStep)) return {};
  int64_t step = 0;
  const char *begin = name.data() + kStep.size(), *end = name.data() + name.size();
  auto [at, error] = std::from_chars(begin, end, step);
  return error == std::errc() && at == end ? std::optional(step) : std::nullopt;
}

// Ascending.
std::vector<int64_t> steps_in(const fs::path& path) {
  std::vector<int64_t> steps;
  for (auto& entry : fs::directory_iterator(path))
    if (auto step = step_of(entry.path().filename().string()); step && entry.is_directory()) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

// A folder that is gone again unless `commit` was reached.
class PendingFolder {
 public:
  explicit PendingFolder(const fs::path& path) : path_(path) {
    check(fs::create_directory(path), "train: cannot make the folder '{}'", path.string());
  }
  PendingFolder(const PendingFolder&) = delete;
  ~PendingFolder() {
    std::error_code ignored;
    if (!committed_) fs::remove_all(path_, ignored);
  }
  void commit(const fs::path& place) {
    sync_folder(path_);
    fs::rename(path_, place);
    committed_ = true;
    sync_folder(place.parent_path());
  }

 private:
  const fs::path path_;
  bool committed_ = false;
};

}  // namespace

RunFolder::RunFolder(const std::string& path)
    : path_(made(path)), lock_(::open((path_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  check(lock_.get() >= 0, "train: cannot write into '{}': {}", path, std::strerror(errno));
  check(flock(lock_.get(), LOCK_EX | LOCK_NB) == 0, "train: another process trains into '{}'", path);
  std::vector<fs::path> unfinished;
  for (auto& entry : fs::directory_iterator(path_))
    if (entry.path().filename().string().starts_with(kUnfinished)) unfinished.push_back(entry.path());
  for (auto& one : unfinished) fs::remove_all(one);
}

std::string RunFolder::checkpoint(int64_t step) const { return file(format("{}{}", kStep, step)); }

std::optional<int64_t> RunFolder::latest() const {
  auto steps = steps_in(path_);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

void RunFolder::write(int64_t step, int64_t keep, FunctionRef<void(const std::string& folder)> fill) {
  const fs::path place = checkpoint(step), work = path_ / format("{}{}{}", kUnfinished, kStep, step);
  PendingFolder folder(work);
  fill(work.string());
  folder.commit(place);
  // A link is replaced by a rename too, so that it leads somewhere at any moment.
  const fs::path link = path_ / format("{}{}", kUnfinished, kLatest);
  fs::create_directory_symlink(place.filename(), link);
  fs::rename(link, path_ / kLatest);
  auto steps = steps_in(path_);
  for (size_t i = 0; keep > 0 && i + size_t(keep) < steps.size(); ++i) {
    // Out of the way first: a checkpoint that is half removed would look like a whole one.
    const fs::path old = path_ / format("{}old-{}", kUnfinished, steps[i]);
    fs::rename(checkpoint(steps[i]), old);
    fs::remove_all(old);
  }
}

}  // namespace sinter::train
