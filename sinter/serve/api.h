#pragma once
// The OpenAI API without a network: a call's path and JSON in, JSON or server-sent events out. Any number of threads
// may call.
//
//   serve::Api api(engine, {.model_name = "whale"});
//   auto outcome = api.call({.method = "POST", .path = "/v1/completions", .body = R"({"prompt": "Call me"})"});
//   if (!outcome.generation) send(outcome.reply);
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/serve/arms.h"
#include "sinter/serve/embedder.h"
#include "sinter/serve/engine.h"

namespace sinter::serve {

struct ApiOptions {
  std::string model_name = "model";
  std::string version = "unknown";
  SamplingOptions sampling = {.temperature = 1};  // where a request does not say
  int64_t created = 0;                            // seconds since 1970, of the model's card
};

struct Call {
  std::string method = {}, path = {}, body = {};
  std::string id = {};      // of the request, in log lines
  std::string tenant = {};  // who shares cached beginnings
  std::string key = {};     // who gets the same arm always; empty: the id
  std::string arm = {};     // the arm asked for; empty: any
};

struct Reply {
  int status = 200;
  std::string body = {}, content_type = "application/json";
  int64_t retry_after_s = 0;  // 0: not told
};

// In the form that OpenAI's clients read.
Reply error_reply(int status, const std::string& message, const std::string& param = {}, const std::string& code = {});

// An answer under way. One thread at a time.
class Generation {
 public:
  virtual ~Generation() = default;
  // As server-sent events, or as one reply at the end.
  virtual bool is_stream() const = 0;
  // What there is to send by now: text of a stream; nothing where it is one reply.
  virtual std::string take() = 0;
  virtual bool is_done() const = 0;
  // When done, of what is no stream.
  virtual Reply reply() = 0;
  virtual void cancel() = 0;
  // When there may be something to take; called by the engine's thread.
  virtual void on_event(std::function<void()> call) = 0;
  // For log lines.
  virtual Usage usage() const = 0;
};

struct Outcome {
  Reply reply = {};
  std::string arm = {};                         // that answers, where several are compared
  std::unique_ptr<Generation> generation = {};  // where this is set, in place of the reply
};

class Api {
 public:
  // Of a model that writes, of several ways to run it, or of a model that embeds.
  Api(Engine& engine, ApiOptions options) : Api(Arms({{"all", 1, &engine}}), std::move(options)) {}
  Api(Arms arms, ApiOptions options) : arms_(std::move(arms)), options_(std::move(options)) {}
  Api(Embedder& embedder, ApiOptions options) : embedder_(&embedder), options_(std::move(options)) {}

  Outcome call(const Call& call);
  // Refuses texts from now on; what is under way goes on.
  void close();

 private:
  Outcome route(const Call& call);
  Outcome generate(const std::string& body, bool is_chat, const Call& call);
  bool is_ready() const;
  std::string metrics_text() const;
  Registry& metrics() const;

  std::optional<Arms> arms_;
  Embedder* embedder_ = nullptr;  // where there are no arms
  ApiOptions options_;
};

}  // namespace sinter::serve
