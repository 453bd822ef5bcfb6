#include "sinter/serve/metrics.h"

#include <algorithm>
#include <charconv>

#include "sinter/base/error.h"

namespace sinter::serve {

namespace {

constexpr const char* kPrefix = "sinter:";

std::string number(double value) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out;
}

const std::vector<double> kFirstToken = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                         1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const std::vector<double> kToken = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                                    0.4,    0.5,   0.75,   1,     2.5,  5,     7.5,  10,    20,  40,   80};
const std::vector<double> kRequest = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                      30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kTokens = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                                     1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};
const std::vector<double> kStep = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const std::vector<double> kChoices = {1, 2, 5, 10, 20};

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
  state_.counts.resize(bounds_.size() + 1);
}

void Histogram::observe(double value) {
  const size_t bucket = size_t(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  std::lock_guard lock(mutex_);
  ++state_.counts[bucket];
  ++state_.count;
  state_.sum += value;
}

Histogram::State Histogram::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

Registry::Series& Registry::series(const std::string& name, const std::string& help, const char* type,
                                   const Labels& labels) {
  Metric& metric = metrics_[name];
  SINTER_INTERNAL_ASSERT(metric.type.empty() || metric.type == type, "a metric has one type");
  if (metric.type.empty()) {
    metric.help = help;
    metric.type = type;
  }
  for (auto& known : metric.series)
    if (known.labels == labels) return known;
  metric.series.push_back({.labels = labels, .counter = {}, .histogram = {}, .gauge = {}});
  return metric.series.back();
}

Counter& Registry::counter(const std::string& name, const std::string& help, const Labels& labels) {
  std::lock_guard lock(mutex_);
  Series& own = series(name, help, "counter", labels);
  if (!own.counter) own.counter = std::make_unique<Counter>();
  return *own.counter;
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, std::vector<double> bounds,
                               const Labels& labels) {
  std::lock_guard lock(mutex_);
  Series& own = series(name, help, "histogram", labels);
  if (!own.histogram) own.histogram = std::make_unique<Histogram>(std::move(bounds));
  return *own.histogram;
}

void Registry::gauge(const std::string& name, const std::string& help, std::function<double()> value,
                     const Labels& labels) {
  std::lock_guard lock(mutex_);
  series(name, help, "gauge", labels).gauge = std::move(value);
}

std::string Registry::written(const Labels& own, const std::string& le) const {
  std::string out;
  auto add = [&](const std::string& name, const std::string& value) {
    out += format("{}{}=\"{}\"", out.empty() ? "" : ",", name, escaped(value));
  };
  for (auto& [name, value] : common_) add(name, value);
  for (auto& [name, value] : own) add(name, value);
  if (!le.empty()) add("le", le);
  return out.empty() ? out : "{" + out + "}";
}

std::string Registry::text_of(const std::vector<const Registry*>& registries) {
  std::map<std::string, const Metric*> all;
  std::string out;
  for (auto* registry : registries) {
    std::lock_guard lock(registry->mutex_);
    for (auto& [name, metric] : registry->metrics_) all.emplace(name, &metric);
  }
  // A name is told once; metrics are never taken back, and their help and type do not change.
  for (auto& [name, metric] : all) {
    const std::string full = kPrefix + name + (metric->type == "counter" ? "_total" : "");
    out += format("# HELP {} {}\n# TYPE {} {}\n", full, metric->help, full, metric->type);
    for (auto* registry : registries) registry->add_lines(name, out);
  }
  return out;
}

void Registry::add_lines(const std::string& name, std::string& out) const {
  std::lock_guard lock(mutex_);
  auto found = metrics_.find(name);
  if (found == metrics_.end()) return;
  const Metric& metric = found->second;
  const std::string full = kPrefix + name + (metric.type == "counter" ? "_total" : "");
  for (auto& series : metric.series) {
    if (series.counter) out += format("{}{} {}\n", full, written(series.labels), number(series.counter->value()));
    if (series.gauge) out += format("{}{} {}\n", full, written(series.labels), number(series.gauge()));
    if (!series.histogram) continue;
    const Histogram::State state = series.histogram->state();
    const auto& bounds = series.histogram->bounds();
    int64_t sum = 0;
    for (size_t i = 0; i < state.counts.size(); ++i) {
      sum += state.counts[i];
      const std::string le = i < bounds.size() ? number(bounds[i]) : "+Inf";
      out += format("{}_bucket{} {}\n", full, written(series.labels, le), sum);
    }
    out += format("{}_sum{} {}\n", full, written(series.labels), number(state.sum));
    out += format("{}_count{} {}\n", full, written(series.labels), state.count);
  }
}

EngineMetrics::EngineMetrics(Registry& r)
    : prompt_tokens(r.counter("prompt_tokens", "Tokens of prompts.")),
      generation_tokens(r.counter("generation_tokens", "Tokens generated.")),
      prefix_queries(r.counter("prefix_cache_queries", "Tokens looked for among cached beginnings.")),
      prefix_hits(r.counter("prefix_cache_hits", "Tokens found there.")),
      preemptions(r.counter("num_preemptions", "Sequences that gave up their pages to others.")),
      recompiles(r.counter("recompiles", "Steps that compiled something after the server was ready.")),
      compile_seconds(r.counter("compile_seconds", "Seconds spent on that.")),
      delayed(r.counter("requests_delayed_by_compile", "Texts that were under way meanwhile.")),
      failures(r.counter("steps_failed", "Steps that ended in an error.")),
      busy_seconds(r.counter("busy_seconds", "Seconds of steps.")),
      turn_seconds(r.counter("turn_seconds", "Seconds of waiting for the steps of another arm.")),
      first_token(r.histogram("time_to_first_token_seconds", "From arrival to the first token.", kFirstToken)),
      between_tokens(r.histogram("inter_token_latency_seconds", "From one token to the next.", kToken)),
      per_token(r.histogram("request_time_per_output_token_seconds", "The mean of a request, without its first token.",
                            kToken)),
      whole(r.histogram("e2e_request_latency_seconds", "From arrival to the end.", kRequest)),
      queued(r.histogram("request_queue_time_seconds", "Waiting to begin.", kRequest)),
      prefill(r.histogram("request_prefill_time_seconds", "From beginning to the first token.", kRequest)),
      decode(r.histogram("request_decode_time_seconds", "From the first token to the last.", kRequest)),
      inference(r.histogram("request_inference_time_seconds", "From beginning to the end.", kRequest)),
      request_prompt(r.histogram("request_prompt_tokens", "Tokens of a request's prompt.", kTokens)),
      request_generation(r.histogram("request_generation_tokens", "Tokens generated for a request.", kTokens)),
      request_most(r.histogram("request_max_num_generation_tokens", "Tokens that a request may have.", kTokens)),
      request_choices(r.histogram("request_params_n", "Texts asked for by a request.", kChoices)),
      step_tokens(r.histogram("iteration_tokens_total", "Tokens computed in a step.", kStep)),
      registry(r) {}

}  // namespace sinter::serve
