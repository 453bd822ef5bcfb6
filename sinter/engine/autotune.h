#pragma once
// The autotuner: where there are several ways to compute the same, times them on the shapes at hand and remembers which
// one won, in the process and on disk.
//
// A choice point has a name ("mm"), a key that says everything its times depend on (shapes, dtypes, layouts), and
// candidates. The machine and the number of threads are added to the key here. Candidates may differ in the last bits of
// their results; which one wins is decided by the clock, so tuned programs need not have the bits of untuned ones.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/runtime/code_store.h"

namespace sinter {

// One way, on operands that it holds. It may be run any number of times.
struct Candidate {
  std::string name;
  std::function<void()> run;
  // Where the host's clock says little of it, as of what is queued on a device: runs it and gives the seconds of a run.
  std::function<double()> timed = {};
};

// Of the default's time, what a candidate must stay below to be preferred to it.
inline constexpr double kClearlyFaster = 0.97;

// A choice, and what it was made by.
struct Chosen {
  size_t candidate = 0;
  std::vector<double> seconds = {};  // of each candidate by the clock, infinite where it cannot run; empty: nothing was timed
};

struct AutotuneStats {
  int64_t timed = 0;  // choices made by the clock
  int64_t from_memory = 0;
  int64_t from_disk = 0;
  double seconds = 0;  // spent on timing
};

// Thread-safe; one choice is timed at a time.
class Autotuner {
 public:
  // `directory` as for CodeStore: empty keeps nothing on disk.
  explicit Autotuner(std::string directory);

  // The candidate to use. The first one is the default: another one wins only when it is clearly faster. A
  // candidate that throws is out of the race, unless it is the first, whose exception is passed on. About `seconds` are
  // spent at most, but each candidate runs at least twice; the first one alone takes none.
  // The set of candidates belongs to the key: with another set the clock decides anew.
  Chosen choose(std::string_view point, std::string_view key, std::span<const Candidate> candidates, double seconds,
                double faster = kClearlyFaster);
  // Whether it would choose without running anything.
  bool knows(std::string_view point, std::string_view key, std::span<const Candidate> candidates);

  AutotuneStats stats() const;
  // Where winners are kept for this machine and `threads` threads; empty when nothing is kept.
  std::string path(int threads) const;

 private:
  struct Winner {
    std::string name;
    std::vector<double> seconds;
  };
  using Winners = std::map<std::string, Winner>;  // by choice

  static std::string to_text(const Winners& winners);
  static Winners parse(const std::string& text);
  Winners read(int threads) const;
  // Under the lock: what was chosen, and whether the disk alone knew it; nothing where the clock is to be asked.
  std::optional<std::pair<Chosen, bool>> recall(const std::string& choice, std::span<const Candidate> candidates);
  void save(int threads, const std::string& choice, const Winner& winner) const;

  const runtime::CodeStore store_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<int, Winners> known_;
  std::map<int, Winners> on_disk_;  // as read when the number of threads was first met
  AutotuneStats stats_;
};

// The tuner of the process, in the directory of compiled kernels.
Autotuner& autotuner();

}  // namespace sinter
