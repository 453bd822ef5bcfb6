#pragma once
// Answers many requests at once with one model. Sequences join and leave a batch between two steps; prompts are
// computed in chunks in between, so that nobody waits long for somebody else's prompt. No network here.
//
//   serve::Engine engine(model, &tokenizer, {.end_ids = {1}});
//   engine.start();                                  // makes all programs; after that nothing is compiled
//   auto stream = engine.submit({.prompt = ids, .max_tokens = 64});
//   while (auto event = stream->next(60)) { use(event->text); if (event->is_last) break; }
//
// A request's text follows from the request alone, whatever shares its batch: programs differ in how many rows they
// have and so in the last bits of their sums, but what is drawn from these does not depend on the other rows.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sinter/generate/paged_decoder.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/serve/metrics.h"
#include "sinter/serve/request.h"
#include "sinter/serve/turns.h"

namespace sinter::serve {

struct EngineOptions {
  PagedOptions decoder = {};
  std::vector<int64_t> end_ids = {};    // tokens with which the model ends a text
  int64_t step_tokens = 512;            // tokens of a step, rows and prompts together; one chunk at least is computed
  bool prefix_cache = true;             // beginnings that requests of a tenant have in common are computed once
  int64_t most_queued = 256;            // sequences that may wait; beyond that submit() refuses
  int64_t most_queued_tokens = 131072;  // of their prompts
  std::string model_name = "model";
  std::string arm = {};                    // among several engines; a label of metrics
  std::shared_ptr<Turns> turns = nullptr;  // shared with those that use the same device
  double step_delay_s = 0;                 // waited in each step: what a comparison has to find
};

class Engine {
 public:
  // Without a tokenizer there is no text, and no stop strings.
  Engine(std::shared_ptr<models::CausalLM> model, const Tokenizer* tokenizer, EngineOptions options);
  // Ends what is under way.
  ~Engine();

  // Compiles everything, then begins to answer.
  void start();
  bool is_ready() const;

  // An Error where the request cannot be answered by this engine whenever it is asked; Refused where not now.
  std::shared_ptr<Stream> submit(Request request);
  // Refuses whatever comes from now on; what is under way goes on.
  void close();

  // As of the end of the last step.
  struct State {
    int64_t running = 0, waiting = 0;  // sequences
    int64_t free_pages = 0, total_pages = 0;
    int64_t compiled = 0;  // steps that compiled something since the start
    bool is_idle() const { return running + waiting == 0; }
  };
  State state() const;

  const EngineOptions& options() const;
  const Tokenizer* tokenizer() const;
  // Of a JSON schema; kept, so that the next request with the same one finds what is known of it. An Error where the
  // schema is not understood.
  std::shared_ptr<const Grammar> grammar(const std::string& schema);
  // One of several texts.
  std::shared_ptr<const Grammar> grammar(const std::vector<std::string>& texts);
  int64_t max_length() const;  // of prompt and answer together
  int64_t vocab() const;
  Registry& metrics();
  // The times of the latest answers.
  std::vector<AnswerTimes> latest_answers() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinter::serve
