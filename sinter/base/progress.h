#pragma once
// A progress bar for long work: drawn on stderr when that is a terminal, silent in a pipe.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace sinter {

// The bar as text, at most `width` columns: "load  [#####.....]  50%  1.2G/2.4GB  310MB/s  0:04 left". A total of 0 is
// unknown: count and rate only. `unit` follows the numbers, `note` all.
std::string progress_line(std::string_view label, int64_t done, int64_t total, std::string_view unit, double seconds,
                          int width, std::string_view note = "");

// Draws itself at most ten times a second, first after 0.2 s (short work shows nothing), and leaves its last state on
// the terminal when it ends. `advance` may be called from any thread, and costs an atomic add when nothing is due.
class Progress {
 public:
  // While alive, bars made on this thread draw nothing: they are part of something that has its own, or that nobody
  // waits for.
  class Silence {
   public:
    Silence();
    ~Silence();
    Silence(const Silence&) = delete;

   private:
    const bool before_;
  };

  explicit Progress(std::string label, int64_t total = 0, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t n = 1);
  // What is told behind the bar from now on.
  void note(std::string text);
  // Erases the bar, for a line of the caller's in its place. It comes again below.
  void clear();
  int64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);

  const std::string label_, unit_;
  const int64_t total_;
  const bool terminal_;
  const Clock::time_point start_;
  std::atomic<int64_t> done_{0};
  std::atomic<Clock::duration> due_;  // time since start_ of the next drawing
  std::mutex drawing_;
  std::string note_;
  bool drawn_ = false;
};

}  // namespace sinter
