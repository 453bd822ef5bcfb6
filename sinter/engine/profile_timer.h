#pragma once
// How the engine tells a profile what it runs, and what the profile keeps of it.
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "sinter/engine/profile.h"
#include "sinter/graph/op.h"

namespace sinter {

// A call that is being timed, from its making on.
class Profile::Timer {
 public:
  explicit Timer(Profile& profile);
  // An eager op has run; it and its operands are remembered for advice.
  void eager(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, std::span<const Tensor> outputs);
  // A kernel of a program has run. What does not change between calls is asked for once for each `key`.
  // `seconds`: how long it ran, where that is not the time since the timer's making.
  void kernel(const void* key, FunctionRef<KernelRow()> describe, std::optional<double> seconds = {});
  // A whole program has run.
  void program(const std::string& name);

 private:
  Event event(Event::Kind kind);
  State& profile_;
  std::chrono::steady_clock::time_point begin_, end_;
  double compiling_;
};

// An eager op as advice needs it.
struct EagerCall {
  // A tensor by its body and memory: enough to know it again while the run goes on.
  struct Ref {
    const void* impl = nullptr;
    const void* memory = nullptr;
    int64_t offset = 0;
    Type type;
    Scalar number = 0;  // where the type is weak
  };
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Ref> inputs, outputs;
  int row = 0, thread = 0;
  double begin = 0, seconds = 0;  // seconds: without compiling
  double end = 0;
  Cost cost;
};

struct Profile::State {
  int thread_number();
  int row_of(const KernelRow& row);
  // The event, and in it what it spent compiling.
  void keep(const Event& event, double compiling);

  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::mutex mutex;  // guards what follows
  std::vector<KernelRow> rows;
  std::map<std::string, int, std::less<>> row_index;  // by name, place and program
  std::map<const void*, std::pair<int, Cost>> kernel_index;
  std::vector<std::string> programs;
  std::vector<Event> events;
  std::vector<EagerCall> eager;
  std::map<std::thread::id, int> threads;
  int64_t left_out = 0;  // events beyond the limit: counted in rows, absent from the trace
  double compile_seconds = 0;
};

}  // namespace sinter
