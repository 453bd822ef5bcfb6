#include "sinter/serve/scheduler.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"

namespace sinter::serve {

namespace {

std::string name_of(End end) {
  switch (end) {
    case End::kStop:
      return "stop";
    case End::kLength:
      return "length";
    case End::kCancelled:
      return "abort";
    case End::kFailed:
      return "error";
  }
  return "";
}

}  // namespace

Scheduler::Scheduler(PagedDecoder& decoder, const EngineOptions& options, EngineMetrics& metrics, Emit emit)
    : decoder_(decoder),
      options_(options),
      metrics_(metrics),
      emit_(std::move(emit)),
      pool_(decoder.options().pages, decoder.options().page) {}

void Scheduler::step() {
  drop_cancelled();
  step_tokens_ = 0;
  compiling_before_ = stage_seconds_of_this_thread();
  decode();
  prefill();
  if (step_tokens_ > 0) metrics_.step_tokens.observe(double(step_tokens_));
}

void Scheduler::end_all(End why, const std::string& error) {
  for (auto* list : {&running_, &waiting_})
    while (!list->empty()) {
      Sequence& sequence = *list->back();
      finish(sequence, Event{.choice = sequence.choice, .end = why, .error = error});
    }
}

void Scheduler::note_compiling() {
  if (stage_seconds_of_this_thread() <= compiling_before_) return;
  for (auto& s : running_) {
    if (!s->met_compiling) metrics_.delayed.add();
    s->met_compiling = true;
  }
}

int64_t Scheduler::waiting_tokens() const {
  int64_t tokens = 0;
  for (auto& s : waiting_) tokens += int64_t(s->tokens.size());
  return tokens;
}

void Scheduler::drop_cancelled() {
  for (auto* list : {&running_, &waiting_})
    for (size_t i = list->size(); i-- > 0;) {
      Sequence& sequence = *(*list)[i];
      if (sequence.answer->stream->is_cancelled())
        finish(sequence, Event{.choice = sequence.choice, .end = End::kCancelled});
    }
}

// --- pages

void Scheduler::begin_pages(Sequence& s) {
  const uint64_t root = pool_.root(s.request().tenant);
  s.known = root;
  if (!options_.prefix_cache) return;
  // One token at least is computed: its logits are wanted.
  const int64_t most = (int64_t(s.tokens.size()) - 1) / pool_.page_size();
  auto found = pool_.match(root, s.tokens, most);
  s.pages = std::move(found.pages);
  s.known = found.end;
  s.published = int64_t(s.pages.size());
  s.computed = s.published * pool_.page_size();
}

bool Scheduler::give_pages(Sequence& s, int64_t positions) {
  const int64_t wanted = (positions + pool_.page_size() - 1) / pool_.page_size() - int64_t(s.pages.size());
  if (wanted > pool_.free()) return false;
  for (int64_t i = 0; i < wanted; ++i) s.pages.push_back(*pool_.take());
  return true;
}

void Scheduler::take_back_pages(Sequence& s) {
  // The last first: what is behind is needed by fewer.
  for (size_t i = s.pages.size(); i-- > 0;) pool_.release(s.pages[i]);
  s.pages.clear();
  s.computed = s.published = 0;
}

void Scheduler::publish(Sequence& s) {
  if (!options_.prefix_cache) return;
  const int64_t size = pool_.page_size();
  for (; (s.published + 1) * size <= s.computed; ++s.published)
    s.known = pool_.publish(s.known, std::span(s.tokens).subspan(size_t(s.published * size), size_t(size)),
                            s.pages[size_t(s.published)]);
}

void Scheduler::preempt(Sequence& s) {
  take_back_pages(s);
  metrics_.preemptions.add();
  auto at = std::ranges::find_if(running_, [&](auto& other) { return other.get() == &s; });
  waiting_.push_back(std::move(*at));
  running_.erase(at);
}

bool Scheduler::make_room(Sequence& s) {
  while (!give_pages(s, s.computed + 1)) {
    Sequence* last = &s;
    for (auto& other : running_)
      if (last->is_before(*other)) last = other.get();
    const bool itself = last == &s;
    preempt(*last);
    if (itself) return false;
  }
  return true;
}

// --- steps

void Scheduler::decode() {
  std::vector<Sequence*> ready;
  for (auto& s : running_)
    if (s->pending() == 1) ready.push_back(s.get());
  std::ranges::sort(ready, [](auto* a, auto* b) { return a->is_before(*b); });
  std::vector<Sequence*> rows;
  // Whoever is preempted stands behind those that have their room.
  for (size_t i = 0; i < ready.size(); ++i) {
    auto still_runs = [&](auto& s) { return s.get() == ready[i]; };
    if (std::ranges::any_of(running_, still_runs) && make_room(*ready[i])) rows.push_back(ready[i]);
  }
  if (rows.empty()) return;
  std::vector<PagedRow> inputs;
  for (Sequence* s : rows) inputs.push_back({std::span(s->tokens).last(1), s->computed, s->pages});
  Tensor logits = decoder_.decode(inputs);
  for (Sequence* s : rows) {
    ++s->computed;
    publish(*s);
  }
  step_tokens_ += int64_t(rows.size());
  pick(logits, rows);
}

Sequence* Scheduler::next_prompt() {
  Sequence* first = nullptr;
  for (auto& s : running_)
    if (s->pending() > 1 && (!first || s->is_before(*first))) first = s.get();
  if (first) return first;
  if (running() >= decoder_.largest_rows() || waiting_.empty()) return nullptr;
  auto at = std::ranges::min_element(waiting_, [](auto& a, auto& b) { return a->is_before(*b); });
  Sequence& s = **at;
  begin_pages(s);
  if (!give_pages(s, std::min<int64_t>(int64_t(s.tokens.size()) + 1, decoder_.options().max_length))) {
    take_back_pages(s);
    return nullptr;
  }
  Answer& answer = *s.answer;
  metrics_.prefix_queries.add(double(s.tokens.size()));
  metrics_.prefix_hits.add(double(s.computed));
  if (!s.has_begun) {
    s.began = Clock::now();
    s.has_begun = true;
    metrics_.queued.observe(seconds_between(answer.arrived, s.began));
    // What the first choice finds was there before the request.
    if (s.choice == 0) answer.usage.cached_tokens = s.computed;
  }
  running_.push_back(std::move(*at));
  waiting_.erase(at);
  return &s;
}

void Scheduler::prefill() {
  bool any = false;
  while (Sequence* s = next_prompt()) {
    if (s->answer->stream->is_cancelled()) {
      finish(*s, Event{.choice = s->choice, .end = End::kCancelled});
      continue;
    }
    // All but one token were found: it is computed with the others' next ones.
    if (s->pending() == 1) continue;
    const int64_t chunk = std::min(s->pending(), decoder_.largest_chunk());
    if (any && step_tokens_ + chunk > options_.step_tokens) return;
    any = true;
    Tensor logits =
        decoder_.prefill({std::span(s->tokens).subspan(size_t(s->computed), size_t(chunk)), s->computed, s->pages});
    s->computed += chunk;
    step_tokens_ += chunk;
    publish(*s);
    if (s->pending() == 0) pick(logits, {&s, 1});
  }
}

void Scheduler::pick(const Tensor& logits, std::span<Sequence* const> rows) {
  std::vector<const RowSampling*> settings;
  bool wants_logprobs = false;
  for (Sequence* s : rows) {
    settings.push_back(&s->sampling());
    wants_logprobs = wants_logprobs || s->request().logprobs;
  }
  std::vector<int64_t> ids = decoder_.sample(logits, settings);
  std::vector<PagedDecoder::Logprobs> logprobs;
  if (wants_logprobs) logprobs = decoder_.logprobs(logits, ids);
  const auto now = Clock::now();
  note_compiling();
  for (size_t r = 0; r < rows.size(); ++r) {
    Sequence& s = *rows[r];
    Token token{.id = ids[r]};
    if (s.request().logprobs) {
      token.logprob = logprobs[r].chosen;
      for (int64_t i = 0; i < std::min<int64_t>(*s.request().logprobs, int64_t(logprobs[r].top.size())); ++i)
        token.top.push_back({logprobs[r].top[size_t(i)].id, logprobs[r].top[size_t(i)].logprob});
    }
    if (s.generated() == 0) {
      s.first = now;
      s.waited_first = waited_;
      metrics_.first_token.observe(seconds_between(s.answer->arrived, now));
      metrics_.prefill.observe(seconds_between(s.began, now));
      metrics_.prompt_tokens.add(s.choice == 0 ? double(s.request().prompt.size()) : 0);
    } else {
      metrics_.between_tokens.observe(seconds_between(s.last, now));
    }
    s.last = now;
    metrics_.generation_tokens.add();
    Event event = s.take(std::move(token), decoder_.options().max_length);
    event.end ? finish(s, std::move(event)) : emit_(*s.answer, std::move(event));
  }
}

void Scheduler::remove(Sequence& s) {
  for (auto* list : {&running_, &waiting_}) {
    auto at = std::ranges::find_if(*list, [&](auto& other) { return other.get() == &s; });
    if (at != list->end()) return void(list->erase(at));
  }
}

void Scheduler::log_times(const Sequence& s, Clock::time_point end) {
  const auto arrived = s.answer->arrived;
  AnswerTimes times{.waited_for_compiling = s.met_compiling};
  times.first_s = std::max(0.0, seconds_between(arrived, s.first) - (s.waited_first - s.waited_before));
  times.whole_s = std::max(0.0, seconds_between(arrived, end) - (waited_ - s.waited_before));
  const double tokens = double(s.generated() - 1);
  times.per_token_s =
      tokens > 0 ? std::max(0.0, seconds_between(s.first, s.last) - (waited_ - s.waited_first)) / tokens : -1;
  metrics_.answers.add(times);
}

void Scheduler::finish(Sequence& s, Event event) {
  const auto now = Clock::now();
  std::shared_ptr<Answer> answer = s.answer;
  take_back_pages(s);
  const std::string reason = name_of(*event.end);
  metrics_.registry.counter("request_success", "Texts that ended, by why.", {{"finished_reason", reason}}).add();
  if (*event.end == End::kCancelled) {
    const char* state = !s.has_begun ? "queued" : s.generated() == 0 ? "prefill" : "decode";
    metrics_.registry
        .counter("requests_cancelled", "Texts that were cancelled, by how far they were.", {{"state", state}})
        .add();
  }
  if (s.generated() > 0) {
    metrics_.decode.observe(seconds_between(s.first, s.last));
    if (s.generated() > 1) metrics_.per_token.observe(seconds_between(s.first, s.last) / double(s.generated() - 1));
    metrics_.inference.observe(seconds_between(s.began, now));
    metrics_.request_generation.observe(double(s.generated()));
    if (*event.end == End::kStop || *event.end == End::kLength) log_times(s, now);
  }
  event.is_last = --answer->open == 0;
  event.usage = answer->usage;
  if (event.is_last) metrics_.whole.observe(seconds_between(answer->arrived, now));
  remove(s);
  emit_(*answer, std::move(event));
}

}  // namespace sinter::serve
