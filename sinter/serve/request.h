#pragma once
// What the engine is asked for, and what it says while it answers.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/generate/text_generator.h"

namespace sinter::serve {

class Grammar;

struct Request {
  std::string id = {};  // of log lines
  std::vector<int64_t> prompt = {};
  int64_t max_tokens = 16;
  int64_t choices = 1;  // texts, each by draws of its own
  // Its draws follow from the seed, the choice and the position in the text alone.
  SamplingOptions sampling = {};
  double presence_penalty = 0, frequency_penalty = 0;  // taken from logits of tokens that the text has: once, each time
  std::vector<std::pair<int64_t, double>> logit_bias = {};  // added to a token's logit
  std::vector<std::string> stops = {};                      // strings that end the text, which ends before them
  std::vector<int64_t> stop_ids = {};                       // beside the model's own
  bool ignore_eos = false;                                  // the model's own end tokens end nothing
  int64_t min_tokens = 0;                                   // until then neither end tokens nor stop_ids come
  bool skip_special_tokens = true;                          // in the text
  std::optional<int64_t> logprobs = {};                     // of each token, and of so many of the likeliest
  std::shared_ptr<const Grammar> grammar = {};  // what the text keeps to; needs a tokenizer (Engine::grammar)
  int64_t priority = 0;                         // smaller goes first
  std::string tenant = {};                      // shares cached beginnings with the same tenant alone
};

enum class End : uint8_t { kStop, kLength, kCancelled, kFailed };

struct TokenLogprob {
  int64_t id;
  double logprob;
};
struct Token {
  int64_t id;
  double logprob = 0;  // with Request::logprobs
  std::vector<TokenLogprob> top = {};
};

struct Usage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// The next piece of one choice. Its pieces of text, joined, are its text; a piece may be empty.
struct Event {
  int64_t choice = 0;
  std::string text = {};
  std::vector<Token> tokens = {};
  std::optional<End> end = {};  // of this choice
  bool is_last = false;         // of the request: `usage` is complete
  Usage usage = {};
  std::string error = {};  // with End::kFailed
};

// Why a request is not taken.
enum class Refusal : uint8_t { kFull, kClosed };
class Refused : public Error {
 public:
  Refused(Refusal why, const std::string& message) : Error(message), why(why) {}
  Refusal why;
};

// One answer under way. Any thread may read or cancel.
class Stream {
 public:
  // The next event; nothing when there is none in time. Behind the last one there are none.
  std::optional<Event> next(double timeout_s);
  std::optional<Event> try_next() { return next(0); }
  // Called when there may be something to read, by the engine's thread: it must not wait for anything.
  void on_event(std::function<void()> call);
  // Ends the answer as soon as the engine looks; the last event comes then.
  void cancel() { cancelled_ = true; }
  bool is_cancelled() const { return cancelled_; }

 private:
  friend class Engine;
  void push(Event event);

  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  std::function<void()> call_;
};

}  // namespace sinter::serve
