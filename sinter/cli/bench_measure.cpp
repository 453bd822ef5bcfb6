// Times one mode at one batch and prompt length.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/capture/compile.h"
#include "sinter/cli/bench.h"
#include "sinter/nn/linear.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kCheckedTokens = 16;  // of the first generation, which is compared between modes
constexpr int64_t kWarmupRepeats = 3, kWarmupTokens = 8;
constexpr double kNoisy = 0.05;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void warn_if_noisy(BenchRow& row, const char* what, const Statistics& s) {
  if (s.count > 1 && s.std > kNoisy * s.mean)
    row.warnings.push_back(format("{}, batch {}, prompt {}: the times of {} deviate by {} % of their mean", row.mode,
                                  row.batch, row.prompt, what, fixed(s.std / s.mean * 100, 0)));
}

// The model's memory at its peak, without what runs inside `aside`: comparing results takes memory of its own.
class PeakWatch {
 public:
  explicit PeakWatch(Device device) : device_(device) { reset_memory_peak(device_); }
  template <class F>
  void aside(F&& f) {
    peak_ = peak();
    f();
    reset_memory_peak(device_);
  }
  int64_t peak() const { return std::max(peak_, memory_peak(device_)); }

 private:
  Device device_;
  int64_t peak_ = 0;
};

// Fills in what follows from the samples, in seconds.
void summarise(BenchRow& row, std::vector<double> prefills, std::vector<double> steps, const PeakWatch& memory) {
  auto in_ms = [](std::vector<double>& values) {
    for (double& v : values) v *= 1e3;
    return Statistics::of(values);
  };
  row.repeats = int64_t(prefills.size());
  row.prefill_ms = in_ms(prefills);
  double later = row.prefill_ms.p50;
  row.items_per_s = double(row.batch) / row.prefill_ms.mean * 1e3;
  if (row.prompt > 0) row.prefill_tokens_per_s = row.items_per_s * double(row.prompt);
  if (!steps.empty()) {
    row.decode_ms = in_ms(steps);
    row.tokens_per_s = double(row.batch) / row.decode_ms->mean * 1e3;
    later += row.decode_ms->p50;
  }
  row.compile_s = std::max(0.0, row.first_call_s - later / 1e3);
  row.peak_bytes = memory.peak();
  warn_if_noisy(row, row.decode_ms ? "prefill" : "the forward pass", row.prefill_ms);
  if (row.decode_ms) warn_if_noisy(row, "decode steps", *row.decode_ms);
}

}  // namespace

int64_t memory_peak(Device device) {
  return device.is_cpu() ? cpu_memory_stats().peak : runtime::runtime_of(device).memory_peak(device.index());
}

void reset_memory_peak(Device device) {
  device.is_cpu() ? reset_cpu_memory_peak() : runtime::runtime_of(device).reset_memory_peak(device.index());
}

Statistics Statistics::of(std::vector<double> values) {
  Statistics s;
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  double n = double(values.size());
  s.count = int64_t(values.size());
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double v : values) squares += (v - s.mean) * (v - s.mean);
  s.std = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  auto percentile = [&](double p) { return values[size_t(std::max(std::ceil(p * n) - 1, 0.0))]; };
  s.min = values.front();
  s.p50 = percentile(0.5);
  s.p90 = percentile(0.9);
  s.p99 = percentile(0.99);
  return s;
}

BenchMode::BenchMode(const std::string& name) : eager(name == "eager") {
  if (!eager) mode = parse_mode(name);
}

std::vector<std::vector<int64_t>> random_prompts(int64_t vocab, int64_t batch, int64_t length, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<std::vector<int64_t>> prompts(static_cast<size_t>(batch));
  for (auto& prompt : prompts)
    for (int64_t i = 0; i < length; ++i) prompt.push_back(int64_t(draw() % uint64_t(vocab)));
  return prompts;
}

int64_t decode_bytes(models::CausalLM& model, int64_t batch, int64_t length) {
  auto& c = model.config();
  auto bytes_of = [](const Tensor& t) { return t.numel() * int64_t(item_size(t.dtype())); };
  TensorList parameters = model.parameters();
  int64_t bytes = 0;
  for (auto& parameter : parameters) bytes += bytes_of(parameter);
  for (auto& buffer : model.buffers()) bytes += bytes_of(buffer);
  // Of a table a step reads a row a sequence, unless the table is also the last product's weight.
  for (auto* module : model.modules())
    if (auto* table = dynamic_cast<nn::EmbeddingImpl*>(module)) {
      int64_t rows = table->weight.size(0).to_int(), all = bytes_of(table->weight);
      if (!(c.tie_embeddings && rows == c.vocab_size)) bytes += std::min(batch, rows) * (all / rows) - all;
    }
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    int64_t window = c.window(layer), rows = window > 0 ? std::min(window, length) : length;
    bytes += 2 * batch * c.kv_heads * c.head_dim * rows * int64_t(item_size(parameters.at(0).dtype()));
  }
  return bytes;
}

BenchRow measure_decoder(const std::shared_ptr<models::CausalLM>& model, const std::string& mode, int64_t batch,
                         int64_t prompt, const BenchOptions& options, const Advance& advance,
                         const TokenChecker& check_tokens) {
  BenchRow row{.mode = mode, .batch = batch, .prompt = prompt};
  PeakWatch memory(model->parameters().at(0).device());
  BenchMode chosen(mode);
  int64_t length = options.cache_length > 0 ? options.cache_length : prompt + options.new_tokens;
  // The prompt's own length as a bucket: nothing is padded.
  TextGenerator generator(model,
                          {.mode = chosen.mode, .eager = chosen.eager, .cache_length = length, .buckets = {prompt}});
  auto prompts = random_prompts(model->config().vocab_size, batch, prompt, options.seed);

  auto begin = Clock::now();
  auto first = generator.generate(prompts, {.max_new_tokens = std::min(options.new_tokens, kCheckedTokens)});
  row.first_call_s = generator.times().prefill_s;
  if (!generator.times().steps_s.empty()) row.first_call_s += generator.times().steps_s[0];
  for (row.warmup_repeats = 1; row.warmup_repeats < kWarmupRepeats; ++row.warmup_repeats) {
    if (seconds_since(begin) > options.max_seconds) break;
    generator.generate(prompts, {.max_new_tokens = std::min(options.new_tokens, kWarmupTokens)});
  }
  row.warmup_s = seconds_since(begin);
  std::vector<std::vector<int64_t>> tokens;
  for (auto& generation : first) tokens.push_back(generation.ids);
  memory.aside([&] { check_tokens(prompts, tokens); });

  std::vector<double> prefills, steps;
  begin = Clock::now();
  while (int64_t(prefills.size()) < options.repeats &&
         (prefills.empty() || seconds_since(begin) < options.max_seconds)) {
    int64_t seen = 0;
    GenerateOptions generate{.max_new_tokens = options.new_tokens};
    // When time is up a generation ends early, but never before there is a step to report.
    generate.on_token = [&](int64_t, int64_t) { return ++seen <= batch || seconds_since(begin) < options.max_seconds; };
    generator.generate(prompts, generate);
    prefills.push_back(generator.times().prefill_s);
    steps.insert(steps.end(), generator.times().steps_s.begin(), generator.times().steps_s.end());
    advance(1);
  }
  double tokens_each = double(steps.size()) / double(prefills.size());
  summarise(row, prefills, steps, memory);
  if (Device device = model->parameters().at(0).device(); row.decode_ms) {
    double bytes = double(decode_bytes(*model, batch, prompt + int64_t(tokens_each / 2) + 1));
    row.floor_bytes = bytes;
    row.floor_ms = runtime::ceilings_of(device).seconds(bytes, 0, 0, bytes) * 1e3;
    row.bandwidth_fraction = *row.floor_ms / row.decode_ms->p50;
  }
  return row;
}

BenchRow measure_forward(const std::shared_ptr<models::Model>& model, const std::string& mode, int64_t batch,
                         int64_t prompt, const BenchOptions& options, const Advance& advance,
                         const std::function<void(const Tensor& result)>& check_result) {
  NoGradGuard no_grad;
  BenchRow row{.mode = mode, .batch = batch, .prompt = prompt};
  PeakWatch memory(model->parameters().at(0).device());
  auto& c = model->config();
  Tensor parameter = model->parameters().at(0);
  std::function<Tensor(const Tensor&)> forward;
  Tensor input;
  manual_seed(options.seed);
  if (auto encoder = std::dynamic_pointer_cast<models::TextEncoder>(model)) {
    forward = [encoder](const Tensor& x) { return encoder->forward(x); };
    input = randint(c.vocab_size, {batch, prompt}).to(parameter.device());
  } else {
    auto classifier = std::dynamic_pointer_cast<models::ImageClassifier>(model);
    check(bool(classifier), "bench: {} is of no kind that can be measured", c.architecture);
    forward = [classifier](const Tensor& x) { return classifier->forward(x); };
    input = randn({batch, c.channels, c.image_size, c.image_size}).to(parameter.dtype()).to(parameter.device());
  }
  BenchMode chosen(mode);
  if (!chosen.eager) {
    auto plain = forward;
    forward = compile([plain](const Tensor& x) { return plain(x); },
                      {.mode = chosen.mode, .fullgraph = true, .dynamic = Dynamic::kFalse, .name = "forward"});
  }
  Tensor result;
  auto timed = [&] {
    auto begin = Clock::now();
    result = forward(input);
    // A device may still be at work when the call returns.
    if (!result.device().is_cpu()) result.view({-1}).narrow(0, 0, 1).to(cpu());
    return seconds_since(begin);
  };
  auto begin = Clock::now();
  row.first_call_s = timed();
  memory.aside([&] { check_result(result); });
  for (row.warmup_repeats = 1; row.warmup_repeats < kWarmupRepeats; ++row.warmup_repeats) {
    if (seconds_since(begin) > options.max_seconds) break;
    timed();
  }
  row.warmup_s = seconds_since(begin);
  std::vector<double> seconds;
  begin = Clock::now();
  while (int64_t(seconds.size()) < options.repeats && (seconds.empty() || seconds_since(begin) < options.max_seconds)) {
    seconds.push_back(timed());
    advance(1);
  }
  summarise(row, seconds, {}, memory);
  row.tokens_per_s = row.prefill_tokens_per_s;
  return row;
}

namespace {

// The fastest of some runs; 0 where there is no such loop. Processor time, so that others at work do not look like slow
// clocks.
double loop_seconds() {
  constexpr int kRuns = 20;
  auto loop = runtime::fma_loop();
  if (!loop) return 0;
  auto processor_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
  };
  double best = 1;
  for (int i = 0; i < kRuns; ++i) {
    double start = processor_seconds();
    loop->run();
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

int64_t throttle_count() {
  int64_t count = 0;
  for (const char* name : {"core", "package"}) {
    std::ifstream file(format("/sys/devices/system/cpu/cpu0/thermal_throttle/{}_throttle_count", name));
    int64_t value = 0;
    if (file >> value) count += value;
  }
  return count;
}

}  // namespace

ClockWatch::ClockWatch() : seconds_(loop_seconds()), throttled_(throttle_count()) {}

std::optional<std::string> ClockWatch::slowdown() const {
  constexpr double kAllowed = 1.08;
  if (int64_t more = throttle_count() - throttled_; more > 0)
    return format("the processor throttled {} times for heat during the measurement", more);
  double now = loop_seconds();
  if (now <= kAllowed * seconds_) return std::nullopt;
  return format("clocks fell during the measurement: a loop of multiply-adds takes {} % longer than before",
                fixed((now / seconds_ - 1) * 100, 0));
}

}  // namespace sinter::cli
