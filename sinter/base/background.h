#pragma once
// Work that nobody waits for: one thread of the process does it, task after task.
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace sinter {

// Tasks that belong together. Their loops run on the background thread alone, so that they take no threads of others,
// unless they are made to share the pool.
//
// When the process ends, the task under way is waited for and the others are dropped; a forked child runs none.
class BackgroundTasks : public std::enable_shared_from_this<BackgroundTasks> {
 public:
  static std::shared_ptr<BackgroundTasks> make(bool shares_pool = false);

  // Hands over a task. False when it will never run, because the process ends.
  bool submit(std::function<void()> task);
  // Whether all tasks submitted so far are over.
  bool idle() const;
  // Waits until they are. Rethrows the first exception of a task, if there was one.
  void wait();

 private:
  friend class BackgroundThread;
  explicit BackgroundTasks(bool shares_pool) : shares_pool_(shares_pool) {}
  void finish(std::exception_ptr error);

  const bool shares_pool_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  int pending_ = 0;
  std::exception_ptr error_;
};

}  // namespace sinter
