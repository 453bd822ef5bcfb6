#pragma once
// Timing that survives a noisy machine: competitors take turns, and the spread is told with the result.
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace sinter::bench {

// Seconds on a steady clock.
double seconds();

// Seconds that it takes.
template <class F>
double timed(F f) {
  double start = seconds();
  f();
  return seconds() - start;
}

// Seconds a call over several rounds, and their standard deviation relative to their mean.
struct Timing {
  double best = 0, median = 0, deviation = 0;
};
// Of rounds measured elsewhere; at least one.
Timing summarize(std::vector<double> rounds);

// Something to time: runs its work that many times.
using Work = std::function<void(int64_t repeats)>;
// The work of calling `body` again and again, with no call through a pointer between.
template <class Body>
Work repeat(Body body) {
  return [body = std::move(body)](int64_t repeats) mutable {
    for (int64_t i = 0; i < repeats; ++i) body();
  };
}

// Seconds of single calls, for at least that long; the first call is not timed. Among other processes a whole round is hardly
// ever left alone.
std::vector<double> timed_calls(const Work& work, double least);

struct Rounds {
  int count = 9;
  double seconds = 0.01;  // at least this long each
  double settle = 0;      // sleep before each, so that idle threads of a competitor stop spinning
};

// Times every work in every round, one after another; who begins changes from round to round. Each measurement follows
// one untimed call.
std::vector<Timing> alternate(const std::vector<Work>& works, const Rounds& rounds = {});

}  // namespace sinter::bench
