#include "sinter/base/thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/base/log.h"

namespace sinter {

namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxPieces = 1024;
constexpr auto kSpinTime = std::chrono::milliseconds(2);

// True on a worker always, and on a caller while it runs a shared loop: loops begun there run inline.
thread_local bool in_loop = false;

struct LoopScope {
  LoopScope() { in_loop = true; }
  ~LoopScope() { in_loop = false; }
};

int available_cores() {
#ifdef __linux__
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::clamp(CPU_COUNT(&mask), 1, kMaxThreads);
#endif
  return std::clamp(int(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

int initial_threads(int cores) {
  const char* text = std::getenv("SINTER_NUM_THREADS");
  if (!text || !*text) return cores;
  int n = 0;
  auto [rest, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error == std::errc() && !*rest && n >= 1 && n <= kMaxThreads) return n;
  warn("SINTER_NUM_THREADS={} is not a number from 1 to {}; using {}", text, kMaxThreads, cores);
  return cores;
}

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits politely; again() is false once the time is up. The clock is read only every 32nd time, and from the 1024th on
// the core is offered to others then: the thread waited for may be queued behind this one.
class Spinner {
 public:
  explicit Spinner(bool enabled) : enabled_(enabled) {}
  bool again() {
    if (!enabled_) return false;
    cpu_pause();
    if (++count_ % 32) return true;
    if (count_ >= 1024) std::this_thread::yield();
    auto now = std::chrono::steady_clock::now();
    if (count_ == 32) deadline_ = now + kSpinTime;
    return now < deadline_;
  }

 private:
  bool enabled_;
  uint32_t count_ = 0;
  std::chrono::steady_clock::time_point deadline_;
};

// How a range is cut; a function of the range and the grain only.
struct Split {
  int64_t begin, end, step, count;

  Split(int64_t begin, int64_t end, int64_t grain) : begin(begin), end(end) {
    int64_t chunks = (end - begin - 1) / grain + 1;
    int64_t per_piece = (chunks - 1) / kMaxPieces + 1;
    step = per_piece * grain;
    count = (chunks - 1) / per_piece + 1;
  }

  void run(int64_t k, FunctionRef<void(int64_t, int64_t)> body) const {
    int64_t b = begin + k * step;
    body(b, k + 1 == count ? end : b + step);
  }
};

// One loop at a time is shared with the workers. `state_` is its gate: a worker counts itself in before it reads the
// loop, and only while the gate is open; the caller shuts the gate and waits for those inside, never for the others.
class Pool {
 public:
  Pool() : cores_(available_cores()), threads_(initial_threads(cores_)) {}

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void set_threads(int n) {
    {
      std::lock_guard lock(mutex_);
      threads_.store(n, std::memory_order_relaxed);
    }
    surplus_wakeup_.notify_all();
    work_wakeup_.notify_all();
  }

  void run(const Split& split, FunctionRef<void(int64_t, int64_t)> body) {
    LoopScope scope;
    int64_t k = 0;
    for (; split.count - k > 1; ++k) {
      if (!busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire))
        return run_shared(split, body, k);
      split.run(k, body);
    }
    split.run(k, body);
  }

  // At process exit: sends the workers home. Loops still work afterwards, on their callers alone.
  void shut_down() {
    if (getpid() != owner_) return;  // a forked child has no workers to wait for
    {
      std::lock_guard lock(mutex_);
      stop_.store(true, std::memory_order_relaxed);
    }
    surplus_wakeup_.notify_all();
    work_wakeup_.notify_all();
    auto self = std::this_thread::get_id();
    bool on_worker = std::any_of(workers_.begin(), workers_.end(), [&](auto& w) { return w.get_id() == self; });
    for (auto& w : workers_) on_worker ? w.detach() : w.join();
    workers_.clear();
  }

 private:
  // state_: loop number << 32 | most workers wanted << 18 | kCallerSleeps | kOpen | workers inside.
  static constexpr uint64_t kInside = 0xffff, kOpen = 1 << 16, kCallerSleeps = 1 << 17;
  static uint64_t inside(uint64_t state) { return state & kInside; }
  static uint64_t wanted(uint64_t state) { return (state >> 18) & 0x3fff; }
  static uint64_t loop_number(uint64_t state) { return state >> 32; }

  int helpers() const { return threads() - 1; }
  // Spinning pays only while every thread has a core of its own.
  bool may_spin() const { return cores_ > 1 && threads() <= cores_; }

  void run_shared(const Split& split, FunctionRef<void(int64_t, int64_t)> body, int64_t first) {
    start_missing_workers();
    split_ = &split;
    body_ = &body;
    failed_.store(false, std::memory_order_relaxed);
    next_.store(first, std::memory_order_relaxed);
    uint64_t most = uint64_t(std::clamp<int64_t>(helpers(), 0, split.count - first - 1));
    uint64_t number = loop_number(state_.load(std::memory_order_relaxed)) + 1;
    // Sequentially consistent with sleepers_: either we see the sleeper or it sees the new loop.
    state_.store(number << 32 | most << 18 | kOpen, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      work_wakeup_.notify_all();
    }
    take_pieces();
    shut_gate();
    std::exception_ptr error = std::move(error_);
    error_ = nullptr;
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(std::move(error));
  }

  void take_pieces() noexcept {
    const Split& split = *split_;
    try {
      int64_t k;
      while ((k = next_.fetch_add(1, std::memory_order_relaxed)) < split.count) split.run(k, *body_);
    } catch (...) {
      next_.store(split.count, std::memory_order_relaxed);
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }

  void shut_gate() {
    uint64_t state = state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (Spinner spinner(may_spin()); inside(state) > 0; state = state_.load(std::memory_order_acquire)) {
      if (spinner.again()) continue;
      std::unique_lock lock(mutex_);
      state_.fetch_or(kCallerSleeps, std::memory_order_acq_rel);
      done_wakeup_.wait(lock, [&] { return inside(state_.load(std::memory_order_acquire)) == 0; });
    }
  }

  bool enter(uint64_t state) {
    uint64_t number = loop_number(state);
    while ((state & kOpen) && loop_number(state) == number && inside(state) < wanted(state))
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) return true;
    return false;
  }

  void leave() {
    uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if (inside(before) == 1 && (before & kCallerSleeps)) {
      { std::lock_guard lock(mutex_); }
      done_wakeup_.notify_all();
    }
  }

  void worker(int index) {
    in_loop = true;
    uint64_t done = 0;  // the last loop this worker took part in
    Spinner spinner(may_spin());
    while (!stop_.load(std::memory_order_relaxed)) {
      uint64_t state = state_.load(std::memory_order_acquire);
      bool surplus = index >= helpers();
      if (!surplus && (state & kOpen) && loop_number(state) != done && enter(state)) {
        done = loop_number(state);
        take_pieces();
        leave();
        spinner = Spinner(may_spin());
      } else if (surplus || !spinner.again()) {
        sleep(index, loop_number(state));
        spinner = Spinner(may_spin());
      }
    }
  }

  // Until a loop newer than `seen` is published. That loop may be over by then: the worker still spins for the next,
  // or a train of short loops would find every worker asleep.
  void sleep(int index, uint64_t seen) {
    std::unique_lock lock(mutex_);
    auto surplus = [&] { return index >= helpers(); };
    auto stopped = [&] { return stop_.load(std::memory_order_relaxed); };
    if (surplus()) return surplus_wakeup_.wait(lock, [&] { return stopped() || !surplus(); });
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    work_wakeup_.wait(lock, [&] {
      return stopped() || surplus() || loop_number(state_.load(std::memory_order_seq_cst)) != seen;
    });
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  void start_missing_workers() {
    if (started_.load(std::memory_order_relaxed) >= helpers()) return;
    std::lock_guard lock(mutex_);
    try {
      while (!stop_.load(std::memory_order_relaxed) && int(workers_.size()) < helpers()) {
        workers_.emplace_back(&Pool::worker, this, int(workers_.size()));
#ifdef __linux__
        pthread_setname_np(workers_.back().native_handle(), "sinter-worker");
#endif
      }
    } catch (const std::exception& e) {
      warn("thread pool: only {} of {} threads could be started: {}", workers_.size() + 1, threads(), e.what());
      threads_.store(int(workers_.size()) + 1, std::memory_order_relaxed);
    }
    started_.store(int(workers_.size()), std::memory_order_relaxed);
  }

  const int cores_;
  const pid_t owner_ = getpid();

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<bool> busy_{false};  // some caller owns the fields below
  const Split* split_ = nullptr;
  const FunctionRef<void(int64_t, int64_t)>* body_ = nullptr;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  alignas(64) std::atomic<int> threads_;
  std::atomic<int> started_{0}, sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards workers_, and every change that a sleeper waits for
  std::condition_variable work_wakeup_, surplus_wakeup_, done_wakeup_;
  std::vector<std::thread> workers_;
};

// Never freed, for loops may run in other static destructors; only the workers are ended at exit.
Pool& pool() {
  static Pool* instance = new Pool;
  static struct AtExit {
    ~AtExit() { instance->shut_down(); }
  } at_exit;
  return *instance;
}

}  // namespace

InlineLoops::InlineLoops() : before_(in_loop) { in_loop = true; }
InlineLoops::~InlineLoops() { in_loop = before_; }

int num_threads() { return pool().threads(); }

void set_num_threads(int n) {
  check(n >= 1 && n <= kMaxThreads, "set_num_threads: {} is not a number from 1 to {}", n, kMaxThreads);
  note_host_change("set_num_threads()");
  pool().set_threads(n);
}

void detail::parallel_for_pieces(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  check(grain >= 1, "parallel_for: the grain is {}; it must be at least 1", grain);
  Split split(begin, end, grain);
  if (!in_loop && num_threads() > 1) return pool().run(split, body);
  for (int64_t k = 0; k < split.count; ++k) split.run(k, body);
}

}  // namespace sinter
