#include "sinter/runtime/cuda/compile_workers.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/log.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cuda/compile_channel.h"

namespace sinter::runtime {

namespace {

using namespace std::chrono_literals;

constexpr int kMostWorkers = 15;
constexpr int kMostHere = 8;        // threads in NVRTC where there are no workers: more only get into each other's way
constexpr auto kStartPatience = 30s;
constexpr auto kCompilePatience = 600s;

int most_workers() {
  if (const char* text = std::getenv("SINTER_CUDA_WORKERS"); text && *text)
    return std::clamp(std::atoi(text), 0, 256);
  return std::min(kMostWorkers, int(num_threads()) - 1);
}

// Between fork and exec: async-signal-safe calls only. The worker is no child of this process (a program that waits for its
// own children never sees it), and has none of its files but the channel, as descriptor 3.
[[noreturn]] void become_worker(const char* program, int socket) {
  if (_Fork() != 0) _exit(0);
  int channel = fcntl(socket, F_DUPFD, 4);  // so that neither end is in the way of the other
  int nothing = open("/dev/null", O_RDWR);
  if (channel < 0 || nothing < 0) _exit(1);
  dup2(nothing, 0);
  dup2(nothing, 1);
  dup2(channel, 3);
  syscall(SYS_close_range, 4u, ~0u, 0u);
  char* const arguments[] = {const_cast<char*>(program), nullptr};
  execv(program, arguments);
  _exit(1);
}

class Worker {
 public:
  // Null where it does not start, or does not open the same library.
  static std::unique_ptr<Worker> start(const NvrtcLibrary& library) {
    static const std::string program = plugin_path("sinter-nvrtc");
    if (access(program.c_str(), X_OK) != 0) return nullptr;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
    CompileChannel ours(ends[0]);
    {
      CompileChannel theirs(ends[1]);
      pid_t child = fork();
      if (child < 0) return nullptr;
      if (child == 0) become_worker(program.c_str(), ends[1]);
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
    }
    auto version = ours.send(library.file()) ? ours.receive(kStartPatience) : std::nullopt;
    if (!version || *version != library.version()) return nullptr;
    return std::unique_ptr<Worker>(new Worker(std::move(ours)));
  }

  // Nothing where the worker is gone, which one that had nothing to do for a while may be.
  std::optional<NvrtcOutcome> compile(const std::string& text, const std::string& architecture) {
    if (!channel_.send(architecture) || !channel_.send(text)) return {};
    auto kind = channel_.receive(kCompilePatience), code = channel_.receive(kCompilePatience),
         log = channel_.receive(kCompilePatience);
    if (!kind || kind->size() != 1 || !code || !log) return {};
    return NvrtcOutcome{NvrtcOutcome::Kind((*kind)[0]), std::move(*code), std::move(*log)};
  }

 private:
  explicit Worker(CompileChannel channel) : channel_(std::move(channel)) {}
  CompileChannel channel_;
};

class Workers {
 public:
  NvrtcOutcome compile(const NvrtcLibrary& library, const std::string& text, const std::string& architecture) {
    Seat seat = take_seat();
    if (!seat.here) {
      // One that waited may be gone: a fresh one is asked then. What that does not do is not for workers.
      std::optional<NvrtcOutcome> out;
      if (seat.worker) out = seat.worker->compile(text, architecture);
      if (!out && (seat.worker = Worker::start(library))) out = seat.worker->compile(text, architecture);
      bool done = out.has_value();
      give_back(std::move(seat), done);
      if (done) {
        ++compiled_;
        return std::move(*out);
      }
      seat = take_seat();  // none but this process from now on
    }
    struct Leave {
      Workers& all;
      Seat& seat;
      ~Leave() { all.give_back(std::move(seat), true); }
    } leave{*this, seat};
    return library.compile(text, architecture);
  }
  int64_t compiled() const { return compiled_; }

 private:
  struct Seat {
    bool here = false;
    std::unique_ptr<Worker> worker;  // null: one is still to be started
  };

  Seat take_seat() {
    std::unique_lock lock(mutex_);
    // The workers of a process are not its copy's.
    if (pid_t self = getpid(); self != owner_) owner_ = self, idle_.clear(), here_ = working_ = 0;
    for (;;) {
      if (here_ < (useless_ ? kMostHere : 1)) {
        ++here_;
        return {true, nullptr};
      }
      if (!useless_ && working_ < most_) {
        ++working_;
        Seat seat;
        if (!idle_.empty()) {
          seat.worker = std::move(idle_.back());
          idle_.pop_back();
        }
        return seat;
      }
      free_.wait(lock);
    }
  }
  void give_back(Seat seat, bool done) {
    std::lock_guard lock(mutex_);
    if (seat.here) {
      --here_;
    } else {
      --working_;
      if (done) {
        idle_.push_back(std::move(seat.worker));
      } else if (!useless_) {
        useless_ = true;
        log(LogTopic::kCode, "no compile workers: {} does not start or does not answer", plugin_path("sinter-nvrtc"));
      }
    }
    free_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Worker>> idle_;
  pid_t owner_ = getpid();
  int here_ = 0, working_ = 0;
  const int most_ = most_workers();
  bool useless_ = most_ <= 0;
  std::atomic<int64_t> compiled_ = 0;
};

Workers& workers() {
  static auto& instance = *new Workers;  // at exit the channels close, and the workers end
  return instance;
}

}  // namespace

NvrtcOutcome compile_on_any(const NvrtcLibrary& library, const std::string& text, const std::string& architecture) {
  return workers().compile(library, text, architecture);
}

int64_t compiled_by_workers() { return workers().compiled(); }

}  // namespace sinter::runtime
