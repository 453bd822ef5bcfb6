#include "sinter/generate/text_generator.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/device/late_read.h"
#include "sinter/generate/decoder.h"
#include "sinter/generate/stops.h"

namespace sinter {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

std::string to_string(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "length";
    case Finish::kStopToken:
      return "stop token";
    case Finish::kStopString:
      return "stop string";
    case Finish::kCacheFull:
      return "cache full";
    case Finish::kCaller:
      return "caller";
  }
  return "";
}

double GenerateTimes::compile_s() const {
  return std::accumulate(steps_compile_s.begin(), steps_compile_s.end(), prefill_compile_s);
}

double GenerateTimes::tokens_per_s() const {
  double seconds = 0, count = 0;
  for (size_t i = 0; i < steps_s.size(); ++i) {
    if (steps_compile_s[i] > 0) continue;
    seconds += steps_s[i];
    ++count;
  }
  if (count == 0 && prefill_s > 0) {
    seconds = std::accumulate(steps_s.begin(), steps_s.end(), prefill_s) - compile_s();
    count = double(steps_s.size() + 1);
  }
  return seconds > 0 ? count / seconds : 0;
}

// One sequence under way.
struct TextGenerator::Row {
  Row(int64_t length, const GenerateOptions& options) : length(length) {
    if (options.tokenizer) stream.emplace(*options.tokenizer, options.stop_strings);
  }

  int64_t length;  // tokens whose keys are in the cache
  std::optional<TextStream> stream;
  Generation result;
  bool done = false;

  // Whether the next token is the last one, whatever it is.
  bool ends_with_next(const GenerateOptions& options, int64_t cache_length) const {
    return done || int64_t(result.ids.size()) + 1 >= options.max_new_tokens || length >= cache_length;
  }

  void take(int64_t row, int64_t id, const GenerateOptions& options, int64_t cache_length) {
    const bool last = ends_with_next(options, cache_length);
    result.ids.push_back(id);
    bool stop = std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    std::string text = stream && !stop ? stream->push(id) : "";
    auto finish = [&](Finish why) {
      result.finish = why;
      done = true;
    };
    if (stop)
      finish(Finish::kStopToken);
    else if (stream && stream->stopped())
      finish(Finish::kStopString);
    else if (last)
      finish(int64_t(result.ids.size()) >= options.max_new_tokens ? Finish::kLength : Finish::kCacheFull);
    if (options.on_token && !options.on_token(row, id) && !done) finish(Finish::kCaller);
    if (stream && done) text += stream->finish();
    if (options.on_text && !text.empty()) options.on_text(row, text);
    result.text += text;
  }
};

TextGenerator::TextGenerator(std::shared_ptr<models::TextDecoder> model, GeneratorOptions options)
    : decoder_(std::make_unique<Decoder>(std::move(model), std::move(options))) {}
TextGenerator::~TextGenerator() = default;

void TextGenerator::warmup(const GeneratorWarmup& what) { decoder_->warmup(what); }
const std::shared_ptr<models::TextDecoder>& TextGenerator::model() const { return decoder_->model(); }
int64_t TextGenerator::cache_length() const { return decoder_->cache_length(); }
const std::vector<int64_t>& TextGenerator::buckets() const { return decoder_->buckets(); }
int64_t TextGenerator::cache_bytes() const { return decoder_->cache_bytes(); }
int64_t TextGenerator::prefill_programs() const { return decoder_->prefill_programs(); }
int64_t TextGenerator::decode_programs() const { return decoder_->decode_programs(); }
std::vector<Explanation> TextGenerator::explanations() const { return decoder_->explanations(); }

std::string TextGenerator::explain() const {
  std::string out;
  for (auto& explanation : explanations()) out += explanation.text() + "\n";
  return out;
}

Generation TextGenerator::generate(const std::vector<int64_t>& prompt, const GenerateOptions& options) {
  return generate(std::vector<std::vector<int64_t>>{prompt}, options)[0];
}

std::vector<Generation> TextGenerator::generate(const std::vector<std::vector<int64_t>>& prompts,
                                                const GenerateOptions& options) {
  options.sampling.check();
  check(options.max_new_tokens >= 0, "generate: max_new_tokens is {}, which must not be negative",
        options.max_new_tokens);
  check(options.tokenizer || (options.stop_strings.empty() && !options.on_text),
        "generate: stop strings and on_text need the tokenizer; set GenerateOptions::tokenizer");
  decoder_->check_prompts(prompts);
  for (auto& keys : options.source.keys)
    check(keys.size(0) == int64_t(prompts.size()), "generate: {} prompts for a source of {} rows", prompts.size(),
          keys.size(0));
  times_ = {};
  std::vector<Row> rows;
  for (auto& prompt : prompts) rows.emplace_back(int64_t(prompt.size()), options);
  if (options.max_new_tokens > 0) run(rows, prompts, options);
  std::vector<Generation> out;
  for (auto& row : rows) out.push_back(std::move(row.result));
  return out;
}

// All rows at once until the last one is done; what the others compute then is not read. A device that queues is given the
// next step before the host has read the last one's tokens; what it then computes behind the end is dropped.
void TextGenerator::run(std::vector<Row>& rows, const std::vector<std::vector<int64_t>>& prompts,
                        const GenerateOptions& options) {
  const int64_t programs_before = prefill_programs() + decode_programs(), most = cache_length();
  auto begin = Clock::now();
  double compiling = stage_seconds_of_this_thread();
  LateRead tokens(decoder_->begin(prompts, options.sampling, options.source));
  times_.prefill_compile_s = stage_seconds_of_this_thread() - compiling;
  const bool queues = LateRead::pays(decoder_->device());
  std::optional<LateRead> next;
  auto queue_next = [&] {
    compiling = stage_seconds_of_this_thread();
    next.emplace(decoder_->step());
    times_.steps_compile_s.push_back(stage_seconds_of_this_thread() - compiling);
  };
  for (int64_t step = 0;; ++step) {
    // The first token does not wait for the step's program, which may have to be compiled.
    bool ahead = queues && step > 0 &&
                 !std::ranges::all_of(rows, [&](const Row& row) { return row.ends_with_next(options, most); });
    if (ahead) queue_next();
    std::vector<int64_t> ids = tokens.wait();
    const auto now = Clock::now();
    if (step == 0)
      times_.prefill_s = seconds_between(begin, now);
    else
      times_.steps_s.push_back(seconds_between(begin, now));
    begin = now;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (!rows[r].done) rows[r].take(int64_t(r), ids[r], options, most);
      ++rows[r].length;
    }
    if (std::ranges::all_of(rows, [](const Row& row) { return row.done; })) break;
    if (!ahead) queue_next();
    tokens = std::move(*next);
  }
  times_.steps_compile_s.resize(times_.steps_s.size());
  times_.compiled = prefill_programs() + decode_programs() - programs_before;
}

}  // namespace sinter
