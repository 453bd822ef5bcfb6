#pragma once
// Where compile time goes: seconds by stage, summed over all threads of the process.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

enum class CompileStage : uint8_t {
  kCapture,    // recording the function, differentiating it, guards
  kPasses,     // graph to graph
  kSchedule,   // fusion, lowering, the memory plan
  kEmit,       // kernel text
  kToolchain,  // from text to loaded code: a compiler, the disk, or waiting for another thread's compiler
  kDevice,     // starting a GPU: its driver, a context
  kLibraries,  // loading and starting libraries for it, which are looked for when they are first needed
  kModules,    // machine code onto a GPU
  kRecording,  // CUDA graphs
  kNone        // not counted: kernels that run in the middle
};

struct StageTimes {
  double capture = 0, passes = 0, schedule = 0, emit = 0, toolchain = 0;  // seconds
  double device = 0, libraries = 0, modules = 0, recording = 0;           // of a GPU
  int64_t kernels = 0;                                                    // texts emitted

  double total() const {
    return capture + passes + schedule + emit + toolchain + device + libraries + modules + recording;
  }
  StageTimes operator-(const StageTimes& before) const;
  // Every stage with its seconds, by the name that it has in texts, in the order of the work.
  std::vector<std::pair<const char*, double>> list() const;
  // "12.3 ms: capture 1.0, passes 0.5, schedule 2.1, emit 0.2, toolchain 8.5; 3 kernels". Stages of a GPU where it had any.
  std::string text() const;
};

// Since the process began.
StageTimes stage_times();
// What this thread has spent in all stages.
double stage_seconds_of_this_thread();

// The time from its making to its end belongs to the stage, but for what timers made in between on this thread take: no
// moment counts twice.
class StageTimer {
 public:
  explicit StageTimer(CompileStage stage);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;

 private:
  CompileStage outer_;
};

}  // namespace sinter
