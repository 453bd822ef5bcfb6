#include "sinter/capture/captures.h"

namespace sinter::capture {

namespace {

double now() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point first = Clock::now();
  return std::chrono::duration<double>(Clock::now() - first).count();
}

}  // namespace

void Captures::add(CaptureRecord record) {
  std::lock_guard lock(mutex_);
  list_.push_back(std::move(record));
}

void Captures::clear() {
  std::lock_guard lock(mutex_);
  list_.clear();
}

std::vector<CaptureRecord> Captures::list() const {
  std::lock_guard lock(mutex_);
  return list_;
}

CaptureClock::CaptureClock() : start_(now()), before_(stage_times()) {}

CaptureRecord CaptureClock::stop(CaptureRecord record) const {
  record.start = start_;
  record.seconds = now() - start_;
  record.stages = stage_times() - before_;
  return record;
}

}  // namespace sinter::capture
