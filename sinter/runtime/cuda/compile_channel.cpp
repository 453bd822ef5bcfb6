#include "sinter/runtime/cuda/compile_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

namespace sinter::runtime {

namespace {

constexpr uint64_t kLongest = uint64_t(1) << 30;  // bytes: no program nor its code is near it

}  // namespace

CompileChannel::~CompileChannel() {
  if (socket_ >= 0) close(socket_);
}

bool CompileChannel::send(std::string_view bytes) const {
  uint64_t length = bytes.size();
  char head[sizeof length];
  std::memcpy(head, &length, sizeof length);
  for (std::string_view part : {std::string_view(head, sizeof head), bytes})
    while (!part.empty()) {
      // Without a signal: a worker that is gone is no reason to end the program.
      ssize_t sent = ::send(socket_, part.data(), part.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      part.remove_prefix(size_t(sent));
    }
  return true;
}

bool CompileChannel::read_all(char* to, size_t size, std::chrono::steady_clock::time_point end) const {
  while (size > 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    int ready = poll(&waiting, 1, int(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t got = recv(socket_, to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= size_t(got);
  }
  return true;
}

std::optional<std::string> CompileChannel::receive(std::chrono::milliseconds patience) const {
  auto end = std::chrono::steady_clock::now() + patience;
  uint64_t length = 0;
  char head[sizeof length];
  if (!read_all(head, sizeof head, end)) return {};
  std::memcpy(&length, head, sizeof length);
  if (length > kLongest) return {};
  std::string out(size_t(length), '\0');
  if (!read_all(out.data(), out.size(), end)) return {};
  return out;
}

}  // namespace sinter::runtime
