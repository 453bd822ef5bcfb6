#pragma once
// One text under way: a choice of a request. Internal to the engine.
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "sinter/generate/sampling.h"
#include "sinter/generate/stops.h"
#include "sinter/serve/grammar.h"
#include "sinter/serve/request.h"

namespace sinter::serve {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// What the choices of a request share.
struct Answer {
  Request request;
  std::shared_ptr<Stream> stream;
  int64_t open = 0;  // choices that have not ended
  Usage usage = {};
  Clock::time_point arrived = Clock::now();
  bool is_known = false;  // its prompt's tokens are counted
};

class Sequence {
 public:
  // `end_ids` are the model's own. `texts` are needed where there is a grammar.
  Sequence(std::shared_ptr<Answer> answer, int64_t choice, int64_t order, const Tokenizer* tokenizer,
           const TokenTexts* texts, const std::vector<int64_t>& end_ids, int64_t vocab);

  const Request& request() const { return answer->request; }
  // Tokens whose keys are not in the cache yet; one while it is generating.
  int64_t pending() const { return int64_t(tokens.size()) - computed; }
  int64_t generated() const { return int64_t(tokens.size() - request().prompt.size()); }
  // Who is served first.
  bool is_before(const Sequence& other) const {
    return request().priority != other.request().priority ? request().priority < other.request().priority
                                                          : order < other.order;
  }
  // Settings of the next token, its draw among them.
  const RowSampling& sampling();
  // Adds a token; gives the event of it. `end` of the event is set where the text ends with it.
  Event take(Token token, int64_t max_length);

  std::shared_ptr<Answer> answer;
  int64_t choice, order;
  std::vector<int64_t> tokens;  // the prompt, then what was generated
  int64_t computed = 0;         // of these, in the cache
  std::vector<int64_t> pages;
  int64_t published = 0;                                // of these
  uint64_t known = 0;                                   // stands for what is in the published ones
  Clock::time_point began = {}, first = {}, last = {};  // left the queue; tokens
  bool has_begun = false, met_compiling = false;
  double waited_before = 0, waited_first = 0;  // for other engines, when it came and at its first token

 private:
  bool is_end(int64_t id) const;
  // What is added to a token's logit.
  float bias_of(int64_t id) const;
  void count(int64_t id);
  // Bars what the grammar does not allow next.
  void keep_to_grammar();

  RowSampling settings_;
  std::vector<int64_t> ends_;    // tokens that end the text
  std::vector<int32_t> counts_;  // by token, where there are penalties
  std::optional<TextStream> text_;

  // Of a request with a grammar.
  const TokenTexts* texts_;
  Grammar::Places places_;
  std::vector<float> plain_;  // the bias without it
  bool is_stuck_ = false;     // no token may come next
};

}  // namespace sinter::serve
