#pragma once
// Who may use a device now: several engines take turns, step by step, in the order in which they ask.
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sinter::serve {

class Turns {
 public:
  // Waits for those who asked before.
  void take() {
    std::unique_lock lock(mutex_);
    const uint64_t own = next_++;
    changed_.wait(lock, [&] { return now_ == own; });
  }
  void give() {
    {
      std::lock_guard lock(mutex_);
      ++now_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, now_ = 0;
};

}  // namespace sinter::serve
