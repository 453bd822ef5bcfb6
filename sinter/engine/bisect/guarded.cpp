#include "sinter/engine/bisect/guarded.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"

namespace sinter::bisection {

namespace {

// A message on the pipe: one of these, eight bytes of length, the text.
constexpr char kNote = 'n', kResult = 'r', kFailure = 'e';

void send(int pipe, char kind, const std::string& text) {
  std::string message(1, kind);
  uint64_t size = text.size();
  message.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  for (size_t at = 0; at < message.size();) {
    ssize_t n = ::write(pipe, message.data() + at, message.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += size_t(n);
  }
}

[[noreturn]] void be_child(const Work& work, int pipe) {
  if (int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  // The parent may handle signals; here they end the process.
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) ::signal(number, SIG_DFL);
  InlineLoops alone;  // the threads of the pool did not come along
  try {
    send(pipe, kResult, work([&](const std::string& text) { send(pipe, kNote, text); }));
  } catch (const std::exception& error) {
    send(pipe, kFailure, error.what());
  }
  ::_exit(0);
}

// Takes whole messages from the front of what has come in.
void take_messages(std::string& received, Outcome& outcome, bool& ended) {
  constexpr size_t kHead = 1 + sizeof(uint64_t);
  while (received.size() >= kHead) {
    uint64_t size;
    std::memcpy(&size, received.data() + 1, sizeof(size));
    if (received.size() < kHead + size) return;
    std::string text = received.substr(kHead, size);
    char kind = received[0];
    received.erase(0, kHead + size);
    if (kind == kNote) {
      outcome.notes.push_back(std::move(text));
      continue;
    }
    outcome.kind = kind == kResult ? Outcome::Kind::kDone : Outcome::Kind::kError;
    outcome.text = std::move(text);
    ended = true;
  }
}

}  // namespace

Outcome run_guarded(const Work& work, double seconds) {
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC) == 0, "no pipe to a child process: {}", std::strerror(errno));
  pid_t child = ::fork();
  check(child >= 0, "no child process: {}", std::strerror(errno));
  if (child == 0) {
    ::close(ends[0]);
    be_child(work, ends[1]);
  }
  ::close(ends[1]);
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  Outcome outcome;
  std::string received;
  bool ended = false, late = false;
  for (char buffer[65536];;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{ends[0], POLLIN, 0};
    int ready = left > 0 ? ::poll(&waiting, 1, int(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    late = ready <= 0;
    if (late) break;
    ssize_t n = ::read(ends[0], buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    received.append(buffer, size_t(n));
    take_messages(received, outcome, ended);
  }
  ::close(ends[0]);
  if (late) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended) return outcome;
  outcome.kind = late ? Outcome::Kind::kTimedOut : Outcome::Kind::kCrashed;
  outcome.text = late ? format("it took more than {} s", seconds)
                 : WIFSIGNALED(status) ? format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                       : format("it ended with status {}", WEXITSTATUS(status));
  return outcome;
}

Outcome run_unguarded(const Work& work) {
  Outcome outcome;
  try {
    outcome.text = work([&](const std::string& text) { outcome.notes.push_back(text); });
  } catch (const std::exception& error) {
    outcome.kind = Outcome::Kind::kError;
    outcome.text = error.what();
  }
  return outcome;
}

}  // namespace sinter::bisection
