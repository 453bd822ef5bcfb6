#pragma once
// Which sequences take part in the next step, and the step. Used by one thread, the engine's. Internal to the engine.
//
// A step is one token of every sequence that generates, then chunks of prompts as long as the step has tokens left. A
// prompt is cut where it says itself, never where others leave room. Sequences begin in the order of their priority,
// then of their arrival, when there are pages for the prompt and one token more. Where pages run out later, the last in
// that order gives up its own, goes back to the queue and is computed anew, what it had generated with it.
#include <list>
#include <memory>
#include <vector>

#include "sinter/serve/engine.h"
#include "sinter/serve/pages.h"
#include "sinter/serve/sequence.h"

namespace sinter::serve {

class Scheduler {
 public:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;
  // Gives an event to whoever listens; behind the last one of a request nothing is held for it any more.
  using Emit = std::function<void(Answer&, Event)>;

  Scheduler(PagedDecoder& decoder, const EngineOptions& options, EngineMetrics& metrics, Emit emit);

  void add(std::unique_ptr<Sequence> sequence) {
    sequence->waited_before = waited_;
    waiting_.push_back(std::move(sequence));
  }
  // So long the device was somebody else's, which no answer is blamed for.
  void note_waiting(double seconds) { waited_ += seconds; }
  // Ends what was cancelled; then one step.
  void step();
  // Ends everything.
  void end_all(End why, const std::string& error);

  bool is_idle() const { return running_.empty() && waiting_.empty(); }
  int64_t running() const { return int64_t(running_.size()); }
  int64_t waiting() const { return int64_t(waiting_.size()); }
  // Of their prompts.
  int64_t waiting_tokens() const;
  const PagePool& pages() const { return pool_; }

 private:
  void drop_cancelled();
  // What is under way had to wait for a compiler, if this step had.
  void note_compiling();
  void decode();
  void prefill();
  // The sequence whose prompt is computed next; one from the queue where no other is. Null: there is none, or no room.
  Sequence* next_prompt();
  void begin_pages(Sequence& sequence);
  bool give_pages(Sequence& sequence, int64_t positions);
  // Takes pages from those behind, perhaps from itself: then false.
  bool make_room(Sequence& sequence);
  void preempt(Sequence& sequence);
  void publish(Sequence& sequence);
  void take_back_pages(Sequence& sequence);
  // The tokens behind these logits, one a row.
  void pick(const Tensor& logits, std::span<Sequence* const> rows);
  void finish(Sequence& sequence, Event event);
  void log_times(const Sequence& sequence, Clock::time_point end);
  void remove(Sequence& sequence);

  PagedDecoder& decoder_;
  const EngineOptions& options_;
  EngineMetrics& metrics_;
  Emit emit_;
  PagePool pool_;
  Sequences running_, waiting_;
  int64_t step_tokens_ = 0;
  double waited_ = 0;
  double compiling_before_ = 0;  // seconds, of this thread, before the step
};

}  // namespace sinter::serve
