#include "sinter/serve/http.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include <dirent.h>

#include "sinter/base/error.h"
#include "sinter/serve/http_load.h"
#include "tests/serve/served_whale.h"

namespace sinter::serve {
namespace {

using testing::served_whale;

// A connection to a server of this process.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;

  bool is_connected() const { return connected_; }
  void send(const std::string& text) { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  void half_close() { ::shutdown(socket_, SHUT_WR); }
  // Until the text is there, or nothing more comes.
  std::string read_until(const std::string& end) {
    std::string out;
    char buffer[4096];
    while (out.find(end) == std::string::npos) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      out.append(buffer, size_t(got));
    }
    return out;
  }
  std::string read_all() { return read_until("\x01 never"); }

 private:
  int socket_;
  bool connected_ = false;
};

std::string post(const std::string& path, const std::string& body,
                 const std::string& headers = "Connection: close\r\n") {
  return format("POST {} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                path, body.size(), headers, body);
}
std::string get(const std::string& path, const std::string& headers = "Connection: close\r\n") {
  return format("GET {} HTTP/1.1\r\nHost: here\r\n{}\r\n", path, headers);
}
int status_of(const std::string& reply) { return reply.size() > 12 ? std::atoi(reply.c_str() + 9) : 0; }

// A server on a thread of its own.
class Served {
 public:
  explicit Served(HttpOptions options = {}, Engine& engine = served_whale()) : api_(engine, {.model_name = "whale"}) {
    options.port = 0;
    options.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    server_ = std::make_unique<HttpServer>(api_, options);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Served() {
    if (!thread_.joinable()) return;
    server_->stop();
    server_->stop();
    thread_.join();
  }
  uint16_t port() const { return server_->port(); }
  HttpServer& operator*() { return *server_; }
  std::string ask(const std::string& text) {
    Client client(port());
    client.send(text);
    return client.read_all();
  }
  void join() { thread_.join(); }
  std::string log() {
    std::lock_guard lock(mutex_);
    std::string out;
    for (auto& line : lines_) out += line + "\n";
    return out;
  }

 private:
  Api api_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// An engine of one's own, since a server closes its engine when it ends.
std::unique_ptr<Engine> own_engine() {
  auto engine = std::make_unique<Engine>(testing::whale(), &testing::chat_tokenizer(), testing::served_whale_options());
  engine->start();
  return engine;
}

bool becomes(const std::function<bool()>& is_so) {
  for (int i = 0; i < 2000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}
bool all_is_free(Engine& engine) {
  auto state = engine.state();
  return state.is_idle() && state.free_pages == state.total_pages;
}

// The one server of tests that do not end theirs; never destroyed, so that its engine stays open.
Served& served() {
  static Served* served = new Served;
  return *served;
}

constexpr const char* kLong = R"({"prompt":"The","max_tokens":120,"ignore_eos":true,"temperature":0,"stream":true})";

TEST(Http, AnswersSeveralCallsOfAConnection) {
  Client client(served().port());
  for (int i = 0; i < 3; ++i) {
    client.send(post("/v1/completions", R"({"prompt":"a","max_tokens":2})", "X-Request-Id: mine-7\r\n"));
    const std::string reply = client.read_until("}}}");
    EXPECT_EQ(status_of(reply), 200) << reply;
    EXPECT_NE(reply.find("X-Request-Id: mine-7\r\n"), std::string::npos);
    EXPECT_NE(reply.find("cmpl-mine-7"), std::string::npos);
  }
  EXPECT_NE(served().log().find(R"("request_id":"mine-7")"), std::string::npos);
}

TEST(Http, HeadHasNoBody) {
  const std::string reply = served().ask("HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_of(reply), 200);
  EXPECT_TRUE(reply.ends_with("\r\n\r\n")) << reply;
}

TEST(Http, StreamsInChunks) {
  const std::string reply = served().ask(post("/v1/completions", kLong));
  EXPECT_NE(reply.find("Content-Type: text/event-stream"), std::string::npos) << reply.substr(0, 500);
  EXPECT_NE(reply.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_NE(reply.find("Cache-Control: no-store"), std::string::npos);
  EXPECT_NE(reply.find("data: [DONE]\n\n"), std::string::npos);
  EXPECT_TRUE(reply.ends_with("0\r\n\r\n"));
}

TEST(Http, RefusesWhatIsNotForIt) {
  HttpOptions options;
  options.most_header_bytes = 2000;
  options.most_body_bytes = 5000;
  options.header_s = 0.5;
  auto engine = own_engine();
  Served served(options, *engine);
  EXPECT_EQ(status_of(served.ask(get("/nothing"))), 404);
  EXPECT_EQ(status_of(served.ask(get("/v1/completions"))), 405);
  EXPECT_EQ(status_of(served.ask(post("/v1/completions", "{"))), 400);
  EXPECT_EQ(status_of(served.ask(post("/v1/completions", std::string(6000, ' ')))), 413);
  EXPECT_EQ(status_of(served.ask(get("/health", "X: " + std::string(3000, 'x') + "\r\n"))), 431);
  EXPECT_EQ(status_of(served.ask("no HTTP at all\r\n\r\n")), 400);
  EXPECT_EQ(status_of(served.ask("POST /v1/completions HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: "
                                 "2\r\nConnection: close\r\n\r\n{}")),
            415);
  // Who does not say what it wants is left.
  Client silent(served.port());
  EXPECT_EQ(silent.read_all(), "");
}

TEST(Http, KeysAreAskedForEverywhereButHealthAndThePage) {
  HttpOptions options;
  options.keys = {"first", "second"};
  auto engine = own_engine();
  Served served(options, *engine);
  EXPECT_EQ(status_of(served.ask(get("/health"))), 200);
  EXPECT_NE(served.ask(get("/")).find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  for (const char* path : {"/v1/models", "/metrics", "/version"}) {
    const std::string refused = served.ask(get(path));
    EXPECT_EQ(status_of(refused), 401);
    EXPECT_NE(refused.find("invalid_api_key"), std::string::npos);
    EXPECT_EQ(status_of(served.ask(get(path, "Authorization: Bearer fir\r\nConnection: close\r\n"))), 401);
    EXPECT_EQ(status_of(served.ask(get(path, "Authorization: Bearer \r\nConnection: close\r\n"))), 401);
    EXPECT_EQ(status_of(served.ask(get(path, "Authorization: Bearer second\r\nConnection: close\r\n"))), 200);
  }
  // What one key's prompt has left in the cache is not told to the other.
  const std::string body =
      R"({"prompt":"It was the best of times, it was the worst of times, it was the age of wisdom","max_tokens":1})";
  auto cached = [&](const std::string& key) {
    const std::string reply =
        served.ask(post("/v1/completions", body, "Authorization: Bearer " + key + "\r\nConnection: close\r\n"));
    return reply.find("\"cached_tokens\":0") == std::string::npos;
  };
  EXPECT_FALSE(cached("first"));
  EXPECT_TRUE(cached("first"));
  EXPECT_FALSE(cached("second"));
}

TEST(Http, AClientThatGoesAwayIsNoticed) {
  for (bool half : {false, true})
    for (bool stream : {true, false}) {
      Engine& engine = served_whale();
      std::string body = kLong;
      if (!stream) body.replace(body.find("true}"), 4, "false");
      {
        Client client(served().port());
        client.send(post("/v1/completions", body));
        if (stream)
          client.read_until("data: ");
        else
          EXPECT_TRUE(becomes([&] { return engine.state().running > 0; }));
        if (half) client.half_close();
        if (half) client.read_all();
      }
      EXPECT_TRUE(becomes([&] { return all_is_free(engine); }));
    }
  EXPECT_GE(served_whale().metrics().counter("requests_cancelled", "", {{"state", "decode"}}).value(), 1);
}

TEST(Http, ManyBrokenConnectionsLeaveNothing) {
  Engine& engine = served_whale();
  auto descriptors = [] {
    int count = 0;
    DIR* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder)) ++count;
    ::closedir(folder);
    return count;
  };
  served().ask(get("/health"));
  ASSERT_TRUE(becomes([&] { return all_is_free(engine); }));
  const int before = descriptors();
  std::mt19937 random(7);
  const std::string steady = R"({"prompt":"The whale","max_tokens":40,"ignore_eos":true,"temperature":0})";
  auto answer_of = [](const std::string& reply) { return reply.substr(reply.find("\"choices\"")); };
  const std::string want = answer_of(served().ask(post("/v1/completions", steady)));
  for (int i = 0; i < 300; ++i) {
    Client client(served().port());
    const std::string text = post("/v1/completions", kLong);
    const size_t sent = random() % 3 == 0 ? random() % text.size() : text.size();
    client.send(text.substr(0, sent));
    if (random() % 2) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    if (random() % 4 == 0) client.half_close();
    if (i % 50 != 0) continue;
    EXPECT_EQ(answer_of(served().ask(post("/v1/completions", steady))).substr(0, 60), want.substr(0, 60)) << i;
  }
  EXPECT_TRUE(becomes([&] { return all_is_free(engine); }));
  EXPECT_TRUE(becomes([&] { return descriptors() <= before; })) << descriptors() << " " << before;
}

TEST(Http, TellsToComeBackWhenTheQueueIsFull) {
  EngineOptions options = testing::served_whale_options();
  options.decoder.rows = {1};
  options.most_queued = 1;
  Engine engine(testing::whale(), &testing::chat_tokenizer(), options);
  engine.start();
  Served served({}, engine);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<Client>(served.port()));
    clients.back()->send(post("/v1/completions", kLong));
  }
  ASSERT_TRUE(becomes([&] { return engine.state().running + engine.state().waiting == 2; }));
  const std::string refused = served.ask(post("/v1/completions", kLong));
  EXPECT_EQ(status_of(refused), 429);
  EXPECT_NE(refused.find("Retry-After: 1\r\n"), std::string::npos);
  for (auto& client : clients)
    EXPECT_NE(client->read_all().find("[DONE]"), std::string::npos) << "who was taken is answered";
}

TEST(Http, LetsAnswersEndWhenItIsToldToStop) {
  auto engine = own_engine();
  Served served({}, *engine);
  Client streaming(served.port()), idle(served.port());
  idle.send(get("/health", ""));
  idle.read_until("{}");
  streaming.send(post("/v1/completions", kLong));
  streaming.read_until("data: ");
  (*served).stop();
  EXPECT_EQ(idle.read_all(), "") << "who asks for nothing is left at once";
  EXPECT_TRUE(becomes([&] { return !Client(served.port()).is_connected(); })) << "nobody new";
  const std::string rest = streaming.read_all();
  EXPECT_NE(rest.find("[DONE]"), std::string::npos);
  EXPECT_EQ(rest.find("error"), std::string::npos);
  served.join();
}

TEST(Http, EndsWhatTakesTooLongToEnd) {
  HttpOptions options;
  options.drain_s = 0;
  auto engine = own_engine();
  Served served(options, *engine);
  Client streaming(served.port());
  streaming.send(post("/v1/completions", kLong));
  streaming.read_until("data: ");
  (*served).stop();
  const std::string rest = streaming.read_all();
  EXPECT_NE(rest.find("shutting down"), std::string::npos) << rest;
  served.join();
  EXPECT_TRUE(becomes([&] { return all_is_free(*engine); }));
}

TEST(Http, APageOfAnotherOriginMayAskWhereItIsKnown) {
  HttpOptions options;
  options.origins = {"http://known"};
  auto engine = own_engine();
  Served served(options, *engine);
  const std::string known = served.ask(get("/v1/models", "Origin: http://known\r\nConnection: close\r\n"));
  EXPECT_NE(known.find("Access-Control-Allow-Origin: http://known\r\n"), std::string::npos);
  EXPECT_EQ(served.ask(get("/v1/models", "Origin: http://other\r\nConnection: close\r\n")).find("Access-Control"),
            std::string::npos);
  EXPECT_EQ(status_of(served.ask(
                "OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nOrigin: http://known\r\nConnection: close\r\n\r\n")),
            204);
}

TEST(Http, IsMeasuredByItsOwnClient) {
  const std::string url = format("http://127.0.0.1:{}", served().port());
  for (int64_t users : {0, 3}) {
    const LoadResult result =
        run_load({.url = url, .requests = 12, .users = users, .rate = 100, .prompts = {4, 20}, .new_tokens = {7}});
    ASSERT_EQ(result.answers.size(), 12u);
    for (auto& answer : result.answers) {
      EXPECT_TRUE(answer.is_answered()) << answer.status;
      EXPECT_EQ(answer.tokens, 7);
      EXPECT_GT(answer.first, 0);
      EXPECT_GE(answer.whole, answer.first);
      EXPECT_LE(answer.whole, result.seconds);
    }
  }
  EXPECT_THROW(run_load({.url = "localhost"}), Error);
  EXPECT_THROW(run_load({.url = "http://127.0.0.1:1"}), Error);
}

}  // namespace
}  // namespace sinter::serve
