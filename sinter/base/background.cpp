#include "sinter/base/background.h"

#include <pthread.h>
#include <unistd.h>

#include <deque>
#include <optional>
#include <thread>

#include "sinter/base/progress.h"
#include "sinter/base/thread_pool.h"

namespace sinter {

class BackgroundThread {
 public:
  // Never freed: tasks may be submitted in static destructors.
  static BackgroundThread& instance() {
    static auto* thread = new BackgroundThread;
    static struct AtExit {
      ~AtExit() { thread->shut_down(); }
    } at_exit;
    return *thread;
  }

  // A task may be the first to use what is destroyed at exit, which is then destroyed before `AtExit`. What belongs to
  // the main thread goes first of all.
  static void wait_at_end_of_main() {
#ifdef __linux__
    thread_local struct AtEnd {
      bool is_main = getpid() == gettid();
      ~AtEnd() {
        if (is_main) instance().shut_down();
      }
    } at_end;
    (void)at_end.is_main;
#endif
  }

  bool is_here() const { return getpid() == owner_; }

  bool submit(std::shared_ptr<BackgroundTasks> tasks, std::function<void()> task) {
    std::lock_guard lock(mutex_);
    if (stop_ || !is_here()) return false;
    queue_.push_back({std::move(tasks), std::move(task)});
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { run(); });
#ifdef __linux__
      pthread_setname_np(thread_.native_handle(), "sinter-compile");
#endif
    }
    work_.notify_one();
    return true;
  }

 private:
  struct Item {
    std::shared_ptr<BackgroundTasks> tasks;
    std::function<void()> task;
  };

  void run() {
    Progress::Silence silence;
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      Item item = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        std::optional<InlineLoops> alone;
        if (!item.tasks->shares_pool_) alone.emplace();
        item.task();
      } catch (...) {
        error = std::current_exception();
      }
      item.task = nullptr;  // what it holds goes before anybody hears that it is over
      item.tasks->finish(error);
      item.tasks = nullptr;
      lock.lock();
    }
  }

  void shut_down() {
    if (!is_here()) return;
    std::deque<Item> dropped;
    std::thread thread;
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      dropped.swap(queue_);
      thread.swap(thread_);
    }
    work_.notify_all();
    if (thread.joinable()) thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
    for (auto& item : dropped) item.tasks->finish(nullptr);
  }

  const pid_t owner_ = getpid();
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Item> queue_;
  std::thread thread_;
  bool stop_ = false;
};

// The main thread loads the library, as a rule; tasks may come from others.
[[maybe_unused]] static const bool main_waits = (BackgroundThread::wait_at_end_of_main(), true);

std::shared_ptr<BackgroundTasks> BackgroundTasks::make(bool shares_pool) {
  BackgroundThread::instance();
  BackgroundThread::wait_at_end_of_main();
  return std::shared_ptr<BackgroundTasks>(new BackgroundTasks(shares_pool));
}

bool BackgroundTasks::submit(std::function<void()> task) {
  BackgroundThread::wait_at_end_of_main();
  {
    std::lock_guard lock(mutex_);
    ++pending_;
  }
  if (BackgroundThread::instance().submit(shared_from_this(), std::move(task))) return true;
  finish(nullptr);
  return false;
}

void BackgroundTasks::finish(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    --pending_;
    if (error && !error_) error_ = std::move(error);
  }
  done_.notify_all();
}

bool BackgroundTasks::idle() const {
  std::lock_guard lock(mutex_);
  return pending_ == 0;
}

void BackgroundTasks::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return pending_ == 0 || !BackgroundThread::instance().is_here(); });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace sinter
