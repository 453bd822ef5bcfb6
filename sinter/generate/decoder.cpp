#include "sinter/generate/decoder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/warmup.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

constexpr int64_t kDefaultLength = 2048, kFirstBucket = 32;

Tensor draws_of(const SamplingOptions& sampling, int64_t batch, int64_t step) {
  std::vector<double> values(size_t(batch), 0);
  if (SamplingShape::of(sampling).samples)
    for (int64_t r = 0; r < batch; ++r) values[size_t(r)] = sampling_draw(sampling.seed, r, step);
  return tensor(values);
}

// The tokens that must not come, where there are any.
Tensor barred_tokens(const SamplingOptions& sampling, bool is_first, int64_t vocab) {
  Tensor out = zeros({SamplingShape::of(sampling).suppresses ? vocab : 0}, kBool);
  auto bar = [&](const std::vector<int64_t>& ids) {
    for (int64_t id : ids) {
      check(id >= 0 && id < vocab, "generate: the suppressed token {} does not exist; the model knows 0 to {}", id, vocab - 1);
      out.data_ptr<bool>()[id] = true;
    }
  };
  bar(sampling.suppress_ids);
  if (is_first) bar(sampling.suppress_first_ids);
  return out;
}

// Of prompts that are padded to `bucket` tokens. Written on the host: no op runs, so that no kernel is compiled for it.
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
  std::vector<int64_t> positions(static_cast<size_t>(bucket));
  std::iota(positions.begin(), positions.end(), 0);
  in.positions = tensor(positions).to(device);
  in.wanted = tensor(wanted).to(device);
  in.numbers = sampling_numbers(sampling, batch).to(device);
  in.draws = draws_of(sampling, batch, 0).to(device);
  in.seen = empty({batch, penalty ? vocab : 0}, kBool);
  bool* seen = in.seen.data_ptr<bool>();
  std::fill_n(seen, in.seen.numel(), false);
  for (int64_t r = 0; penalty && r < batch; ++r)
    for (int64_t id : prompts[size_t(r)]) seen[r * vocab + id] = true;
  in.seen = in.seen.to(device);
  in.barred = barred_tokens(sampling, /*is_first=*/true, vocab).to(device);
  return in;
}

// Positions of a step, one for all rows where they are `even`.
Tensor step_positions(const std::vector<int64_t>& at, bool even) {
  return even ? tensor(at) : tensor(at).view({int64_t(at.size()), 1});
}

}  // namespace

// The programs differ in what they see of the cache: a prefill begins sequences, a step goes on with them.
struct Decoder::Programs {
  using Prefill = std::function<Tensor(const StepInputs&, const models::KvCache&)>;
  // Tokens, and the positions of the step after.
  using Decode = std::function<std::tuple<Tensor, Tensor>(const StepInputs&, const models::KvCache&)>;

  Programs(const std::shared_ptr<models::TextDecoder>& model, const SamplingShape& shape,
           const GeneratorOptions& options) {
    auto token = [model, shape](const StepInputs& in, models::KvCache& cache) {
      Tensor logits = model->forward(in.ids, in.positions, {}, &cache, in.wanted).squeeze(1);
      if (shape.suppresses) logits = where(in.barred, -std::numeric_limits<double>::infinity(), logits);
      Tensor seen = in.seen;
      Tensor token = sample(logits, shape, in.numbers, in.draws, seen);
      if (shape.penalty) seen.scatter_(1, token.unsqueeze(1), ones_like(token.unsqueeze(1)).to(kBool));
      return token;
    };
    auto first = [token](const StepInputs& in, models::KvCache cache) {
      cache.begins = true;
      return token(in, cache);
    };
    auto next = [token](const StepInputs& in, models::KvCache cache) {
      cache.begins = false;
      Tensor positions = (in.positions + 1).clamp_max(cache.keys[0].size(2).to_int() - 1);
      return std::make_tuple(token(in, cache), positions);
    };
    if (options.eager) {
      prefill = first;
      decode = next;
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
    auto compiled_prefill = compile(first, compile_options);
    fingerprint("decode");
    auto compiled_decode = compile(next, compile_options);
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

  Prefill prefill;
  Decode decode;
  std::function<void(const StepInputs&, const models::KvCache&, capture::Warmup&)> prepare_prefill, prepare_decode;
  capture::Function *prefill_function = nullptr, *decode_function = nullptr;  // owned by the above
};

Decoder::Decoder(std::shared_ptr<models::TextDecoder> model, GeneratorOptions options)
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

Decoder::~Decoder() = default;

int64_t Decoder::bucket_of(int64_t length) const {
  return *std::lower_bound(buckets_.begin(), buckets_.end(), length);
}

void Decoder::check_prompts(const std::vector<std::vector<int64_t>>& prompts) const {
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

Decoder::Programs& Decoder::programs(const SamplingShape& shape) {
  for (auto& [known, programs] : programs_)
    if (known == shape) return *programs;
  programs_.emplace_back(shape, std::make_unique<Programs>(model_, shape, options_));
  return *programs_.back().second;
}

models::KvCache& Decoder::cache(int64_t batch) {
  if (auto it = caches_.find(batch); it != caches_.end()) return it->second;
  caches_.clear();
  return caches_[batch] = model_->make_cache(batch, cache_length_, options_.cache_dtype);
}

Tensor Decoder::begin(const std::vector<std::vector<int64_t>>& prompts, const SamplingOptions& sampling,
                      const models::Source& source) {
  NoGradGuard no_grad;
  batch_ = int64_t(prompts.size());
  sampling_ = sampling;
  steps_ = 0;
  bool even = true;
  std::vector<int64_t> lengths;
  for (auto& prompt : prompts) {
    lengths.push_back(int64_t(prompt.size()));
    even = even && lengths.back() == lengths[0];
  }
  models::KvCache& cache = this->cache(batch_);
  cache.source = source;
  // Where the model is; on the CPU already, nothing is copied.
  const Device device = cache.keys[0].device();
  int64_t bucket = bucket_of(*std::max_element(lengths.begin(), lengths.end()));
  next_ = prefill_inputs(prompts, bucket, sampling, model_->config().vocab_size, device);
  Tensor tokens = programs(SamplingShape::of(sampling)).prefill(next_, cache);

  next_.ids = tokens.view({batch_, 1});
  next_.barred = barred_tokens(sampling, /*is_first=*/false, model_->config().vocab_size).to(device);
  next_.wanted = tensor(std::vector<int64_t>(size_t(batch_), 0)).to(device);
  for (int64_t& length : lengths) length = std::min(length, cache_length_ - 1);
  if (even) lengths.resize(1);
  next_.positions = step_positions(lengths, even).to(device);
  return tokens;
}

Tensor Decoder::step() {
  NoGradGuard no_grad;
  models::KvCache& cache = caches_.at(batch_);
  if (sampling_.samples()) next_.draws = draws_of(sampling_, batch_, ++steps_).to(cache.keys[0].device());
  auto [tokens, positions] = programs(SamplingShape::of(sampling_)).decode(next_, cache);
  next_.ids = tokens.view({batch_, 1});
  next_.positions = positions;
  return tokens;
}

void Decoder::warmup(const GeneratorWarmup& what) {
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
    models::KvCache cache = known != caches_.end() ? known->second : model_->make_cache(batch, cache_length_, options_.cache_dtype);
    cache.source = what.source;
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

int64_t Decoder::cache_bytes() const {
  int64_t bytes = 0;
  for (auto& [batch, cache] : caches_)
    for (auto* list : {&cache.keys, &cache.values, &cache.key_scales, &cache.value_scales})
      for (auto& t : *list) bytes += t.numel() * item_size(t.dtype());
  return bytes;
}

int64_t Decoder::prefill_programs() const {
  int64_t count = 0;
  for (auto& [shape, p] : programs_) count += p->prefill_function ? int64_t(p->prefill_function->entries().size()) : 0;
  return count;
}

int64_t Decoder::decode_programs() const {
  int64_t count = 0;
  for (auto& [shape, p] : programs_) count += p->decode_function ? int64_t(p->decode_function->entries().size()) : 0;
  return count;
}

std::vector<Explanation> Decoder::explanations() const {
  std::vector<Explanation> out;
  for (auto& [shape, p] : programs_)
    for (auto* function : {p->prefill_function, p->decode_function})
      if (function && !function->entries().empty()) out.push_back(capture::explain(*function));
  return out;
}

}  // namespace sinter
