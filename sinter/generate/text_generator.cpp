#include "sinter/generate/text_generator.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/capture/warmup.h"
#include "sinter/generate/sampling.h"
#include "sinter/generate/stops.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

constexpr int64_t kDefaultLength = 2048, kFirstBucket = 32;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What a step takes beside the cache, and what it gives.
struct StepInputs {
  Tensor ids;                   // [batch, tokens]
  Tensor positions;             // [tokens], or [batch, tokens] where rows are of different lengths
  Tensor wanted;                // [batch]: the place in the row of ids whose successor is looked for
  Tensor numbers, draws, seen;  // of sample()
  SINTER_FIELDS(ids, positions, wanted, numbers, draws, seen)
};

Tensor draws_of(const SamplingOptions& sampling, int64_t batch, int64_t step) {
  std::vector<double> values(size_t(batch), 0);
  if (SamplingShape::of(sampling).samples)
    for (int64_t r = 0; r < batch; ++r) values[size_t(r)] = sampling_draw(sampling.seed, r, step);
  return tensor(values);
}

// Of prompts that are padded to `bucket` tokens.
StepInputs prefill_inputs(const std::vector<std::vector<int64_t>>& prompts, int64_t bucket,
                          const SamplingOptions& sampling, int64_t vocab, Device device) {
  int64_t batch = int64_t(prompts.size());
  std::vector<int64_t> ids(size_t(batch * bucket), 0), wanted(size_t(batch), 0);
  for (int64_t r = 0; r < batch; ++r) {
    std::copy(prompts[size_t(r)].begin(), prompts[size_t(r)].end(), ids.begin() + r * bucket);
    wanted[size_t(r)] = int64_t(prompts[size_t(r)].size()) - 1;
  }
  bool penalty = SamplingShape::of(sampling).penalty;
  StepInputs in;
  in.ids = tensor(ids).view({batch, bucket}).to(device);
  in.positions = arange(bucket).to(device);
  in.wanted = tensor(wanted).to(device);
  in.numbers = sampling_numbers(sampling, batch).to(device);
  in.draws = draws_of(sampling, batch, 0).to(device);
  in.seen = zeros({batch, penalty ? vocab : 0}, kBool);
  for (int64_t r = 0; penalty && r < batch; ++r)
    in.seen.select(0, r).copy_(index_fill(in.seen.select(0, r), 0, tensor(prompts[size_t(r)]), true));
  in.seen = in.seen.to(device);
  return in;
}

// Positions of a step, one for all rows where they are `even`.
Tensor step_positions(const std::vector<int64_t>& at, bool even) {
  return even ? tensor(at) : tensor(at).view({int64_t(at.size()), 1});
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

// The programs differ in what they see of the cache: a prefill begins sequences, a step goes on with them.
struct TextGenerator::Programs {
  using Run = std::function<Tensor(const StepInputs&, const models::KvCache&)>;

  Programs(const std::shared_ptr<models::CausalLM>& model, const SamplingShape& shape,
           const GeneratorOptions& options) {
    auto step = [model, shape](bool begins) {
      return [model, shape, begins](const StepInputs& in, models::KvCache cache) {
        cache.begins = begins;
        Tensor logits = model->forward(in.ids, in.positions, {}, &cache, in.wanted).squeeze(1);
        Tensor seen = in.seen;
        Tensor token = sample(logits, shape, in.numbers, in.draws, seen);
        if (shape.penalty) seen.scatter_(1, token.unsqueeze(1), ones_like(token.unsqueeze(1)).to(kBool));
        return token;
      };
    };
    if (options.eager) {
      prefill = step(true);
      decode = step(false);
      return;
    }
    // Sizes are those of the bucket and the batch: worth a program each.
    CompileOptions compile_options{
        .mode = options.mode, .fullgraph = true, .dynamic = Dynamic::kFalse, .options = options.options};
    compile_options.options.try_emplace("recompile_limit", int64_t(64));
    auto fingerprint = [&](const std::string& what) {
      compile_options.name = what;
      compile_options.fingerprint = [model, text = format("{} {}", what, shape.text())] { return model->fingerprint(text); };
    };
    fingerprint("prefill");
    auto compiled_prefill = compile(step(true), compile_options);
    fingerprint("decode");
    auto compiled_decode = compile(step(false), compile_options);
    prefill_function = &compiled_prefill.function();
    decode_function = &compiled_decode.function();
    auto prepare = [](auto compiled) {
      return [compiled](const StepInputs& in, const models::KvCache& cache, capture::Warmup& warmup) {
        capture::prepare_call<StepInputs, models::KvCache>(compiled.function(), *compiled.target(), warmup, in, cache);
      };
    };
    prepare_prefill = prepare(compiled_prefill);
    prepare_decode = prepare(compiled_decode);
    prefill = compiled_prefill;
    decode = compiled_decode;
  }

  Run prefill, decode;
  std::function<void(const StepInputs&, const models::KvCache&, capture::Warmup&)> prepare_prefill, prepare_decode;
  capture::Function *prefill_function = nullptr, *decode_function = nullptr;  // owned by the above
};

TextGenerator::TextGenerator(std::shared_ptr<models::CausalLM> model, GeneratorOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  check(bool(model_), "TextGenerator: no model");
  int64_t most = model_->config().max_positions;
  cache_length_ = options_.cache_length;
  if (cache_length_ == 0) cache_length_ = most > 0 ? std::min(most, kDefaultLength) : kDefaultLength;
  check(cache_length_ > 0 && (most <= 0 || cache_length_ <= most),
        "TextGenerator: a cache of {} positions; the model has {}", cache_length_, most);
  buckets_ = options_.buckets;
  if (buckets_.empty())
    for (int64_t b = kFirstBucket; b < cache_length_; b *= 2) buckets_.push_back(b);
  std::sort(buckets_.begin(), buckets_.end());
  for (int64_t b : buckets_)
    check(b > 0 && b <= cache_length_, "TextGenerator: a bucket of {} does not fit a cache of {}", b, cache_length_);
  if (buckets_.empty() || buckets_.back() < cache_length_) buckets_.push_back(cache_length_);
}

TextGenerator::~TextGenerator() = default;

int64_t TextGenerator::bucket_of(int64_t length) const {
  return *std::lower_bound(buckets_.begin(), buckets_.end(), length);
}

void TextGenerator::check_prompts(const std::vector<std::vector<int64_t>>& prompts) const {
  check(!prompts.empty(), "generate: there is no prompt");
  int64_t vocab = model_->config().vocab_size;
  for (size_t i = 0; i < prompts.size(); ++i) {
    check(!prompts[i].empty(), "generate: prompt {} is empty; begin it with the model's first token (bos)", i);
    check(
        int64_t(prompts[i].size()) <= cache_length_,
        "generate: prompt {} has {} tokens, the cache {} positions; shorten it or make the TextGenerator with a larger "
        "cache_length (the model has {} positions)",
        i, prompts[i].size(), cache_length_, model_->config().max_positions);
    for (int64_t id : prompts[i])
      check(id >= 0 && id < vocab, "generate: prompt {} has the id {}; the model knows 0 to {}", i, id, vocab - 1);
  }
}

TextGenerator::Programs& TextGenerator::programs(const SamplingShape& shape) {
  for (auto& [known, programs] : programs_)
    if (known == shape) return *programs;
  programs_.emplace_back(shape, std::make_unique<Programs>(model_, shape, options_));
  return *programs_.back().second;
}

models::KvCache& TextGenerator::cache(int64_t batch) {
  if (auto it = caches_.find(batch); it != caches_.end()) return it->second;
  caches_.clear();
  return caches_[batch] = model_->make_cache(batch, cache_length_);
}

void TextGenerator::warmup(const GeneratorWarmup& what) {
  what.sampling.check();
  check(!what.batch.empty(), "warmup: there is no batch size");
  for (int64_t batch : what.batch) check(batch >= 1, "warmup: a batch of {}", batch);
  for (int64_t length : what.lengths)
    check(length >= 1 && length <= cache_length_, "warmup: a prompt of {} tokens; the cache has {} positions", length,
          cache_length_);
  if (options_.eager) return;
  NoGradGuard no_grad;
  std::set<int64_t> buckets(buckets_.begin(), buckets_.end());
  if (!what.lengths.empty()) buckets.clear();
  for (int64_t length : what.lengths) buckets.insert(bucket_of(length));
  Programs& run = programs(SamplingShape::of(what.sampling));
  capture::Warmup warmup("the model");
  for (int64_t batch : what.batch) {
    auto known = caches_.find(batch);
    const models::KvCache cache = known != caches_.end() ? known->second : model_->make_cache(batch, cache_length_);
    const Device device = cache.keys[0].device();
    const std::vector<std::vector<int64_t>> prompts(size_t(batch), {0});
    StepInputs in;
    for (int64_t bucket : buckets) {
      in = prefill_inputs(prompts, bucket, what.sampling, model_->config().vocab_size, device);
      run.prepare_prefill(in, cache, warmup);
    }
    in.ids = zeros({batch, 1}, kInt64).to(device);
    for (bool even : {true, false}) {
      if (!even && batch == 1) continue;
      in.positions = step_positions(std::vector<int64_t>(size_t(even ? 1 : batch), 1), even).to(device);
      run.prepare_decode(in, cache, warmup);
    }
  }
  warmup.run();
}

int64_t TextGenerator::cache_bytes() const {
  int64_t bytes = 0;
  for (auto& [batch, cache] : caches_)
    for (auto* list : {&cache.keys, &cache.values})
      for (auto& t : *list) bytes += t.numel() * item_size(t.dtype());
  return bytes;
}

int64_t TextGenerator::prefill_programs() const {
  int64_t count = 0;
  for (auto& [shape, p] : programs_) count += p->prefill_function ? int64_t(p->prefill_function->entries().size()) : 0;
  return count;
}

int64_t TextGenerator::decode_programs() const {
  int64_t count = 0;
  for (auto& [shape, p] : programs_) count += p->decode_function ? int64_t(p->decode_function->entries().size()) : 0;
  return count;
}

std::vector<Explanation> TextGenerator::explanations() const {
  std::vector<Explanation> out;
  for (auto& [shape, p] : programs_)
    for (auto* function : {p->prefill_function, p->decode_function})
      if (function && !function->entries().empty()) out.push_back(capture::explain(*function));
  return out;
}

std::string TextGenerator::explain() const {
  std::string out;
  for (auto& explanation : explanations()) out += explanation.text() + "\n";
  return out;
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

  void take(int64_t row, int64_t id, const GenerateOptions& options, int64_t cache_length) {
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
    else if (int64_t(result.ids.size()) >= options.max_new_tokens)
      finish(Finish::kLength);
    else if (length >= cache_length)
      finish(Finish::kCacheFull);
    if (options.on_token && !options.on_token(row, id) && !done) finish(Finish::kCaller);
    if (stream && done) text += stream->finish();
    if (options.on_text && !text.empty()) options.on_text(row, text);
    result.text += text;
  }
};

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
  check_prompts(prompts);
  NoGradGuard no_grad;
  times_ = {};
  int64_t batch = int64_t(prompts.size()), longest = 0;
  bool even = true;
  std::vector<Row> rows;
  for (auto& prompt : prompts) {
    longest = std::max(longest, int64_t(prompt.size()));
    even = even && prompt.size() == prompts[0].size();
    rows.emplace_back(int64_t(prompt.size()), options);
  }
  auto results = [&] {
    std::vector<Generation> out;
    for (auto& row : rows) out.push_back(std::move(row.result));
    return out;
  };
  if (options.max_new_tokens == 0) return results();

  Programs& run = programs(SamplingShape::of(options.sampling));
  models::KvCache& cache = this->cache(batch);
  int64_t programs_before = prefill_programs() + decode_programs();

  int64_t bucket = bucket_of(longest);
  // Where the model is; on the CPU already, nothing is copied.
  const Device device = cache.keys[0].device();
  StepInputs in = prefill_inputs(prompts, bucket, options.sampling, model_->config().vocab_size, device);

  auto begin = std::chrono::steady_clock::now();
  double compiling = stage_seconds_of_this_thread();
  Tensor tokens = run.prefill(in, cache);
  times_.prefill_compile_s = stage_seconds_of_this_thread() - compiling;
  // All rows at once until the last one is done; what the others compute then is not read.
  in.wanted = zeros({batch}, kInt64).to(device);
  for (int64_t step = 0;; ++step) {
    std::vector<int64_t> now(size_t(batch), 0), at(size_t(even ? 1 : batch), 0);
    Tensor host = tokens.to(cpu()).contiguous();
    std::copy_n(host.data_ptr<int64_t>(), batch, now.begin());
    if (step == 0)
      times_.prefill_s = seconds_since(begin);
    else
      times_.steps_s.push_back(seconds_since(begin));
    bool all_done = true;
    for (int64_t r = 0; r < batch; ++r) {
      Row& row = rows[size_t(r)];
      if (!row.done) row.take(r, now[size_t(r)], options, cache_length_);
      all_done = all_done && row.done;
      at[size_t(even ? 0 : r)] = std::min(row.length, cache_length_ - 1);
    }
    if (all_done) break;
    begin = std::chrono::steady_clock::now();
    in.ids = tokens.view({batch, 1});
    in.positions = step_positions(at, even).to(device);
    in.draws = draws_of(options.sampling, batch, step + 1).to(device);
    compiling = stage_seconds_of_this_thread();
    tokens = run.decode(in, cache);
    times_.steps_compile_s.push_back(stage_seconds_of_this_thread() - compiling);
    for (auto& row : rows) ++row.length;
  }
  times_.compiled = prefill_programs() + decode_programs() - programs_before;
  return results();
}

}  // namespace sinter
