#pragma once
// What this process and a compile worker say to each other: byte strings over a socket, each behind its length.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sinter::runtime {

class CompileChannel {
 public:
  // Owns the socket.
  explicit CompileChannel(int socket) : socket_(socket) {}
  CompileChannel(CompileChannel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  CompileChannel& operator=(CompileChannel&&) = delete;
  ~CompileChannel();

  // False where the other end is gone.
  bool send(std::string_view bytes) const;
  // Nothing where the other end is gone, says something too long to be true, or stays silent for so long.
  std::optional<std::string> receive(std::chrono::milliseconds patience) const;

 private:
  bool read_all(char* to, size_t size, std::chrono::steady_clock::time_point end) const;

  int socket_;
};

}  // namespace sinter::runtime
