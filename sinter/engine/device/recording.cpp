#include "sinter/engine/device/recording.h"

#include "sinter/base/error.h"

namespace sinter {

// More than this, and the caller's memory moves about for reasons of its own.
constexpr int kMostRecordings = 8;

Replay::Next Replay::next(std::span<const int64_t> cells) {
  if (gave_up_) return Next::kRun;
  if (last_.empty()) {
    last_.assign(cells.begin(), cells.end());
    return moving_.empty() ? Next::kRecord : Next::kRun;
  }
  bool moved = false;
  for (size_t i = 0; i < cells.size(); ++i)
    if (!moving_[i] && cells[i] != last_[i]) moved = moving_[i] = true;
  if (is_recorded() && !moved) return Next::kReplay;
  if (recordings_ == kMostRecordings) {
    give_up(format("memory that it reads was found in another place {} times", kMostRecordings));
    return Next::kRun;
  }
  return Next::kRecord;
}

}  // namespace sinter
