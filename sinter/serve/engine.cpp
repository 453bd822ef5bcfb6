#include "sinter/serve/engine.h"

#include <algorithm>
#include <map>

#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"
#include "sinter/base/stage_times.h"
#include "sinter/serve/scheduler.h"

namespace sinter::serve {

namespace {

Labels labels_of(const EngineOptions& options) {
  Labels out{{"model_name", options.model_name}, {"engine", "0"}};
  if (!options.arm.empty()) out.emplace_back("arm", options.arm);
  return out;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(std::shared_ptr<models::CausalLM> model, const Tokenizer* tokenizer, EngineOptions options)
      : options_(std::move(options)),
        tokenizer_(tokenizer),
        registry_(labels_of(options_)),
        metrics_(registry_),
        decoder_(std::move(model), options_.decoder),
        scheduler_(decoder_, options_, metrics_,
                   [this](Answer& answer, Event event) { emit(answer, std::move(event)); }) {
    for (int64_t id : options_.end_ids)
      check(id >= 0 && id < decoder_.vocab(), "serve: the end token {} does not exist; the model knows 0 to {}", id,
            decoder_.vocab() - 1);
    if (tokenizer_) texts_.emplace(*tokenizer_, decoder_.vocab());
    note_state();
    auto gauge = [&](const char* name, const char* help, auto value) {
      registry_.gauge(name, help, [this, value] { return double(value(state())); });
    };
    gauge("num_requests_running", "Texts under way.", [](const State& s) { return s.running; });
    gauge("num_requests_waiting", "Texts that have not begun.", [](const State& s) { return s.waiting; });
    gauge("kv_cache_usage_perc", "Pages in use; 1 is all of them.", [](const State& s) {
      return double(s.total_pages - s.free_pages) / double(std::max<int64_t>(1, s.total_pages));
    });
    registry_.gauge("cache_config_info", "The cache.", [] { return 1.0; },
                    {{"block_size", format("{}", decoder_.options().page)},
                     {"num_gpu_blocks", format("{}", decoder_.options().pages)}});
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      ends_ = closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  std::shared_ptr<const Grammar> grammar(const std::string& key, FunctionRef<std::shared_ptr<const Grammar>()> make) {
    {
      std::lock_guard lock(grammar_mutex_);
      if (auto known = grammars_.find(key); known != grammars_.end()) return known->second;
    }
    auto made = make();
    std::lock_guard lock(grammar_mutex_);
    constexpr size_t kMostGrammars = 256;
    if (grammars_.size() >= kMostGrammars) grammars_.clear();
    return grammars_[key] = made;
  }

  void start() {
    decoder_.warmup();
    thread_ = std::thread([this] { work(); });
    is_ready_ = true;
  }

  std::shared_ptr<Stream> submit(Request request) {
    check_request(request);
    auto answer = std::make_shared<Answer>();
    answer->stream = std::make_shared<Stream>();
    answer->open = request.choices;
    answer->usage.prompt_tokens = int64_t(request.prompt.size());
    const int64_t count = request.choices, tokens = count * int64_t(request.prompt.size());
    answer->request = std::move(request);
    {
      std::lock_guard lock(mutex_);
      if (closed_) throw Refused(Refusal::kClosed, "the server is shutting down");
      if (state_.waiting + queued_ + count >
          options_.most_queued + std::max<int64_t>(0, decoder_.largest_rows() - state_.running))
        throw Refused(Refusal::kFull, format("{} requests are waiting already", state_.waiting + queued_));
      if (queued_tokens_ > 0 && queued_tokens_ + tokens > options_.most_queued_tokens)
        throw Refused(Refusal::kFull, format("prompts of {} tokens are waiting already", queued_tokens_));
      metrics_.request_prompt.observe(double(answer->request.prompt.size()));
      metrics_.request_most.observe(double(answer->request.max_tokens));
      metrics_.request_choices.observe(double(count));
      for (int64_t choice = 0; choice < count; ++choice)
        inbox_.push_back(std::make_unique<Sequence>(answer, choice, ++arrivals_, tokenizer_,
                                                    texts_ ? &*texts_ : nullptr, options_.end_ids, decoder_.vocab()));
      queued_ += count;
      queued_tokens_ += tokens;
    }
    changed_.notify_all();
    return answer->stream;
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }

  State state() const {
    std::lock_guard lock(mutex_);
    State out = state_;
    out.waiting += queued_;
    return out;
  }

  const EngineOptions options_;
  const Tokenizer* tokenizer_;
  Registry registry_;
  EngineMetrics metrics_;
  PagedDecoder decoder_;
  std::optional<TokenTexts> texts_;
  std::atomic<bool> is_ready_ = false;

 private:
  void check_request(const Request& r) const {
    const int64_t vocab = decoder_.vocab(), most = decoder_.options().max_length;
    check(!r.prompt.empty(), "the prompt is empty");
    check(int64_t(r.prompt.size()) < most, "the prompt has {} tokens; prompt and answer together may have {}",
          r.prompt.size(), most);
    check(r.max_tokens >= 1, "max_tokens is {}, which must be positive", r.max_tokens);
    check(r.choices >= 1 && r.choices <= 128, "n is {}, which must be 1 to 128", r.choices);
    check(r.min_tokens >= 0 && r.min_tokens <= r.max_tokens, "min_tokens is {}, which must be 0 to max_tokens, {}",
          r.min_tokens, r.max_tokens);
    check(!r.logprobs || (*r.logprobs >= 0 && *r.logprobs <= PagedDecoder::kMostLogprobs),
          "logprobs is {}, which must be 0 to {}", r.logprobs.value_or(0), PagedDecoder::kMostLogprobs);
    check(r.stops.empty() || tokenizer_, "stop strings need a tokenizer");
    check(!r.grammar || texts_, "a grammar needs a tokenizer");
    for (auto& stop : r.stops) check(!stop.empty(), "a stop string is empty");
    auto check_id = [&](const char* what, int64_t id) {
      check(id >= 0 && id < vocab, "{} has the id {}; the model knows 0 to {}", what, id, vocab - 1);
    };
    for (int64_t id : r.prompt) check_id("the prompt", id);
    for (int64_t id : r.stop_ids) check_id("stop_token_ids", id);
    for (auto& [id, bias] : r.logit_bias) check_id("logit_bias", id);
    r.sampling.check();
    check(r.sampling.suppress_ids.empty() && r.sampling.suppress_first_ids.empty(),
          "suppressed tokens are told by logit_bias");
  }

  void emit(Answer& answer, Event event) { answer.stream->push(std::move(event)); }

  // What others may know of the scheduler; under the lock.
  void note_state() {
    state_.running = scheduler_.running();
    state_.waiting = scheduler_.waiting();
    state_.free_pages = scheduler_.pages().free();
    state_.total_pages = scheduler_.pages().total();
  }

  void work() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        note_state();
        changed_.wait(lock, [&] { return ends_ || !inbox_.empty() || !scheduler_.is_idle(); });
        for (auto& sequence : inbox_) scheduler_.add(std::move(sequence));
        inbox_.clear();
        queued_ = 0;
        queued_tokens_ = scheduler_.waiting_tokens();
        note_state();
        if (ends_) break;
      }
      step();
    }
    scheduler_.end_all(End::kCancelled, "");
  }

  void step() {
    const double compiling = stage_seconds_of_this_thread();
    const auto asked = Clock::now();
    if (options_.turns) options_.turns->take();
    const auto begin = Clock::now();
    if (options_.turns) scheduler_.note_waiting(seconds_between(asked, begin));
    try {
      if (options_.step_delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options_.step_delay_s));
      scheduler_.step();
    } catch (const std::exception& error) {
      // What was under way is lost, whoever caused it; what comes next is not.
      metrics_.failures.add();
      scheduler_.end_all(End::kFailed, error.what());
    }
    if (options_.turns) options_.turns->give();
    if (options_.turns) metrics_.turn_seconds.add(seconds_between(asked, begin));
    metrics_.busy_seconds.add(seconds_between(begin, Clock::now()));
    const double compiled = stage_seconds_of_this_thread() - compiling;
    if (compiled <= 0) return;
    metrics_.recompiles.add();
    metrics_.compile_seconds.add(compiled);
    std::lock_guard lock(mutex_);
    ++state_.compiled;
  }

  std::mutex grammar_mutex_;
  std::map<std::string, std::shared_ptr<const Grammar>> grammars_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Scheduler::Sequences inbox_;
  int64_t queued_ = 0, queued_tokens_ = 0, arrivals_ = 0;
  State state_;
  bool closed_ = false, ends_ = false;
  Scheduler scheduler_;  // the thread's alone
  std::thread thread_;
};

Engine::Engine(std::shared_ptr<models::CausalLM> model, const Tokenizer* tokenizer, EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), tokenizer, std::move(options))) {}
Engine::~Engine() = default;

void Engine::start() { impl_->start(); }
bool Engine::is_ready() const { return impl_->is_ready_; }
std::shared_ptr<Stream> Engine::submit(Request request) { return impl_->submit(std::move(request)); }
void Engine::close() { impl_->close(); }
Engine::State Engine::state() const { return impl_->state(); }
const EngineOptions& Engine::options() const { return impl_->options_; }
const Tokenizer* Engine::tokenizer() const { return impl_->tokenizer_; }
std::shared_ptr<const Grammar> Engine::grammar(const std::string& schema) {
  return impl_->grammar("schema " + schema, [&] { return Grammar::of_schema(schema); });
}
std::shared_ptr<const Grammar> Engine::grammar(const std::vector<std::string>& texts) {
  std::string key = "texts";
  for (auto& text : texts) key += format(" {}:{}", text.size(), text);
  return impl_->grammar(key, [&] { return Grammar::of_texts(texts); });
}
int64_t Engine::max_length() const { return impl_->decoder_.options().max_length; }
int64_t Engine::vocab() const { return impl_->decoder_.vocab(); }
Registry& Engine::metrics() { return impl_->registry_; }
std::vector<AnswerTimes> Engine::latest_answers() const { return impl_->metrics_.answers.latest(); }

}  // namespace sinter::serve
