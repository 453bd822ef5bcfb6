#pragma once
// The API over HTTP/1.1. One thread holds all connections, a few read requests and make prompts of them, and the
// engine's answers. While an answer is under way its connection is watched: when the client goes away, the answer is
// cancelled.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/serve/api.h"

namespace sinter::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: any that is free
  // Where there are any, calls need one of them ("Authorization: Bearer KEY"), but for /health and the page. Each is a
  // tenant.
  std::vector<std::string> keys = {};
  std::vector<std::string> origins = {};  // whose pages in a browser may call; "*": all

  int64_t most_connections = 1024;
  int64_t most_header_bytes = 16 << 10, most_body_bytes = 8 << 20;
  int64_t api_threads = 2;
  // Seconds: to send a header, a body; to take a piece of an answer; between two calls of a connection; for a whole
  // answer; between two signs of life in a stream that has nothing to say.
  double header_s = 10, body_s = 30, stall_s = 30, idle_s = 75, answer_s = 600, ping_s = 15;
  double drain_s = 30;  // that answers under way have when the server is told to end
  // A line of JSON for each call, when it is over.
  std::function<void(const std::string& line)> log = {};
};

class HttpServer {
 public:
  // Listens at once; connections wait until run().
  HttpServer(Api& api, HttpOptions options);
  ~HttpServer();

  uint16_t port() const;
  // Serves until stop(), SIGTERM or SIGINT, and until what is under way then has ended.
  void run();
  // Takes nothing more, and lets what is under way end; a second time, at once. Any thread may call.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinter::serve
