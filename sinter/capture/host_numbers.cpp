#include "sinter/capture/host_numbers.h"

namespace sinter::capture {

namespace {

// Numbers of a segment that begin to vary one after the other each cost a kernel: then all of them are values.
constexpr int kTimesOneByOne = 2;
constexpr size_t kMostPoints = 1 << 14;

}  // namespace

uint64_t HostNumbers::begin_call() {
  std::lock_guard lock(mutex_);
  return ++calls_;
}

bool HostNumbers::is_value(uint64_t call, uint64_t place, uint64_t point, const Scalar& number) {
  std::lock_guard lock(mutex_);
  Place& at = places_[place];
  if (at.calls > kTimesOneByOne) return true;
  auto found = at.points.find(point);
  if (found == at.points.end()) {
    if (point_count_ >= kMostPoints) return true;
    at.points.emplace(point, Point{number});
    ++point_count_;
    return false;
  }
  auto& [first, varies] = found->second;
  if (varies || first == number) return varies;
  varies = true;
  if (at.last_call != call) ++at.calls;
  at.last_call = call;
  return true;
}

}  // namespace sinter::capture
