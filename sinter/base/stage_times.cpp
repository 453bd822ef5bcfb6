#include "sinter/base/stage_times.h"

#include <atomic>
#include <chrono>

#include "sinter/base/table.h"

namespace sinter {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kStages = size_t(CompileStage::kNone);
std::atomic<int64_t> g_nanoseconds[kStages], g_kernels;

thread_local CompileStage t_stage = CompileStage::kNone;
thread_local Clock::time_point t_since;
thread_local int64_t t_nanoseconds = 0;

// Closes the account of the stage under way and opens the next.
void change_to(CompileStage next) {
  auto now = Clock::now();
  if (t_stage != CompileStage::kNone) {
    int64_t spent = std::chrono::duration_cast<std::chrono::nanoseconds>(now - t_since).count();
    g_nanoseconds[size_t(t_stage)].fetch_add(spent, std::memory_order_relaxed);
    t_nanoseconds += spent;
  }
  t_stage = next;
  t_since = now;
}

}  // namespace

StageTimer::StageTimer(CompileStage stage) : outer_(t_stage) {
  if (stage == CompileStage::kEmit) g_kernels.fetch_add(1, std::memory_order_relaxed);
  change_to(stage);
}

StageTimer::~StageTimer() { change_to(outer_); }

StageTimes stage_times() {
  auto seconds = [](CompileStage s) { return 1e-9 * double(g_nanoseconds[size_t(s)].load(std::memory_order_relaxed)); };
  return {seconds(CompileStage::kCapture),   seconds(CompileStage::kPasses),    seconds(CompileStage::kSchedule),
          seconds(CompileStage::kEmit),      seconds(CompileStage::kToolchain), seconds(CompileStage::kDevice),
          seconds(CompileStage::kLibraries), seconds(CompileStage::kModules),   seconds(CompileStage::kRecording),
          g_kernels.load(std::memory_order_relaxed)};
}

double stage_seconds_of_this_thread() { return 1e-9 * double(t_nanoseconds); }

StageTimes StageTimes::operator-(const StageTimes& before) const {
  return {capture - before.capture,     passes - before.passes,       schedule - before.schedule,
          emit - before.emit,           toolchain - before.toolchain, device - before.device,
          libraries - before.libraries, modules - before.modules,     recording - before.recording,
          kernels - before.kernels};
}

std::vector<std::pair<const char*, double>> StageTimes::list() const {
  return {{"capture", capture},     {"passes", passes},       {"schedule", schedule},
          {"emit", emit},           {"toolchain", toolchain}, {"device", device},
          {"libraries", libraries}, {"modules", modules},     {"recording", recording}};
}

std::string StageTimes::text() const {
  auto ms = [](double seconds) { return fixed(seconds * 1e3, 1); };
  std::string out = format("{} ms: capture {}, passes {}, schedule {}, emit {}, toolchain {}", ms(total()), ms(capture),
                           ms(passes), ms(schedule), ms(emit), ms(toolchain));
  if (device + libraries + modules + recording > 0)
    out += format(", device {}, libraries {}, modules {}, recording {}", ms(device), ms(libraries), ms(modules),
                  ms(recording));
  return out + format("; {} kernels", kernels);
}

}  // namespace sinter
