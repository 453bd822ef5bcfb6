#include "sinter/serve/http_load.h"

#include <algorithm>
#include <chrono>
#include <random>

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
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), random_(options.seed) {
    const std::string scheme = "http://";
    check(options.url.starts_with(scheme), "bench: '{}' is no address; one is http://host:port", options.url);
    const std::string rest = options.url.substr(scheme.size()), at = rest.substr(0, rest.find('/'));
    host_ = at.substr(0, at.find(':'));
    const std::string port = at.find(':') == std::string::npos ? "80" : at.substr(at.find(':') + 1);
    boost::system::error_code failed;
    endpoints_ = tcp::resolver(io_).resolve(host_, port, failed);
    check(!failed, "bench: {} is not found: {}", at, failed.message());
    check(options.requests > 0 && !options.prompts.empty() && !options.new_tokens.empty(),
          "bench: nothing is asked for");
    check(options.users > 0 || options.rate > 0, "bench: a rate of {} requests a second", options.rate);
  }

  LoadResult run() {
    model_ = options_.model.empty() ? first_model() : options_.model;
    for (int64_t i = 0; i < options_.requests; ++i) bodies_.push_back(body());
    begin_ = Clock::now();
    if (options_.users > 0)
      for (int64_t u = 0; u < std::min(options_.users, options_.requests); ++u) start(user());
    else
      start(arrivals());
    io_.run();
    result_.seconds = seconds_since(begin_);
    return std::move(result_);
  }

 private:
  void start(awaitable<void> task) {
    asio::co_spawn(io_, std::move(task), [](std::exception_ptr failed) {
      if (failed) std::rethrow_exception(failed);
    });
  }

  std::string body() {
    auto one_of = [&](const std::vector<int64_t>& all) { return all[random_() % all.size()]; };
    std::vector<int64_t> ids(static_cast<size_t>(one_of(options_.prompts)));
    // Of tokens that every vocabulary has.
    for (auto& id : ids) id = 100 + int64_t(random_() % 900);
    return to_line({{"model", model_},
                    {"prompt", ids},
                    {"max_tokens", one_of(options_.new_tokens)},
                    {"temperature", 0},
                    {"ignore_eos", true},
                    {"stream", true},
                    {"stream_options", {{"include_usage", true}}}});
  }

  http::request<http::string_body> request(http::verb verb, const char* path, std::string body) const {
    http::request<http::string_body> out(verb, path, 11);
    out.set(http::field::host, host_);
    out.set(http::field::connection, "close");
    if (!options_.key.empty()) out.set(http::field::authorization, "Bearer " + options_.key);
    if (!body.empty()) out.set(http::field::content_type, "application/json");
    out.body() = std::move(body);
    out.prepare_payload();
    return out;
  }

  std::string first_model() {
    boost::system::error_code failed;
    beast::tcp_stream stream(io_);
    stream.connect(endpoints_, failed);
    check(!failed, "bench: nobody answers at {}: {}", options_.url, failed.message());
    http::write(stream, request(http::verb::get, "/v1/models", ""), failed);
    beast::flat_buffer buffer;
    http::response<http::string_body> reply;
    http::read(stream, buffer, reply, failed);
    const Json models = Json::parse(reply.body(), nullptr, /*allow_exceptions=*/false);
    const bool known =
        reply.result_int() == 200 && models.is_object() && models.contains("data") && !models["data"].empty();
    check(known, "bench: {} does not tell its models: {} {}", options_.url, reply.result_int(), reply.body());
    return models["data"][0]["id"].get<std::string>();
  }

  awaitable<void> user() {
    while (next_ < bodies_.size()) co_await ask(next_++);
  }

  awaitable<void> arrivals() {
    std::exponential_distribution<double> pause(options_.rate);
    asio::steady_timer timer(io_);
    auto at = begin_;
    while (next_ < bodies_.size()) {
      start(ask(next_++));
      at += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause(random_)));
      timer.expires_at(at);
      co_await timer.async_wait(use_awaitable);
    }
  }

  awaitable<void> ask(size_t i) {
    LoadAnswer answer;
    const auto begin = Clock::now();
    try {
      co_await ask(bodies_[i], begin, answer);
    } catch (const boost::system::system_error&) {
      answer.status = 0;
    }
    result_.answers.push_back(std::move(answer));
  }

  awaitable<void> ask(const std::string& body, Clock::time_point begin, LoadAnswer& answer) {
    beast::tcp_stream stream(io_);
    stream.expires_after(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.timeout_s)));
    co_await stream.async_connect(endpoints_, use_awaitable);
    auto sent = request(http::verb::post, "/v1/completions", body);
    co_await http::async_write(stream, sent, use_awaitable);
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    parser.eager(true);
    co_await http::async_read_header(stream, buffer, parser, use_awaitable);
    size_t seen = 0;
    double last = 0;
    while (true) {
      take(parser.get().body(), seen, seconds_since(begin), last, answer);
      if (parser.is_done()) break;
      co_await http::async_read_some(stream, buffer, parser, use_awaitable);
    }
    answer.status = int(parser.get().result_int());
  }

  // The events that are whole by now.
  void take(const std::string& text, size_t& seen, double now, double& last, LoadAnswer& answer) const {
    for (size_t end; (end = text.find("\n\n", seen)) != std::string::npos; seen = end + 2) {
      const std::string_view event = std::string_view(text).substr(seen, end - seen);
      if (!event.starts_with("data: {")) continue;
      const Json json = Json::parse(event.substr(6), nullptr, /*allow_exceptions=*/false);
      if (json.is_discarded()) continue;
      if (json.contains("usage") && json["usage"].is_object())
        answer.tokens = json["usage"].value("completion_tokens", int64_t(0));
      if (!json.contains("choices") || json["choices"].empty()) continue;
      if (answer.first == 0)
        answer.first = now;
      else
        answer.gaps.push_back(now - last);
      last = answer.whole = now;
    }
  }

  const LoadOptions& options_;
  asio::io_context io_{1};
  tcp::resolver::results_type endpoints_;
  std::mt19937_64 random_;
  std::string host_, model_;
  std::vector<std::string> bodies_;
  size_t next_ = 0;
  Clock::time_point begin_;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const LoadOptions& options) { return Load(options).run(); }

}  // namespace sinter::serve
