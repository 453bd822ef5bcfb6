#include "sinter/serve/http.h"

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <random>
#include <set>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "sinter/base/error.h"
#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using HttpRequest = http::request<http::string_body>;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

// In log lines alone.
constexpr int kClientGone = 499;

// Takes as long whichever character differs.
bool is_same(std::string_view a, std::string_view b) {
  unsigned difference = unsigned(a.size() != b.size());
  for (size_t i = 0; i < a.size(); ++i) difference |= unsigned(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  return difference == 0;
}

// The caller's own where it is harmless in a log line.
std::string request_id(std::string_view given) {
  auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (!given.empty() && given.size() <= 128 && std::all_of(given.begin(), given.end(), is_plain))
    return std::string(given);
  static thread_local std::mt19937_64 random{(uint64_t(std::random_device{}()) << 32) ^ std::random_device{}()};
  std::string out;
  for (int i = 0; i < 32; ++i) out += "0123456789abcdef"[random() & 15];
  return out;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Api& api, HttpOptions options)
      : api_(api),
        options_(std::move(options)),
        acceptor_(io_),
        signals_(io_),
        drained_(io_),
        pool_(size_t(options_.api_threads)) {
    error_code failed;
    const auto address = asio::ip::make_address(options_.host, failed);
    check(!failed, "serve: '{}' is no address to listen at; 127.0.0.1 is this machine alone, 0.0.0.0 all",
          options_.host);
    const tcp::endpoint at(address, options_.port);
    acceptor_.open(at.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(at, failed);
    check(!failed, "serve: cannot listen at {}:{}: {}", options_.host, options_.port, failed.message());
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  }
  ~Impl() { pool_.join(); }

  uint16_t port() const { return port_; }

  void run() {
    for (int signal : {SIGTERM, SIGINT}) signals_.add(signal);
    watch_signals();
    asio::co_spawn(io_, accept(), asio::detached);
    io_.run();
    pool_.join();
  }

  void stop() {
    asio::post(io_, [this] { drain(); });
  }

 private:
  // A connection, as draining sees it.
  struct Session {
    explicit Session(tcp::socket socket) : stream(std::move(socket)) {}
    beast::tcp_stream stream;
    bool is_idle = true;  // waits for a call
    std::function<void()> wake = {};
  };
  // What an answer waits for.
  struct Live {
    explicit Live(asio::io_context& io) : timer(io) {}
    void wake() {
      has_news = true;
      timer.cancel();
    }
    asio::steady_timer timer;
    bool has_news = true, is_gone = false, was_quiet = false;
  };
  struct Exchange {
    serve::Call call;
    unsigned version = 11;
    bool keep_alive = true, wants_body = true;
    std::string origin, arm;
    Clock::time_point begin = Clock::now();
    int status = 0;
    const char* outcome = "done";
    Usage usage = {};
  };

  // --- ending

  void watch_signals() {
    signals_.async_wait([this](error_code failed, int) {
      if (failed) return;
      // First, since draining an idle server ends the watch.
      watch_signals();
      drain();
    });
  }

  void drain() {
    if (drains_) return io_.stop();
    drains_ = true;
    api_.close();
    error_code ignored;
    acceptor_.close(ignored);
    for (auto* session : sessions_)
      if (session->is_idle) session->stream.close();
    drained_.expires_after(seconds(options_.drain_s));
    drained_.async_wait([this](error_code failed) {
      if (failed) return;
      is_late_ = true;
      for (auto* session : sessions_)
        if (session->wake) session->wake();
    });
    end_if_empty();
  }

  void end_if_empty() {
    if (!drains_ || !sessions_.empty()) return;
    drained_.cancel();
    signals_.cancel();
  }

  // --- connections

  awaitable<void> accept() {
    while (acceptor_.is_open()) {
      error_code failed;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(use_awaitable, failed));
      if (failed == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
      if (failed) {
        // Too many open files: those that end make room.
        asio::steady_timer pause(io_, std::chrono::milliseconds(50));
        co_await pause.async_wait(asio::redirect_error(use_awaitable, failed));
        continue;
      }
      if (int64_t(sessions_.size()) >= options_.most_connections) {
        socket.close(failed);
        continue;
      }
      socket.set_option(tcp::no_delay(true), failed);
      asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
    }
  }

  awaitable<void> serve(tcp::socket socket) {
    Session session(std::move(socket));
    sessions_.insert(&session);
    try {
      co_await calls(session);
    } catch (const std::exception&) {
      // The connection broke; whoever called knows.
    }
    error_code ignored;
    session.stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    session.stream.close();
    sessions_.erase(&session);
    end_if_empty();
  }

  awaitable<void> calls(Session& session) {
    beast::flat_buffer buffer;
    for (bool first = true;; first = false) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(uint32_t(options_.most_header_bytes));
      parser.body_limit(uint64_t(options_.most_body_bytes));
      error_code failed;
      session.is_idle = true;
      session.stream.expires_after(seconds(first ? options_.header_s : options_.idle_s));
      co_await http::async_read_header(session.stream, buffer, parser, asio::redirect_error(use_awaitable, failed));
      session.is_idle = false;
      Exchange call;
      if (failed) {
        const int status = status_of(failed);
        if (status == 0) co_return;
        co_await answer_and_leave(session, call, error_reply(status, failed.message()));
        co_return;
      }
      read_header(parser.get(), call);
      auto refused = refusal(parser.get(), call);
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        if (refused) {
          co_await answer_and_leave(session, call, *refused);
          co_return;
        }
        http::response<http::empty_body> go(http::status::continue_, call.version);
        co_await http::async_write(session.stream, go, use_awaitable);
      }
      session.stream.expires_after(seconds(options_.body_s));
      co_await http::async_read(session.stream, buffer, parser, asio::redirect_error(use_awaitable, failed));
      if (failed) {
        if (int status = status_of(failed))
          co_await answer_and_leave(session, call, error_reply(status, failed.message()));
        co_return;
      }
      if (refused) {
        co_await answer(session, call, *refused);
        if (!call.keep_alive) co_return;
        continue;
      }
      call.call.body = std::move(parser.get().body());
      co_await respond(session, call);
      if (!call.keep_alive) co_return;
    }
  }

  // Of what cannot be read; 0: nobody is there to be told.
  static int status_of(const error_code& failed) {
    if (failed == http::error::header_limit) return 431;
    if (failed == http::error::body_limit) return 413;
    if (failed == beast::error::timeout || failed == http::error::end_of_stream) return 0;
    return failed.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
  }

  void read_header(const HttpRequest& request, Exchange& call) const {
    call.version = request.version();
    call.keep_alive = request.keep_alive() && !drains_;
    call.wants_body = request.method() != http::verb::head;
    call.call.method = call.wants_body ? std::string(request.method_string()) : "GET";
    call.call.path = std::string(request.target().substr(0, request.target().find('?')));
    call.call.id = request_id(std::string_view(request["X-Request-Id"].data(), request["X-Request-Id"].size()));
    call.call.key = std::string(request["X-Sinter-Key"]);
    call.call.arm = std::string(request["X-Sinter-Arm"]);
    const auto origin = request[http::field::origin];
    for (auto& known : options_.origins)
      if (!origin.empty() && (known == "*" || known == std::string(origin)))
        call.origin = known == "*" ? "*" : std::string(origin);
  }

  // What is told from the header alone.
  std::optional<Reply> refusal(const HttpRequest& request, Exchange& call) const {
    if (call.call.method == "OPTIONS" && !call.origin.empty()) return Reply{.status = 204};
    if (call.call.path == "/health") {
      if (drains_) return error_reply(503, "the server is shutting down");
      return {};
    }
    // The page asks for a key itself.
    const bool is_page = call.call.path == "/" && call.call.method == "GET";
    if (!options_.keys.empty() && !is_page) {
      const auto given = request[http::field::authorization];
      const std::string_view text(given.data(), given.size()), scheme = "Bearer ";
      bool is_known = false;
      for (size_t i = 0; i < options_.keys.size(); ++i)
        if (text.starts_with(scheme) && is_same(text.substr(scheme.size()), options_.keys[i])) {
          is_known = true;
          call.call.tenant = format("{}", i);
        }
      if (!is_known) return error_reply(401, "Incorrect API key provided.", "", "invalid_api_key");
    }
    if (drains_) return error_reply(503, "the server is shutting down");
    const auto type = request[http::field::content_type];
    if (call.call.method == "POST" && !type.empty() && !beast::iequals(type.substr(0, 16), "application/json"))
      return error_reply(415, format("the body is {}; application/json is taken", std::string(type)));
    return {};
  }

  // --- answers

  awaitable<void> respond(Session& session, Exchange& call) {
    // Whether the server lives is told whatever else it has to do.
    if (call.call.path == "/health") {
      const Outcome health = api_.call(call.call);
      co_await answer(session, call, health.reply);
      co_return;
    }
    auto ask = [this, &call]() -> awaitable<Outcome> { co_return api_.call(call.call); };
    Outcome outcome = co_await asio::co_spawn(pool_, std::move(ask), use_awaitable);
    if (!outcome.generation) {
      co_await answer(session, call, outcome.reply);
      co_return;
    }
    call.arm = outcome.arm;
    auto live = std::make_shared<Live>(io_);
    // The engine's thread may still be calling when all else is gone.
    outcome.generation->on_event([io = io_kept_, weak = std::weak_ptr(live)] {
      asio::post(*io, [weak] {
        if (auto live = weak.lock()) live->wake();
      });
    });
    session.wake = [live] { live->wake(); };
    watch(session.stream.socket(), live);
    std::exception_ptr broken;
    try {
      if (outcome.generation->is_stream())
        co_await send_stream(session, call, *outcome.generation, *live);
      else
        co_await send_whole(session, call, *outcome.generation, *live);
    } catch (const std::exception&) {
      broken = std::current_exception();
      call.outcome = "connection broken";
    }
    session.wake = {};
    outcome.generation->cancel();
    call.usage = outcome.generation->usage();
    error_code ignored;
    session.stream.socket().cancel(ignored);  // the watch
    log(call);
    if (broken) std::rethrow_exception(broken);
  }

  // Notices that the client has gone: it has nothing to say while it waits, so that being readable is the end, or its
  // next call.
  static void watch(tcp::socket& socket, const std::shared_ptr<Live>& live) {
    socket.async_wait(tcp::socket::wait_read,
                      [weak = std::weak_ptr(live), handle = socket.native_handle()](error_code failed) {
                        auto live = weak.lock();
                        if (!live || failed) return;
                        char byte;
                        if (::recv(handle, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return;
                        live->is_gone = true;
                        live->wake();
                      });
  }

  // Until there is something new; false: the answer is over before its time.
  awaitable<bool> wait_for_news(Exchange& call, Live& live) {
    if (!live.has_news) {
      live.timer.expires_after(seconds(options_.ping_s));
      error_code woken;
      co_await live.timer.async_wait(asio::redirect_error(use_awaitable, woken));
    }
    live.was_quiet = !live.has_news;
    live.has_news = false;
    if (live.is_gone)
      call.outcome = "client gone";
    else if (is_late_)
      call.outcome = "shut down";
    else if (Clock::now() - call.begin > seconds(options_.answer_s))
      call.outcome = "too late";
    else
      co_return true;
    co_return false;
  }

  awaitable<void> send_whole(Session& session, Exchange& call, Generation& generation, Live& live) {
    while (true) {
      if (!co_await wait_for_news(call, live)) break;
      generation.take();
      if (!generation.is_done()) continue;
      Reply reply = generation.reply();
      co_await write_reply(session, call, reply);
      co_return;
    }
    call.keep_alive = false;
    call.status = kClientGone;
    if (live.is_gone) co_return;
    Reply reply =
        is_late_ ? error_reply(503, "the server is shutting down") : error_reply(504, "the answer takes too long");
    co_await write_reply(session, call, reply);
  }

  awaitable<void> send_stream(Session& session, Exchange& call, Generation& generation, Live& live) {
    http::response<http::empty_body> head(http::status::ok, call.version);
    common_fields(head, call);
    head.set(http::field::content_type, "text/event-stream; charset=utf-8");
    head.set(http::field::cache_control, "no-store");
    head.set("X-Accel-Buffering", "no");
    const bool chunked = call.version == 11;
    if (!chunked) call.keep_alive = false;
    head.keep_alive(call.keep_alive);
    head.chunked(chunked);
    http::response_serializer<http::empty_body> serializer(head);
    call.status = 200;
    session.stream.expires_after(seconds(options_.stall_s));
    co_await http::async_write_header(session.stream, serializer, use_awaitable);
    bool goes_on = true;
    while (goes_on) {
      goes_on = co_await wait_for_news(call, live);
      std::string text = generation.take();
      if (!goes_on && live.is_gone) break;
      if (!goes_on && !generation.is_done())
        text +=
            "data: " + error_reply(503, is_late_ ? "the server is shutting down" : "the answer takes too long").body +
            "\n\n";
      if (generation.is_done()) goes_on = false;
      if (text.empty() && goes_on && live.was_quiet) text = ": ping\n\n";
      if (text.empty()) continue;
      session.stream.expires_after(seconds(options_.stall_s));
      if (chunked)
        co_await asio::async_write(session.stream, http::make_chunk(asio::buffer(text)), use_awaitable);
      else
        co_await asio::async_write(session.stream, asio::buffer(text), use_awaitable);
    }
    if (live.is_gone) {
      call.keep_alive = false;
      call.status = kClientGone;
      co_return;
    }
    if (chunked) co_await asio::async_write(session.stream, http::make_chunk_last(), use_awaitable);
  }

  // To a caller who may still be sending: what comes is taken for a moment, or the answer would be lost with it.
  awaitable<void> answer_and_leave(Session& session, Exchange& call, Reply reply) {
    call.keep_alive = false;
    co_await answer(session, call, reply);
    error_code failed;
    session.stream.socket().shutdown(tcp::socket::shutdown_send, failed);
    session.stream.expires_after(std::chrono::seconds(1));
    std::vector<char> sink(1 << 16);
    for (int i = 0; i < 1024 && !failed; ++i)
      co_await session.stream.async_read_some(asio::buffer(sink), asio::redirect_error(use_awaitable, failed));
  }

  awaitable<void> answer(Session& session, Exchange& call, const Reply& reply) {
    co_await write_reply(session, call, reply);
    log(call);
  }

  awaitable<void> write_reply(Session& session, Exchange& call, const Reply& reply) {
    call.status = reply.status;
    http::response<http::string_body> response(http::status(reply.status), call.version);
    common_fields(response, call);
    if (!reply.body.empty()) response.set(http::field::content_type, reply.content_type);
    // A page has what it needs in itself and asks nobody but this server.
    if (reply.content_type.starts_with("text/html"))
      response.set("Content-Security-Policy",
                   "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
                   "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    if (reply.retry_after_s > 0) response.set(http::field::retry_after, format("{}", reply.retry_after_s));
    if (reply.status == 401) response.set(http::field::www_authenticate, "Bearer");
    if (drains_) call.keep_alive = false;
    response.keep_alive(call.keep_alive);
    if (call.wants_body) response.body() = reply.body;
    response.prepare_payload();
    session.stream.expires_after(seconds(options_.stall_s));
    co_await http::async_write(session.stream, response, use_awaitable);
  }

  template <class Response>
  void common_fields(Response& response, const Exchange& call) const {
    response.set(http::field::server, "sinter");
    response.set("X-Request-Id", call.call.id);
    if (!call.arm.empty()) response.set("X-Sinter-Arm", call.arm);
    if (call.origin.empty()) return;
    response.set(http::field::access_control_allow_origin, call.origin);
    response.set(http::field::access_control_allow_headers, "Authorization, Content-Type, X-Request-Id");
    response.set(http::field::access_control_allow_methods, "GET, POST, OPTIONS");
    response.set(http::field::access_control_expose_headers, "X-Request-Id");
    response.set(http::field::vary, "Origin");
  }

  void log(const Exchange& call) const {
    if (!options_.log) return;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Json line{{"time", double(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1000},
              {"request_id", call.call.id},
              {"method", call.call.method},
              {"path", call.call.path},
              {"status", call.status},
              {"outcome", call.outcome},
              {"seconds", std::chrono::duration<double>(Clock::now() - call.begin).count()}};
    if (!call.arm.empty()) line["arm"] = call.arm;
    if (call.usage.prompt_tokens > 0) {
      line["prompt_tokens"] = call.usage.prompt_tokens;
      line["completion_tokens"] = call.usage.completion_tokens;
      line["cached_tokens"] = call.usage.cached_tokens;
    }
    options_.log(to_line(line));
  }

  Api& api_;
  const HttpOptions options_;
  const std::shared_ptr<asio::io_context> io_kept_ = std::make_shared<asio::io_context>(1);
  asio::io_context& io_ = *io_kept_;
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::steady_timer drained_;
  asio::thread_pool pool_;
  uint16_t port_ = 0;
  std::set<Session*> sessions_;
  bool drains_ = false, is_late_ = false;
};

HttpServer::HttpServer(Api& api, HttpOptions options) : impl_(std::make_unique<Impl>(api, std::move(options))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace sinter::serve
