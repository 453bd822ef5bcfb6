#include "sinter/engine/autotune.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <sstream>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter {

namespace {

// Raised when the kernels behind the candidates change so much that old winners mean nothing.
constexpr int kKernelsVersion = 1;
constexpr int kRounds = 12;              // of all candidates in turn; the best time of each counts
constexpr double kSample = 100e-6;       // seconds of one sample: short candidates are repeated

// How much slower than the best one a candidate leaves the race at; the first rounds may be disturbed.
double clearly_slower(int round) { return round < 3 ? 2 : 1.3; }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds that candidates took. What runs on the calling thread alone is measured by that thread's own clock, which does
// not count what other programs take.
double work_clock() {
  if (num_threads() > 1) return now();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// The model as the CPU names itself, with its numbers: names are shared by machines that differ.
std::string cpu_model() {
#if defined(__x86_64__)
  unsigned words[12] = {}, a = 0, b, c, d;
  for (unsigned i = 0; i < 3; ++i)
    __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  __get_cpuid(1, &a, &b, &c, &d);
  char name[49] = {};
  std::memcpy(name, words, 48);
  return format("{} {}", name, a);
#else
  return "unknown";
#endif
}

std::string store_key(int threads) {
  return runtime::make_key({{"kind", "autotune"},
                            {"cpu", cpu_model()},
                            {"target", runtime::host_target().name},
                            {"threads", format("{}", threads)},
                            {"version", format("{} {}", SINTER_VERSION, kKernelsVersion)}});
}

struct Racer {
  double best = std::numeric_limits<double>::infinity();
  int repeats = 1;
  bool in_race = true;
};

// False when the candidate cannot run.
bool sample(const Candidate& candidate, Racer& racer, bool must_run) {
  try {
    if (candidate.timed) {
      racer.best = std::min(racer.best, candidate.timed());
      return true;
    }
    double begin = work_clock();
    for (int i = 0; i < racer.repeats; ++i) candidate.run();
    racer.best = std::min(racer.best, (work_clock() - begin) / racer.repeats);
    return true;
  } catch (const Error& error) {
    if (must_run) throw;
    log(LogTopic::kAutotune, "  {} failed: {}", candidate.name, error.message());
    racer.best = std::numeric_limits<double>::infinity();
    return racer.in_race = false;
  }
}

std::vector<Racer> race(std::span<const Candidate> candidates, double seconds) {
  std::vector<Racer> racers(candidates.size());
  double deadline = now() + seconds;
  // The first run makes what is made on first use and does not count.
  for (size_t i = 0; i < racers.size(); ++i) {
    if (!sample(candidates[i], racers[i], i == 0)) continue;
    racers[i].best = std::numeric_limits<double>::infinity();
    if (!sample(candidates[i], racers[i], i == 0)) continue;
    racers[i].repeats = int(std::clamp(kSample / std::max(racers[i].best, 1e-9), 1.0, 1e5));
  }
  for (int round = 0; round < kRounds && now() < deadline; ++round) {
    for (size_t i = 0; i < racers.size() && now() < deadline; ++i)
      if (racers[i].in_race) sample(candidates[i], racers[i], i == 0);
    if (round == 0) continue;
    double best = std::numeric_limits<double>::infinity();
    for (auto& racer : racers) best = std::min(best, racer.best);
    for (auto& racer : racers) racer.in_race = racer.in_race && racer.best < clearly_slower(round) * best;
    if (std::count_if(racers.begin(), racers.end(), [](auto& r) { return r.in_race; }) < 2) break;
  }
  return racers;
}

size_t winner_of(const std::vector<Racer>& racers, double faster) {
  size_t best = 0;
  for (size_t i = 1; i < racers.size(); ++i)
    if (racers[i].best < racers[best].best) best = i;
  return racers[best].best < faster * racers[0].best ? best : 0;
}

}  // namespace

Autotuner::Autotuner(std::string directory) : store_(std::move(directory)) {}

std::string Autotuner::path(int threads) const {
  return store_.directory().empty() ? "" : store_.path_of(store_key(threads));
}

// One line a choice: what was chosen from, a tab, the winner, a tab, the seconds of each candidate.
std::string Autotuner::to_text(const Winners& winners) {
  std::string text;
  for (auto& [choice, winner] : winners) {
    text += choice + "\t" + winner.name + "\t";
    for (double seconds : winner.seconds) text += format("{} ", seconds);
    text += "\n";
  }
  return text;
}

Autotuner::Winners Autotuner::parse(const std::string& text) {
  Winners winners;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string choice, times;
    Winner winner;
    std::getline(fields, choice, '\t');
    std::getline(fields, winner.name, '\t');
    std::getline(fields, times);
    std::istringstream numbers(times);
    for (std::string number; numbers >> number;) winner.seconds.push_back(std::strtod(number.c_str(), nullptr));
    if (!winner.name.empty()) winners[choice] = winner;
  }
  return winners;
}

Autotuner::Winners Autotuner::read(int threads) const {
  auto text = store_.load(store_key(threads));
  return text ? parse(*text) : Winners();
}

void Autotuner::save(int threads, const std::string& choice, const Winner& winner) const {
  // Processes that add winners at the same time take turns, so that none of them is lost.
  auto key = store_key(threads);
  auto lock = store_.lock(key);
  Winners all = read(threads);
  all[choice] = winner;
  store_.save(key, to_text(all), format("winners of {} threads", threads));
}

namespace {

std::string name_of_choice(std::string_view point, std::string_view key, std::span<const Candidate> candidates) {
  std::string choice = format("{} {} of", point, key);
  for (auto& candidate : candidates) choice += (&candidate == &candidates[0] ? " " : ", ") + candidate.name;
  return choice;
}

}  // namespace

std::optional<std::pair<Chosen, bool>> Autotuner::recall(const std::string& choice, std::span<const Candidate> candidates) {
  const int threads = num_threads();
  auto find = [&](const Winners& winners) -> std::optional<Chosen> {
    auto it = winners.find(choice);
    if (it == winners.end()) return std::nullopt;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == it->second.name) return Chosen{i, it->second.seconds};
    return std::nullopt;
  };
  if (auto found = find(known_[threads])) return std::pair(*found, false);
  if (!on_disk_.contains(threads)) {
    on_disk_[threads] = read(threads);
    if (on_disk_[threads].empty()) store_.note_miss(store_key(threads), format("winners of {} threads", threads));
  }
  if (auto found = find(on_disk_[threads])) return std::pair(*found, true);
  return std::nullopt;
}

bool Autotuner::knows(std::string_view point, std::string_view key, std::span<const Candidate> candidates) {
  std::lock_guard lock(mutex_);
  return candidates.size() == 1 || recall(name_of_choice(point, key, candidates), candidates);
}

Chosen Autotuner::choose(std::string_view point, std::string_view key, std::span<const Candidate> candidates, double seconds,
                         double faster) {
  SINTER_INTERNAL_ASSERT(!candidates.empty(), "{} has no candidates", point);
  if (candidates.size() == 1) return {};
  const int threads = num_threads();
  const std::string choice = name_of_choice(point, key, candidates);

  std::lock_guard lock(mutex_);
  auto& known = known_[threads];
  if (auto found = recall(choice, candidates)) {
    auto& [chosen, from_disk] = *found;
    ++(from_disk ? stats_.from_disk : stats_.from_memory);
    if (from_disk) {
      known[choice] = on_disk_[threads][choice];
      log(LogTopic::kAutotune, "{} {}, {} threads: {} (remembered)", point, key, threads, known[choice].name);
    }
    return chosen;
  }

  double begin = now();
  auto racers = race(candidates, seconds);
  size_t winner = winner_of(racers, faster);
  stats_.seconds += now() - begin;
  ++stats_.timed;
  if (log_enabled(LogTopic::kAutotune)) {
    std::string lines = format("{} {}, {} threads:", point, key, threads);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!std::isfinite(racers[i].best)) continue;  // its failure has been told
      lines += format("\n  {} us  {}{}{}", double(std::llround(racers[i].best * 1e8)) / 100, candidates[i].name,
                      racers[i].in_race ? "" : " (left early)", i == winner ? "  <- winner" : "");
    }
    log(LogTopic::kAutotune, "{}", lines);
  }
  Chosen chosen{winner, {}};
  for (auto& racer : racers) chosen.seconds.push_back(racer.best);
  known[choice] = {candidates[winner].name, chosen.seconds};
  save(threads, choice, known[choice]);
  return chosen;
}

AutotuneStats Autotuner::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

Autotuner& autotuner() {
  static auto* tuner = new Autotuner(runtime::CodeStore::default_directory());
  return *tuner;
}

}  // namespace sinter
