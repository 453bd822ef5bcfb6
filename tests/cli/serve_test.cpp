// `sinter serve` as a process: it says where it listens, answers, and ends as it is told.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include "sinter/base/format.h"

namespace sinter {
namespace {

class Server {
 public:
  Server() {
    int output[2];
    EXPECT_EQ(pipe(output), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(output[1], STDOUT_FILENO);
      close(output[0]);
      execl(SINTER_COMMAND, SINTER_COMMAND, "serve", "--port", "0", "--quiet", "--rows", "1,2", "--chunks", "32",
            "--max-length", "128", nullptr);
      _exit(127);
    }
    close(output[1]);
    std::string said;
    for (char c; read(output[0], &c, 1) == 1 && c != '\n';) said += c;
    close(output[0]);
    const size_t colon = said.rfind("127.0.0.1:");
    EXPECT_NE(colon, std::string::npos) << said;
    if (colon != std::string::npos) port_ = std::atoi(said.c_str() + colon + 10);
  }
  ~Server() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
  }

  int connect_to() const {
    const int out = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(uint16_t(port_));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(out, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    return out;
  }
  void signal(int which) const { kill(pid_, which); }
  // The exit status.
  int wait() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  int port_ = 0;
};

std::string read_until(int socket, const std::string& end) {
  std::string out;
  char buffer[4096];
  while (out.find(end) == std::string::npos) {
    const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
    if (got <= 0) break;
    out.append(buffer, size_t(got));
  }
  return out;
}

TEST(CommandServe, AnswersAndLetsAnswersEndWhenItIsToldTo) {
  Server server;
  const std::string body = R"({"prompt":"Call me","max_tokens":100,"ignore_eos":true,"temperature":0,"stream":true})";
  const std::string call = format(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
  const int socket = server.connect_to();
  ASSERT_EQ(send(socket, call.data(), call.size(), MSG_NOSIGNAL), ssize_t(call.size()));
  EXPECT_NE(read_until(socket, "data: ").find("HTTP/1.1 200"), std::string::npos);
  server.signal(SIGTERM);
  EXPECT_NE(read_until(socket, "[DONE]").find("[DONE]"), std::string::npos) << "what was under way goes on";
  close(socket);
  EXPECT_EQ(server.wait(), 0);
}

TEST(CommandServe, EndsAtOnceWhereNothingIsUnderWay) {
  Server server;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace sinter
