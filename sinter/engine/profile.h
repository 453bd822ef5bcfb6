#pragma once
// A record of what ran: every eager op and every kernel of compiled functions, how often, how long, how many bytes.
//
//   Profile profile;                                  // collects while it is alive, or until stop()
//   for (int i = 0; i < 10; ++i) model(x);
//   std::cout << profile.table() << profile.advice();
//   profile.write_chrome_trace("trace.json");         // chrome://tracing, or Perfetto
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/function_ref.h"
#include "sinter/tensor/device.h"

namespace sinter SINTER_API {

// What a kernel moves and computes at the least.
struct Cost {
  int64_t read = 0, written = 0;  // bytes of memory, each place once
  double flops = 0;               // of contractions: two for each product added up

  int64_t bytes() const { return read + written; }
  Cost& operator+=(const Cost& other);
};

// A part of an eager run that would be worth compiling.
struct Advice {
  std::string where;                    // "model.cpp:41-47"
  int64_t calls = 0;                    // how often it ran
  int64_t ops = 0, kernels = 0;         // of one run: eagerly, and compiled
  int64_t bytes = 0, compiled_bytes = 0;  // moved by one run
  double seconds = 0;                   // of one run: each op in the shortest time measured
  // What a compiled run would take: memory at four fifths of the measured bandwidth, and the arithmetic of now.
  double expected_seconds = 0;

  double gain() const { return seconds / expected_seconds; }
};

// Collects what any thread runs. One at a time; it must not end while another thread is inside a call.
class Profile {
 public:
  // By name, over all places.
  struct Row {
    int64_t calls = 0;
    double seconds = 0;
    int64_t bytes = 0;  // operands read and results written, each once
  };
  // One kernel as one place of the program uses it. Compiling it, where a call had to, is no part of its time.
  struct KernelRow {
    std::string name, ops, where;
    std::string program;  // the compiled function it belongs to; empty for an eager op
    Device device = {};
    int64_t calls = 0;
    double seconds = 0, best = 0;  // of all calls together; of the shortest
    Cost cost = {};                // of all calls

    void add(double taken, const Cost& moved);
  };
  // A stretch of time on one thread, in seconds since the profile began. Those of one thread nest.
  struct Event {
    enum class Kind : uint8_t { kKernel, kProgram, kCompile };
    Kind kind = Kind::kKernel;
    int index = 0;  // of the row, or of the program's name
    int thread = 0;
    double begin = 0, seconds = 0;
  };

  Profile();
  // Collects what happens inside `work`, and nothing after.
  explicit Profile(FunctionRef<void()> work);
  ~Profile();
  Profile(const Profile&) = delete;
  // Collects no more; what there is stays to be read.
  void stop();

  std::map<std::string, Row, std::less<>> rows() const;
  // Longest first.
  std::vector<KernelRow> kernels() const;
  std::vector<Event> events() const;
  double compile_seconds() const;
  // The kernels as an aligned table, longest first, at most `rows` of them: calls, time, share, bytes and operations a
  // second, and how near that is to the ceilings of this machine (measured now if they have not been).
  std::string table(size_t rows = 40) const;
  // The events in the Trace Event Format, one line a thread.
  std::string chrome_trace() const;
  void write_chrome_trace(const std::string& path) const;

  // The eager parts that would gain by compiling, what that saves most first.
  std::vector<Advice> advise() const;
  // The same as a short list.
  std::string advice() const;

  // Null when nobody is collecting.
  static Profile* current() { return current_.load(std::memory_order_relaxed); }

  // A call that is being timed: engine/profile_timer.h.
  class Timer;

 private:
  struct State;
  static inline std::atomic<Profile*> current_{nullptr};
  const std::unique_ptr<State> state_;
};

}  // namespace sinter
