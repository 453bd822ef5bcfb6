#include "bench/support/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace sinter::bench {

namespace {

double time_work(const Work& work, int64_t repeats) {
  return timed([&] { work(repeats); }) / double(repeats);
}

// How many calls fill a round; found by doubling, since the first calls are slower than later ones.
int64_t calls_for(const Work& work, double round) {
  work(1);
  for (int64_t repeats = 1;; repeats *= 2) {
    double call = time_work(work, repeats);
    if (call * double(repeats) >= round / 4) return std::max<int64_t>(1, int64_t(std::ceil(round / call)));
  }
}

}  // namespace

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing summarize(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  size_t n = rounds.size();
  double mean = 0, variance = 0;
  for (double r : rounds) mean += r / double(n);
  for (double r : rounds) variance += (r - mean) * (r - mean) / double(n);
  double median = n % 2 ? rounds[n / 2] : (rounds[n / 2 - 1] + rounds[n / 2]) / 2;
  return {rounds[0], median, mean > 0 ? std::sqrt(variance) / mean : 0};
}

std::vector<double> timed_calls(const Work& work, double least) {
  work(1);
  std::vector<double> calls;
  for (double end = seconds() + least; calls.empty() || seconds() < end;) calls.push_back(timed([&] { work(1); }));
  return calls;
}

std::vector<Timing> alternate(const std::vector<Work>& works, const Rounds& rounds) {
  size_t n = works.size();
  std::vector<int64_t> calls(n);
  for (size_t i = 0; i < n; ++i) calls[i] = calls_for(works[i], rounds.seconds);
  std::vector<std::vector<double>> times(n);
  for (int round = 0; round < rounds.count; ++round) {
    for (size_t i = 0; i < n; ++i) {
      size_t w = (i + size_t(round)) % n;
      if (rounds.settle > 0) std::this_thread::sleep_for(std::chrono::duration<double>(rounds.settle));
      works[w](1);
      times[w].push_back(time_work(works[w], calls[w]));
    }
  }
  std::vector<Timing> timings;
  for (auto& t : times) timings.push_back(summarize(std::move(t)));
  return timings;
}

}  // namespace sinter::bench
